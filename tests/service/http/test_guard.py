"""Who may ask, from which page, how much, and how slowly."""

from __future__ import annotations

import asyncio
import base64
import resource
import socket
import threading
from contextlib import ExitStack

import httpx2
import openai
import pytest

from aeon.service.http import guard, server
from aeon.service.http.guard import is_this_machine
from aeon.service.jobs import JobRequest
from tests.service.gates import wait_for
from tests.service.http.conftest import TOKEN, Served, Start

SIMULATED = ("provider=simulated", "provider.seed=1")
BODY = {"model": "aeon", "messages": [{"role": "user", "content": "tea"}]}


def test_a_token_is_needed_where_there_is_one(start: Start):
    served = start(*SIMULATED, token=TOKEN)
    assert served.connect().models.list().data
    with pytest.raises(openai.AuthenticationError):
        served.connect(api_key="wrong").models.list()
    for path in ("/v1/models", "/runs", "/metrics", "/live.js", "/nothing"):
        refused = httpx2.get(served.url + path)
        assert refused.status_code == 401
        assert "Basic" in refused.headers["www-authenticate"]
    assert httpx2.get(f"{served.url}/healthz").json() == {"status": "ok"}


def test_a_browser_may_give_the_token_as_a_password(start: Start):
    served = start(*SIMULATED, token=TOKEN)
    assert httpx2.get(f"{served.url}/runs", auth=("me", TOKEN)).status_code == 200
    assert httpx2.get(f"{served.url}/runs", auth=("me", "wrong")).status_code == 401
    for given in ("Basic", "Basic %%%", "Basic " + base64.b64encode(b"\xff:x").decode(), "Bearer"):
        refused = httpx2.get(f"{served.url}/runs", headers={"authorization": given})
        assert refused.status_code == 401


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "10.0.0.1"]
)
def test_a_name_that_leads_here_by_now_is_refused(start: Start, host: str):
    served = start(*SIMULATED)
    refused = httpx2.get(f"{served.url}/v1/models", headers={"host": host})
    assert refused.status_code in (400, 403)


def test_a_proxy_before_a_server_with_a_token_has_a_name_of_its_own(start: Start):
    served = start(*SIMULATED, token=TOKEN)
    named = {"host": "runs.example", "origin": "https://runs.example"}
    assert httpx2.get(f"{served.url}/runs", auth=("me", TOKEN), headers=named).status_code == 200
    assert httpx2.get(f"{served.url}/runs", headers=named).status_code == 401


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:1", "127.0.0.1:8642", "127.9.9.9", "[::1]:8642", "[::1]"]
)
def test_this_machine_has_many_names(host: str):
    assert is_this_machine(host)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_origin_starts_nothing(start: Start, origin: str):
    served = start(*SIMULATED)
    refused = httpx2.post(
        f"{served.url}/v1/chat/completions", json=BODY, headers={"origin": origin}
    )
    assert refused.status_code == 403
    assert served.jobs.list_latest(1) == []


def test_what_a_page_may_send_without_leave_starts_nothing(start: Start):
    served = start(*SIMULATED)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
        refused = httpx2.post(
            f"{served.url}/v1/chat/completions", content=b"{}", headers={"content-type": kind}
        )
        assert refused.status_code == 415
    assert served.jobs.list_latest(1) == []


