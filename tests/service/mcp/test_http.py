"""The server over streamable HTTP: `aeon mcp mcp.transport=http`, on loopback alone."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import anyio
import psutil
import pytest
from mcp import Client

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

pytestmark = pytest.mark.slow

Start = Callable[..., str]
ASKING = ("provider=simulated", "tools=builtin", "tools.approval={calculator: ask}")


@contextmanager
def serve(folder: Path, *overrides: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a server, and its process, which is stopped when the block ends."""
    line = command_line(folder, "mcp.transport=http", "mcp.port=0", *overrides)
    process = subprocess.Popen(
        [line.command, *line.args],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = iter(process.stderr.readline, "")
        address = next(filter(None, (re.search(r"http://\S+", each) for each in said)))
        reading = threading.Thread(target=process.stderr.read, daemon=True)
        reading.start()
        yield address[0], process
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a server in the folder of the test; its address."""
    with ExitStack() as opened:
        yield lambda *overrides: opened.enter_context(serve(tmp_path, *overrides))[0]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_clients_of_both_eras_call_read_and_are_asked(tmp_path: Path, start: Start, mode: str):
    address = start(*ASKING, f"mcp.plans={write_plans(tmp_path / 'plans')}")
    person = Person(confirm=True)
    told: list[str] = []

    async def note(_progress: float, _total: float | None, message: str | None) -> None:
        told.append(message or "")

    async def talk(client: Client) -> None:
        result = await client.call_tool("sum", {}, progress_callback=note)
        assert "42" in result.content[0].text  # type: ignore[union-attr]
        history = await client.read_resource(result.structured_content["resources"]["history"])
        assert json.loads(history.contents[0].text)["passes"]  # type: ignore[union-attr]

    run_client(address, talk, mode, elicitation_callback=person)
    assert len(person.seen) == 1
    assert told


def test_a_task_goes_on_without_its_client_and_is_there_for_the_next(
    start: Start, model: GatedModel
):
    address = start(*model.overrides)
    begun: list[str] = []

    async def begin(client: Client) -> None:
        begun.append((await begin_task(client, RUN_TASK, task="abc"))["taskId"])

    async def come_back(client: Client) -> None:
        assert (await ask_task(client, "get", begun[0]))["status"] == "working"
        model.open()
        done = await wait_for_task(client, begun[0])
        assert done["result"]["content"][0]["text"] == "cba"

    for talk in (begin, come_back):
        run_client(address, talk, extensions=[KnowsTasks()])


def test_a_client_that_hangs_up_ends_its_call(tmp_path: Path, start: Start, model: GatedModel):
    address = start(*model.overrides)

    async def talk(client: Client) -> None:
        async with anyio.create_task_group() as calls:
            calls.start_soon(client.call_tool, RUN_TASK, {"task": "abc"})
            while not model.server.requests:
                await anyio.sleep(0.02)
            calls.cancel_scope.cancel()

    run_client(address, talk)
    (record,) = tmp_path.glob("outputs/mcp/*/job.json")
    wait_for(lambda: json.loads(record.read_text())["cancelled"])


def post(address: str, headers: dict[str, str]) -> int:
    """The status of a request with these headers."""
    host, port = re.findall(r"//(.*):(\d+)/", address)[0]
    connection = HTTPConnection(host, int(port), timeout=30)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    connection.request("POST", "/mcp", body, {**usual, **headers})
    status = connection.getresponse().status
    connection.close()
    return status


def test_pages_of_other_sites_are_refused(start: Start):
    address = start("provider=simulated")
    own = address.partition("//")[2].partition("/")[0]
    port = own.partition(":")[2]
    assert post(address, {"Host": "evil.example"}) == 421
    assert post(address, {"Host": f"evil.example:{port}"}) == 421
    assert post(address, {"Host": own, "Origin": "https://evil.example"}) == 403
    assert post(address, {"Host": own, "Origin": "http://localhost:1"}) == 403
    assert post(address, {"Host": own, "Origin": "null"}) == 403
    for good in (
        {"Host": own},
        {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"},
    ):
        assert post(address, good) not in (403, 421)


def test_only_this_machine_reaches_it(tmp_path: Path):
    with serve(tmp_path, "provider=simulated") as (_, process):
        connections = psutil.Process(process.pid).net_connections()
        listening = {each.laddr.ip for each in connections if each.status == psutil.CONN_LISTEN}
    assert listening == {"127.0.0.1"}


def test_a_server_that_is_stopped_lets_its_runs_go_on_later(tmp_path: Path, model: GatedModel):
    begun: list[str] = []

    async def begin(client: Client) -> None:
        begun.append((await begin_task(client, RUN_TASK, task="abc"))["taskId"])
        while not model.server.requests:
            await anyio.sleep(0.02)

    async def look(client: Client) -> None:
        done = await wait_for_task(client, begun[0])
        assert done["result"]["content"][0]["text"] == "cba"

    with serve(tmp_path, *model.overrides) as (address, process):
        run_client(address, begin, extensions=[KnowsTasks()])
        process.send_signal(signal.SIGTERM)
        model.open()
        process.wait(30)
    with serve(tmp_path, *model.overrides) as (address, _):
        run_client(address, look, extensions=[KnowsTasks()])


def test_a_port_that_is_taken_is_refused(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = command_line(
            tmp_path, "provider=simulated", "mcp.transport=http", f"mcp.port={port}"
        )
        ended = subprocess.run(
            [line.command, *line.args], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
    assert ended.returncode == 2
    assert f"mcp.port={port}: Address already in use" in ended.stderr
