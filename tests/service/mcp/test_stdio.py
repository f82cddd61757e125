"""The server as a process that a client starts: `aeon mcp` through standard input and output."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import anyio
import psutil
import pytest
from mcp import Client, StdioServerParameters

from aeon.service.mcp.tools import RUN_TASK
from tests.service.gates import GatedModel, wait_for
from tests.service.mcp.clients import (
    KnowsTasks,
    Person,
    ask_task,
    begin_task,
    command_line,
    run_client,
    wait_for_task,
    write_plans,
)
from tests.support.openai_server import OpenAIServer, Received

pytestmark = pytest.mark.slow

TWO_STEPS = """\
goal: Two steps
steps:
  - {id: one, description: The first step, agent: llm}
  - {id: two, description: The second step, depends_on: [one], agent: llm}
"""
LOUD = """\
import os, subprocess

def shout(text: str) -> str:
    \"\"\"Say something aloud.\"\"\"
    print(text)
    os.write(1, b"written past Python")
    subprocess.run(["echo", "from a process"])
    return text
"""
SHOUTING = """\
goal: Say it
steps:
  - {id: say, description: Say it, tool: shout, arguments: {text: hello}}
"""


def open_process(line: StdioServerParameters, folder: Path) -> subprocess.Popen[str]:
    """A server whose lines a test reads and writes itself."""
    return subprocess.Popen(
        [line.command, *line.args],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def find_server() -> psutil.Process:
    """The process of the one server that this process has started."""
    (server,) = [
        each for each in psutil.Process().children(recursive=True) if "mcp" in each.cmdline()
    ]
    return server


def kill_server() -> None:
    server = find_server()
    server.send_signal(signal.SIGKILL)
    psutil.wait_procs([server], timeout=60)


def test_a_client_starts_the_server_lists_calls_and_reads(tmp_path: Path):
    plans = write_plans(tmp_path / "plans")
    server = command_line(tmp_path, "provider=simulated", "tools=builtin", f"mcp.plans={plans}")

    async def talk(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == [RUN_TASK, "by_hand", "describe", "sum"]
        result = await client.call_tool("describe", {"place": "Oslo", "words": 10})
        assert not result.is_error
        page = await client.read_resource(result.structured_content["resources"]["report"])
        assert "<html" in page.contents[0].text  # type: ignore[union-attr]

    run_client(server, talk)
    assert len([*tmp_path.glob("outputs/mcp/*/job.json")]) == 1


def test_standard_output_has_the_protocol_alone(tmp_path: Path):
    (tmp_path / "loud.py").write_text(LOUD)
    plans = write_plans(tmp_path / "plans", {"shouting.yaml": SHOUTING})
    functions = "tools.functions={shout: 'loud:shout'}"
    server = command_line(
        tmp_path, "provider=simulated", "mode=core", functions, f"mcp.plans={plans}"
    )
    call = {"name": "shouting", "arguments": {}}
    sent = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        "this is no JSON",
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    with open_process(server, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for each in sent:
            process.stdin.write(each if isinstance(each, str) else json.dumps(each))
            process.stdin.write("\n")
        process.stdin.flush()
        read: list[dict[str, Any]] = []
        while not any(message.get("id") == 2 for message in read):
            read.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        rest = process.stdout.read()
        errors = process.stderr.read()
        assert process.wait(30) == 0
    assert rest == ""
    assert "hello" in json.dumps([each for each in read if each.get("id") == 2])
    assert "from a process" in errors
    assert all(message["jsonrpc"] == "2.0" for message in read)


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}
PING = '{"jsonrpc": "2.0", "id": 9, "method": "ping"}'
LONE = '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"x": "\\ud800"}}'
LARGE = 100_000_000


def test_input_that_ends_on_a_line_that_is_no_message_ends_the_server_quietly(tmp_path: Path):
    server = command_line(tmp_path, "provider=simulated")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    with open_process(server, tmp_path) as process:
        answers, errors = process.communicate(f"{json.dumps(hello)}\n[]\n[]\n", timeout=60)
    assert (process.returncode, "failed" in errors) == (0, False)
    assert [json.loads(line).get("error", {}).get("code") for line in answers.splitlines()].count(
        -32600
    ) == 2


@pytest.mark.parametrize(
    ("line", "request_id", "code", "problem"),
    [
        ("this is no JSON", None, -32700, "not JSON"),
        ("[" * 5000, None, -32700, "not JSON"),
        (LONE, 7, -32700, "surrogate|escape"),
        ('{"jsonrpc": "2.0", "id": 7, "method": 3}', 7, -32600, "no message"),
        ('{"jsonrpc": "2.0", "id": [7], "method": 3}', None, -32600, "no message"),
        ("[1, 2]", None, -32600, "no message"),
        ('{"jsonrpc": "2.0", "id": 7, "result": 3}', None, -32600, "no message"),
        ('{"x": "LARGE', None, -32700, "4194304"),
        ('{"id": "a7", "method": "m", "params": {"id": 1, "x": "LARGE"}}', "a7", -32700, "4194304"),
        ('{"method": "m", "params": {"id": 1, "x": "LARGE"}, "id": 7}', 7, -32700, "4194304"),
        ('{"method": "m", "params": {"x": "LARGE", "id": 1}}', None, -32700, "4194304"),
        ('{"id": 7, "result": {"method": "m", "x": "LARGE"}}', None, -32700, "4194304"),
        ('{"result": {"method": "m", "x": "LARGE"}, "id": 7}', None, -32700, "4194304"),
    ],
    ids=[
        "no JSON",
        "deep",
        "surrogate",
        "no method",
        "no id",
        "no object",
        "response",
        "large",
        "id first",
        "id last",
        "no id of its own",
        "response, id first",
        "response, id last",
    ],
)
def test_a_line_that_is_no_message_is_answered_with_an_error(
    tmp_path: Path, line: str, request_id: int | str | None, code: int, problem: str
):
    server = command_line(tmp_path, "provider=simulated")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    with open_process(server, tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(hello) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        before = psutil.Process(process.pid).memory_info().rss
        sent = line.replace("LARGE", "y" * LARGE)
        process.stdin.write(f"\n{sent}\n")
        process.stdin.flush()
        refused = json.loads(process.stdout.readline())
        process.stdin.write(f"{PING}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline()) == {"jsonrpc": "2.0", "id": 9, "result": {}}
        after = psutil.Process(process.pid).memory_info().rss
        process.stdin.close()
        assert process.wait(60) == 0
    assert (refused["id"], refused["error"]["code"]) == (request_id, code)
    assert re.search(problem, refused["error"]["message"])
    assert after - before < LARGE / 2


def test_a_task_outlives_a_server_that_is_killed(tmp_path: Path, openai_server: OpenAIServer):
    gate = threading.Event()

    def do_step(request: Received) -> dict[str, Any]:
        is_first = request.index == 0
        assert is_first or gate.wait(60)
        done = "first" if is_first else "second"
        return {
            "step_output": done,
            "clarity_state": "CLEAR",
            "clarity_reason": None,
            "handoff_to_next": None,
        }

    openai_server.script = {"step": do_step}
    plans = write_plans(tmp_path / "plans", {"two.yaml": TWO_STEPS})
    model = [*openai_server.overrides, "provider.require_key=false", "mode=core"]
    server = command_line(tmp_path, *model, f"mcp.plans={plans}")
    begun: list[str] = []

    async def begin(client: Client) -> None:
        begun.append((await begin_task(client, "two"))["taskId"])
        while len(openai_server.requests) < 2:
            await anyio.sleep(0.02)
        await anyio.to_thread.run_sync(kill_server)

    async def come_back(client: Client) -> None:
        assert (await ask_task(client, "get", begun[0]))["status"] == "working"
        gate.set()
        done = await wait_for_task(client, begun[0])
        assert done["result"]["content"][0]["text"] == "second"

    run_client(server, begin, extensions=[KnowsTasks()])
    run_client(server, come_back, extensions=[KnowsTasks()])
    run_client(server, come_back_again(begun), extensions=[KnowsTasks()])
    # The first step once; the second, which was under way, once more.
    assert len(openai_server.requests) == 3


def come_back_again(begun: list[str]) -> Any:
    async def look(client: Client) -> None:
        assert (await ask_task(client, "get", begun[0]))["status"] == "completed"

    return look


def test_a_task_is_cancelled_after_the_server_was_killed(tmp_path: Path, model: GatedModel):
    server = command_line(tmp_path, *model.overrides)
    begun: list[str] = []

    async def begin(client: Client) -> None:
        begun.append((await begin_task(client, RUN_TASK, task="abc"))["taskId"])
        while not model.server.requests:
            await anyio.sleep(0.02)
        await anyio.to_thread.run_sync(kill_server)

    async def cancel(client: Client) -> None:
        await ask_task(client, "cancel", begun[0])
        model.open()
        assert (await wait_for_task(client, begun[0]))["status"] == "cancelled"

    async def look(client: Client) -> None:
        assert (await ask_task(client, "get", begun[0]))["status"] == "cancelled"

    for talk in (begin, cancel, look):
        run_client(server, talk, extensions=[KnowsTasks()])


def test_a_question_is_answered_after_the_server_was_killed(tmp_path: Path):
    plans = write_plans(tmp_path / "plans")
    server = command_line(tmp_path, "provider=simulated", "tools=builtin", f"mcp.plans={plans}")
    known = {"extensions": [KnowsTasks()], "elicitation_callback": Person()}
    asked: dict[str, str] = {}

    async def begin(client: Client) -> None:
        task_id = (await begin_task(client, "by_hand"))["taskId"]
        task = await wait_for_task(client, task_id, "input_required")
        asked[task_id] = next(iter(task["inputRequests"]))
        await anyio.to_thread.run_sync(kill_server)

    async def answer(client: Client) -> None:
        ((task_id, question),) = asked.items()
        task = await ask_task(client, "get", task_id)
        assert list(task["inputRequests"]) == [question]
        response = {"action": "accept", "content": {"answer": "A line."}}
        await ask_task(client, "update", task_id, inputResponses={question: response})
        done = await wait_for_task(client, task_id)
        assert "A line." in done["result"]["content"][0]["text"]

    run_client(server, begin, **known)
    run_client(server, answer, **known)


def test_a_client_that_goes_away_ends_the_server_and_its_calls(tmp_path: Path, model: GatedModel):
    server = command_line(tmp_path, *model.overrides)
    process = subprocess.Popen(
        [server.command, *server.args],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    call = {"name": RUN_TASK, "arguments": {"task": "abc"}, "_meta": meta}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    wait_for(lambda: model.server.requests)
    (record,) = tmp_path.glob("outputs/mcp/*/job.json")
    process.stdin.close()
    wait_for(lambda: json.loads(record.read_text())["cancelled"])
    model.open()
    assert process.wait(30) == 0
    assert process.stdout is not None
    process.stdout.close()
    assert json.loads(record.read_text())["ended"] == "cancelled"


def test_two_servers_do_not_share_a_folder(tmp_path: Path):
    line = command_line(tmp_path, "provider=simulated")

    async def start_another(_client: Client) -> None:
        command = [line.command, *line.args]
        ended = subprocess.run(
            command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert ended.returncode == 2
        assert "outputs/mcp: another process is writing it" in ended.stderr
        assert "mcp.folder" in ended.stderr

    run_client(line, start_another)


def test_a_server_without_a_model_says_so_at_its_start(tmp_path: Path):
    line = command_line(tmp_path, "provider=simulated")
    command = [line.command, *line.args]
    ended = subprocess.run(
        command, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert ended.returncode == 0
    assert "SIMULATED: no model is called" in ended.stderr
    assert ended.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_that_waits_for_its_client_can_be_stopped(tmp_path: Path, number: signal.Signals):
    line = command_line(tmp_path, "provider=simulated")
    with open_process(line, tmp_path) as process:
        wait_for(lambda: (tmp_path / "outputs/mcp/.lock").exists())
        assert process.stderr is not None
        assert "SIMULATED" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(30) == 130


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (["mcp.plans=nowhere"], "mcp.plans=nowhere: it cannot be read: No such file or directory"),
        (["mcp.port=70000"], "mcp.port"),
        (["mcp.transport=pipe"], "mcp.transport"),
        (["convergence.completeness=7"], "convergence.completeness"),
        (["task=abc"], "task: each job brings its own"),
        (["plan_file=plan.yaml"], "mcp.plans=DIR has a tool for each plan file"),
        (["store=off"], "store=off: a run that waits for a person could not be resumed"),
        (["interaction=ask"], "there is no terminal to ask at"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(
    tmp_path: Path, overrides: list[str], problem: str
):
    server = command_line(tmp_path, "provider=simulated", *overrides)
    ended = subprocess.run(
        [server.command, *server.args],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        env=dict(os.environ),
    )
    assert ended.returncode == 2
    assert problem in ended.stderr
    assert ended.stdout == ""
    assert not (tmp_path / "outputs").exists()
