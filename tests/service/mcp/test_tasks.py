"""Tasks: a call gives an id at once, and whoever has it comes back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
)

from aeon.service.mcp.tasks import TASKS
from aeon.service.mcp.tools import RUN_TASK
from tests.service.gates import GatedModel, OpenJobs
from tests.service.mcp.clients import (
    AnyResult,
    KnowsTasks,
    Person,
    TaskRequest,
    ask_task,
    begin_task,
    open_server,
    run_client,
    wait_for_task,
    write_plans,
)

TWO_SUMS = """\
goal: Add up
steps:
  - {id: one, description: Add up, tool: calculator, arguments: {expression: 1 + 1}}
  - {id: two, description: Add up, tool: calculator, arguments: {expression: 2 + 2}}
"""
ASKING = ("provider=simulated", "tools=builtin", "tools.approval={calculator: ask}")


def run_task_client(
    server: Any, talk: Callable[[Client], Awaitable[None]], person: Person | None = None
) -> None:
    run_client(server, talk, extensions=[KnowsTasks()], elicitation_callback=person)


def test_a_call_becomes_a_task_with_the_id_of_its_run(open_jobs: OpenJobs, model: GatedModel):
    server, jobs = open_server(open_jobs, None, *model.overrides)

    async def talk(client: Client) -> None:
        assert client.server_capabilities.extensions == {TASKS: {}}
        task = await begin_task(client, RUN_TASK, task="abc")
        assert task["status"] == "working"
        assert task["ttlMs"] is None
        assert task["pollIntervalMs"] > 0
        assert "result" not in task
        assert datetime.fromisoformat(task["createdAt"]).tzinfo
        assert (await ask_task(client, "get", task["taskId"]))["status"] == "working"
        assert jobs.find(task["taskId"]).record.background

        model.open()
        done = await wait_for_task(client, task["taskId"])
        assert done["status"] == "completed"
        assert done["result"]["content"] == [{"type": "text", "text": "cba"}]
        assert jobs.find(task["taskId"]).result["run_id"] == task["taskId"]

    run_task_client(server, talk)


def test_a_run_that_fails_is_a_completed_call_with_an_error(open_jobs: OpenJobs, model: GatedModel):
    server, _ = open_server(open_jobs, None, *model.overrides)
    model.server.script = {}

    async def talk(client: Client) -> None:
        task = await begin_task(client, RUN_TASK, task="abc")
        done = await wait_for_task(client, task["taskId"])
        assert done["status"] == "completed"
        assert done["result"]["isError"] is True

    run_task_client(server, talk)


def test_arguments_that_do_not_fit_make_no_task(open_jobs: OpenJobs):
    server, jobs = open_server(open_jobs, None, "provider=simulated")

    async def talk(client: Client) -> None:
        result = await client.session.call_tool(RUN_TASK, {"task": 1}, allow_claimed=True)
        assert result.is_error  # type: ignore[union-attr]

    run_task_client(server, talk)
    assert jobs.list_latest(1) == []


def test_a_cancelled_task_is_cancelled_for_good(open_jobs: OpenJobs, model: GatedModel):
    server, jobs = open_server(open_jobs, None, *model.overrides, parallel=1)

    async def talk(client: Client) -> None:
        running = await begin_task(client, RUN_TASK, task="abc")
        queued = await begin_task(client, RUN_TASK, task="def")
        for task in (queued, running, queued):
            acknowledged = await ask_task(client, "cancel", task["taskId"])
            assert acknowledged == {"resultType": "complete"}
        model.open()
        for task in (running, queued):
            ended = await wait_for_task(client, task["taskId"])
            assert ended["status"] == "cancelled"
            assert "result" not in ended

    run_task_client(server, talk)
    assert jobs.count() == {"running": 0, "queued": 0, "waiting": 0}


def test_a_task_that_has_ended_takes_a_cancellation_and_stays(
    open_jobs: OpenJobs, model: GatedModel
):
    server, _ = open_server(open_jobs, None, *model.overrides)
    model.open()

    async def talk(client: Client) -> None:
        task = await begin_task(client, RUN_TASK, task="abc")
        await wait_for_task(client, task["taskId"])
        await ask_task(client, "cancel", task["taskId"])
        assert (await ask_task(client, "get", task["taskId"]))["status"] == "completed"

    run_task_client(server, talk)


def test_questions_are_input_that_is_required_and_stay_until_they_are_answered(
    open_jobs: OpenJobs, tmp_path: Path
):
    plans = write_plans(tmp_path / "plans", {"sums.yaml": TWO_SUMS})
    server, _ = open_server(open_jobs, plans, *ASKING)

    async def talk(client: Client) -> None:
        task_id = (await begin_task(client, "sums"))["taskId"]
        asked = await wait_for_task(client, task_id, "input_required")
        first, second = asked["inputRequests"]
        assert asked["inputRequests"][first]["method"] == "elicitation/create"

        yes = {"action": "accept", "content": {"confirm": True}}
        answers = {first: yes, "nobody-asked": {"of": "any form"}}
        acknowledged = await ask_task(client, "update", task_id, inputResponses=answers)
        assert acknowledged == {"resultType": "complete"}
        left = await ask_task(client, "get", task_id)
        assert left["status"] == "input_required"
        assert list(left["inputRequests"]) == [second]

        # What is answered already is left aside.
        await ask_task(client, "update", task_id, inputResponses={first: yes, second: yes})
        done = await wait_for_task(client, task_id)
        assert done["status"] == "completed"
        assert "2" in done["result"]["content"][0]["text"]
        await ask_task(client, "update", task_id, inputResponses={first: yes})

    run_task_client(server, talk, Person())


def test_a_client_that_cannot_ask_is_told_what_waits(open_jobs: OpenJobs, tmp_path: Path):
    server, jobs = open_server(open_jobs, write_plans(tmp_path / "plans"), *ASKING)

    async def talk(client: Client) -> None:
        task_id = (await begin_task(client, "by_hand"))["taskId"]
        while jobs.find(task_id).state != "waiting":
            pass
        task = await ask_task(client, "get", task_id)
        assert task["status"] == "working"
        assert "Write a line" in task["statusMessage"]
        assert "inputRequests" not in task

    run_task_client(server, talk)


@pytest.mark.parametrize("method", ["get", "update", "cancel"])
def test_tasks_that_are_not_there_and_clients_that_know_none_are_refused(
    open_jobs: OpenJobs, method: str
):
    server, _ = open_server(open_jobs, None, "provider=simulated")
    given = {"inputResponses": {}} if method == "update" else {}

    async def ask_for_nothing(client: Client) -> None:
        for task_id in ("0" * 32, "../../etc", "", "x" * 100_000):
            with pytest.raises(MCPError) as refused:
                await ask_task(client, method, task_id, **given)
            assert refused.value.code == INVALID_PARAMS
            assert len(refused.value.message) < 200

    async def ask_without_tasks(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await ask_task(client, method, "0" * 32, **given)
        assert refused.value.code == MISSING_REQUIRED_CLIENT_CAPABILITY

    run_task_client(server, ask_for_nothing)
    run_client(server, ask_without_tasks)


def test_methods_of_the_tasks_before_are_not_served(open_jobs: OpenJobs):
    server, _ = open_server(open_jobs, None, "provider=simulated")

    async def talk(client: Client) -> None:
        for method in ("tasks/list", "tasks/result"):
            request = TaskRequest(method=method, params={"taskId": "x"})
            with pytest.raises(MCPError, match="Method not found"):
                await client.session.send_request(request, AnyResult)

    run_task_client(server, talk)


def test_a_run_whose_files_were_removed_is_a_call_that_failed(
    open_jobs: OpenJobs, model: GatedModel
):
    server, jobs = open_server(open_jobs, None, *model.overrides)
    model.open()

    async def talk(client: Client) -> None:
        task_id = (await begin_task(client, RUN_TASK, task="abc"))["taskId"]
        await wait_for_task(client, task_id)
        run = jobs.find(task_id).run
        assert run is not None
        for removed in ("history.json", "result.json", "run.json"):
            (run / removed).unlink()
            task = await ask_task(client, "get", task_id)
            assert task["status"] == "completed"
            assert task["result"]["isError"] is True
            assert task["result"]["content"][0]["text"]

    run_task_client(server, talk)


def test_a_record_that_cannot_be_read_is_reported_with_its_file(
    open_jobs: OpenJobs, model: GatedModel
):
    server, jobs = open_server(open_jobs, None, *model.overrides)
    model.open()

    async def talk(client: Client) -> None:
        task_id = (await begin_task(client, RUN_TASK, task="abc"))["taskId"]
        await wait_for_task(client, task_id)
        (jobs.folder.path / task_id / "job.json").write_text('{"format": "aeon.job/9"}')
        for method in ("get", "cancel"):
            with pytest.raises(MCPError, match=r"its job\.json cannot be read: ") as refused:
                await ask_task(client, method, task_id)
            assert refused.value.code == INTERNAL_ERROR

    run_task_client(server, talk)
