"""Clients of the server: one that knows tasks, and one whose person answers from a list."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import anyio
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.server import Server
from mcp.types import CallToolResult, ElicitResult, Request, Result
from pydantic import ConfigDict

from aeon.service.jobs import Jobs
from aeon.service.mcp.server import build_server
from aeon.service.mcp.tasks import TASKS
from aeon.service.mcp.tools import list_tools
from tests.service.gates import OpenJobs

ENDS = ("completed", "failed", "cancelled")
PLANS = {
    "describe.yaml": """\
goal: Describe a place
inputs:
  place: The name of the place
  words: {type: integer, minimum: 1, default: 20, description: How many words}
steps:
  - {id: answer, description: "Describe ${inputs.place} in ${inputs.words} words", agent: llm}
""",
    "sum.yaml": """\
goal: Add up
steps:
  - {id: sum, description: Add up, tool: calculator, arguments: {expression: 40 + 2}}
""",
    "by_hand.yaml": """\
goal: What a person writes
steps:
  - {id: text, description: Write a line, agent: person}
""",
}


class AnyResult(Result):
    """A result of any form."""

    model_config = ConfigDict(extra="allow")

    @property
    def fields(self) -> dict[str, Any]:
        return self.model_extra or {}


class TaskHandle(AnyResult):
    """What a call gives that has become a task."""

    result_type: Literal["task"] = "task"


class TaskRequest(Request[dict[str, Any], str]):
    """`tasks/get`, `tasks/update` or `tasks/cancel`."""

    method: str
    params: dict[str, Any]
    name_param = "taskId"


class KnowsTasks(ClientExtension):
    """Declares tasks, and leaves it to the test what becomes of them."""

    identifier = TASKS

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=_refuse)]


async def _refuse(_handle: TaskHandle, _context: ClaimContext) -> CallToolResult:
    raise AssertionError("the test looks after the task")


async def begin_task(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The task that a call becomes."""
    handle = await client.session.call_tool(tool, arguments, allow_claimed=True)
    assert isinstance(handle, TaskHandle), handle
    return handle.fields


async def ask_task(client: Client, method: str, task_id: str, **params: Any) -> dict[str, Any]:
    """The result of `tasks/get`, `tasks/update` or `tasks/cancel`."""
    request = TaskRequest(method=f"tasks/{method}", params={"taskId": task_id, **params})
    return (await client.session.send_request(request, AnyResult)).fields


async def wait_for_task(client: Client, task_id: str, *states: str) -> dict[str, Any]:
    """The task once it is in one of these states, or has ended."""
    until = time.monotonic() + 30
    while True:
        task = await ask_task(client, "get", task_id)
        if task["status"] in (*states, *ENDS):
            return task
        assert time.monotonic() < until, task
        await anyio.sleep(0.02)


class Person:
    """Shows each form, and answers with what it was given for its fields."""

    def __init__(self, action: str = "accept", **answers: Any) -> None:
        self.seen: list[str] = []
        self._action: Any = action
        self._answers = answers

    async def __call__(self, _context: Any, params: Any) -> ElicitResult:
        self.seen.append(params.message)
        fields = params.requested_schema["properties"]
        content = {name: self._answers[name] for name in fields if name in self._answers}
        return ElicitResult(action=self._action, content=content or None)


def write_plans(folder: Path, plans: Mapping[str, str] = PLANS) -> Path:
    """A folder of plan files."""
    folder.mkdir()
    for name, text in plans.items():
        (folder / name).write_text(text)
    return folder


def open_server(
    open_jobs: OpenJobs, folder: Path | None, *overrides: str, parallel: int = 2
) -> tuple[Server, Jobs]:
    """The server of the jobs in the folder of the test, in this process."""
    tools = list_tools(folder)
    named = {name: tool.list_overrides() for name, tool in tools.items()}
    jobs = open_jobs("interaction=defer", *overrides, parallel=parallel, **named)
    return build_server(jobs, tools), jobs


def run_client(
    server: Any, talk: Callable[[Client], Awaitable[None]], mode: Any = "auto", **options: Any
) -> None:
    """Have a client talk with a server."""

    async def connect() -> None:
        async with Client(server, mode=mode, **options) as client:
            await talk(client)

    anyio.run(connect)


def command_line(folder: Path, *overrides: str) -> StdioServerParameters:
    """What starts `aeon mcp` in a folder."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "aeon", "mcp", *overrides],
        cwd=folder,
        env=dict(os.environ),
    )