def test_a_large_request_is_refused_before_it_is_read(start: Start):
    served = start(*SIMULATED, most=1000)
    large = {**BODY, "more": "x" * 2000}
    refused = httpx2.post(f"{served.url}/v1/chat/completions", json=large)
    assert refused.status_code == 413
    assert refused.json()["error"]["code"] == "request_too_large"
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(_head("Content-Length: 99999999999"))
        assert client.recv(100).startswith(b"HTTP/1.1 413")
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(_head("Transfer-Encoding: chunked") + b"3e9\r\n" + b"x" * 1001 + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_a_request_that_never_ends_is_given_up(start: Start, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(guard, "_READ_SECONDS", 0.2)
    served = start(*SIMULATED)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(_head("Content-Length: 10") + b"x")
        assert client.recv(100).startswith(b"HTTP/1.1 408")


def test_a_request_that_broke_off_starts_nothing(start: Start):
    served = start(*SIMULATED)
    body = b'{"model": "aeon", "input": "tea", "background": true}'
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(_head(f"Content-Length: {len(body) + 1}") + body)
    assert served.connect().responses.create(model="aeon", input="coffee").output_text
    assert [each.record.task for each in served.jobs.list_latest(2)] == ["coffee"]


@pytest.mark.parametrize("begun", [b"", b"POST /v1/chat", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_a_connection_that_brings_no_request_is_closed(
    start: Start, monkeypatch: pytest.MonkeyPatch, begun: bytes
):
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.2)
    served = start(*SIMULATED)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(begun)
        client.settimeout(10)
        assert client.recv(100) == b""


@pytest.mark.slow
@pytest.mark.parametrize("begun", [b"POST /v1/chat", b"GET / HTTP/1.1\r\nHost: localhost\r\n"])
def test_nor_may_a_later_request_of_a_connection_never_arrive(
    start: Start, monkeypatch: pytest.MonkeyPatch, begun: bytes
):
    monkeypatch.setattr(server, "_REQUEST_SECONDS", 0.2)
    served = start(*SIMULATED)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.settimeout(10)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(1000).startswith(b"HTTP/1.1 200")
        client.sendall(begun)
        while client.recv(1000):
            pass


def test_no_more_connections_are_held_than_there_are_files_for(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    served = start(*SIMULATED)
    monkeypatch.setattr(resource, "getrlimit", lambda _: (5, 5))
    with ExitStack() as opened:
        for _ in range(2):
            opened.enter_context(socket.create_connection(("127.0.0.1", served.port)))
        wait_for(lambda: _is_closed_at_once(served.port))
    wait_for(lambda: not _is_closed_at_once(served.port))


class Connections:
    """The server's side of each connection, in their order; a test says when it looks after them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open: list[server._PatientProtocol] = []
        self.unsent_then = 0
        monkeypatch.setattr(server, "_REQUEST_SECONDS", 3600)
        made = server._PatientProtocol.connection_made

        def note(protocol: server._PatientProtocol, transport: asyncio.Transport) -> None:
            made(protocol, transport)
            self.open.append(protocol)

        monkeypatch.setattr(server._PatientProtocol, "connection_made", note)

    def count_unsent(self) -> int:
        """The bytes that the first client has not taken."""
        return int(self.open[0].transport.get_write_buffer_size())

    def empty_and_fill(self) -> None:
        """Let the first client have read all that was unsent, and as much more be written."""
        done = threading.Event()

        def empty_and_fill() -> None:
            self.open[0].resume_writing()
            self.open[0].pause_writing()
            done.set()

        self.open[0].loop.call_soon_threadsafe(empty_and_fill)
        assert done.wait(30)

    def look(self) -> bool:
        """Look after the first connection; whether its client is still there then."""
        looked = threading.Event()

        def look() -> None:
            self.open[0]._look()
            self.unsent_then = self.count_unsent()
            self.open[0].loop.call_soon(looked.set)  # after the loss of an aborted connection

        self.open[0].loop.call_soon_threadsafe(look)
        assert looked.wait(30)
        return self.open[0] in self.open[0].connections


LARGE = 16_000_000
"""More than the system's own buffers of a connection hold."""


def ask_for_much(client: socket.socket, served: Served, times: int) -> None:
    """Ask for a large answer, several times in one go."""
    asked = JobRequest("aeon", "tea", background=True, note={"metadata": {"large": "x" * LARGE}})
    job_id = served.jobs.submit(asked)
    request = f"GET /v1/responses/{job_id} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    client.sendall(request.encode() * times)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 3])
def test_a_client_that_takes_nothing_of_its_answers_is_dropped(
    start: Start, monkeypatch: pytest.MonkeyPatch, times: int
):
    connections = Connections(monkeypatch)
    served = start(*SIMULATED, "mode=single")
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        ask_for_much(client, served, times)
        wait_for(lambda: connections.open and connections.count_unsent())
        wait_for(lambda: not connections.look())


def test_a_client_that_takes_its_answer_slowly_is_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    connections = Connections(monkeypatch)
    served = start(*SIMULATED, "mode=single")
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.settimeout(60)
        ask_for_much(client, served, 1)
        wait_for(lambda: connections.open and connections.count_unsent())
        received = 0
        unsent_then = LARGE
        while received < LARGE:
            taken = len(client.recv(1_000_000))
            assert taken, "the connection was dropped"
            received += taken
            if connections.count_unsent() < unsent_then:
                connections.look()
                unsent_then = connections.unsent_then


@pytest.mark.slow
def test_a_client_that_reads_between_two_looks_is_not_dropped(
    start: Start, monkeypatch: pytest.MonkeyPatch
):
    connections = Connections(monkeypatch)
    served = start(*SIMULATED, "mode=single")
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        ask_for_much(client, served, 1)
        wait_for(lambda: connections.open and connections.count_unsent())
        assert connections.look()
        connections.empty_and_fill()
        assert connections.look()
        wait_for(lambda: not connections.look())


@pytest.mark.parametrize(
    ("files", "connections"),
    [(256, 102), (1024, 400), (65_536, 400), (resource.RLIM_INFINITY, 400)],
)
def test_runs_have_files_left_beside_the_connections(
    monkeypatch: pytest.MonkeyPatch, files: int, connections: int
):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (files, files))
    assert server.count_allowed_connections() == connections


def test_what_is_no_http_is_no_harm(start: Start):
    served = start(*SIMULATED)
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\r\n\r\n")
        assert b"400" in client.recv(100)
    wait_for(lambda: served.connect().models.list().data)


def _head(line: str) -> bytes:
    return (
        f"POST /v1/responses HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\n{line}\r\n\r\n"
    ).encode()


def test_each_answer_is_sent_at_once(start: Start):
    served = start(*SIMULATED)
    accepted: list[int] = []
    original = server._PatientProtocol.connection_made
    with pytest.MonkeyPatch.context() as patched:

        def look(self: server._PatientProtocol, transport: asyncio.Transport) -> None:
            found = transport.get_extra_info("socket")
            accepted.append(found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            original(self, transport)

        patched.setattr(server._PatientProtocol, "connection_made", look)
        assert httpx2.get(f"{served.url}/healthz").status_code == 200
    assert accepted
    assert all(accepted)


def _is_closed_at_once(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.settimeout(0.2)
        try:
            return client.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
