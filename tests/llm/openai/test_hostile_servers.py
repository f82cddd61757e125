"""Servers that break HTTP, or try to break whoever asks them: every call ends, in an answer or a clear error."""

import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from aeon.domain.errors import ConnectionFailed, LLMError, NotAnAPI, RequestRefused, ServerFailed
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.openai.client import MAX_BYTES
from aeon.llm.settings import OpenAIProvider, RetrySettings
from aeon.llm.stack.retry import Retry
from tests.support.raw_server import RawServer, Respond, bomb, completion, reset, response, sends
from tests.support.requests import request
from tests.support.timing import SOON

MEGABYTE = 1024 * 1024
GZIP = {"content-encoding": "gzip"}
CHUNKED = {"content-length": "", "transfer-encoding": "chunked"}
Ask = Callable[..., OpenAIAdapter]


@pytest.fixture
def ask() -> Iterator[Callable[..., tuple[RawServer, OpenAIAdapter]]]:
    """`ask(respond, **settings)`: a server, and an adapter for it."""
    with ExitStack() as running:

        def make(respond: Respond, **settings: Any) -> tuple[RawServer, OpenAIAdapter]:
            server = running.enter_context(RawServer(respond))
            given = {"base_url": server.url, "timeout_seconds": 30.0, **settings}
            adapter = OpenAIAdapter(OpenAIProvider(**given), None)
            running.callback(adapter.close)
            return server, adapter

        yield make


def cut(data: bytes, at: int) -> Respond:
    """Part of a response, then a reset."""

    def respond(connection: socket.socket) -> None:
        connection.sendall(data[:at])
        time.sleep(0.05)
        reset(connection)

    return respond


@pytest.mark.parametrize(
    ("respond", "kind"),
    [
        pytest.param(sends(b""), ConnectionFailed, id="hangs up"),
        pytest.param(cut(b"", 0), ConnectionFailed, id="reset"),
        pytest.param(cut(response(completion()), 30), ConnectionFailed, id="reset in the headers"),
        pytest.param(cut(response(completion()), 150), ConnectionFailed, id="reset in the body"),
        pytest.param(sends(response(completion())[:-40]), ConnectionFailed, id="half a body"),
        pytest.param(
            sends(response(completion()[:-40], headers={"content-length": ""})),
            ConnectionFailed,
            id="cut",
        ),
        pytest.param(
            sends(response(completion(), headers={"content-length": "50"})),
            ConnectionFailed,
            id="too short",
        ),
        pytest.param(
            sends(response(completion(), headers={"content-length": "9999"})),
            ConnectionFailed,
            id="too long",
        ),
        pytest.param(
            sends(response(b"ZZ\r\n{}\r\n0\r\n\r\n", headers=CHUNKED)),
            LLMError,
            id="chunked rubbish",
        ),
        pytest.param(
            sends(response(b"5\r\n{\r\n", headers=CHUNKED)), ConnectionFailed, id="half a chunk"
        ),
        pytest.param(sends(b"SSH-2.0-OpenSSH_9.6\r\n"), LLMError, id="not http"),
        pytest.param(sends(b"\x00\xff" * 500), LLMError, id="noise"),
        pytest.param(
            sends(response(b"", headers={"x-filler": "x" * 100_000})), LLMError, id="endless header"
        ),
        pytest.param(sends(response(b"{}" * 9, headers=GZIP)), NotAnAPI, id="not packed"),
        pytest.param(sends(response(bomb(2 * MAX_BYTES), headers=GZIP)), NotAnAPI, id="bomb"),
        pytest.param(
            sends(response(bomb(2 * MAX_BYTES), "500 Oh", GZIP)), LLMError, id="bomb in an error"
        ),
        pytest.param(
            sends(response(bomb(MEGABYTE, 2), headers={"content-encoding": "gzip, gzip"})),
            NotAnAPI,
            id="double",
        ),
    ],
)
@pytest.mark.timeout(60)
def test_broken_and_hostile_responses_end_in_a_clear_error(
    respond: Respond, kind: type[LLMError], ask: Any
) -> None:
    server, adapter = ask(respond)
    with pytest.raises(kind) as raised:
        adapter.complete(request())
    assert server.url in raised.value.message
    assert len(raised.value.message) < 500
    assert raised.value.hint
    assert server.requests == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", ["200 OK", "500 Oh"])
def test_a_packed_bomb_is_not_unpacked_into_memory(status: str, ask: Any) -> None:
    _, adapter = ask(sends(response(bomb(10 * MAX_BYTES), status, GZIP)))
    with pytest.raises(LLMError):
        adapter.complete(request())
    tracemalloc.start()
    try:
        with pytest.raises(LLMError):
            adapter.complete(request())
        assert tracemalloc.get_traced_memory()[1] < 5 * MAX_BYTES
    finally:
        tracemalloc.stop()


def test_a_packed_answer_is_unpacked(ask: Any) -> None:
    import gzip

    _, adapter = ask(sends(response(gzip.compress(completion()), headers=GZIP)))
    assert adapter.complete(request()).text == '{"answer": "x"}'


def silent(connection: socket.socket) -> None:
    connection.recv(1)


def dripping(connection: socket.socket) -> None:
    connection.sendall(response(b"", headers={"content-length": "9999"}))
    for _ in range(100):
        connection.sendall(b" ")
        time.sleep(0.05)


def endless(connection: socket.socket) -> None:
    connection.sendall(response(b"", headers={"content-length": ""}))
    while True:
        connection.sendall(b" " * 65536)


@pytest.mark.parametrize("respond", [silent, dripping])
def test_silence_and_slowness_end_after_the_attempts_time(respond: Respond, ask: Any) -> None:
    _, adapter = ask(respond, timeout_seconds=0.3)
    begin = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.3 s"):
        adapter.complete(request())
    assert time.monotonic() - begin < SOON


def test_a_response_without_an_end_is_left(ask: Any) -> None:
    _, adapter = ask(endless)
    with pytest.raises(NotAnAPI, match="more than"):
        adapter.complete(request())


def test_a_server_that_closes_kept_connections_costs_no_answer(ask: Any) -> None:
    _, adapter = ask(sends(response(completion())))
    patient = Retry(adapter, RetrySettings(initial_seconds=0, jitter_seconds=0))
    for _ in range(10):
        assert patient.complete(request()).text == '{"answer": "x"}'


def test_a_refusal_counts_where_its_connection_is_closed_unsaid(ask: Any) -> None:
    _, adapter = ask(sends(response(b'{"error": {"message": "Bad request"}}', "400 Bad Request")))
    with pytest.raises(RequestRefused, match="Bad request"):
        Retry(adapter, RetrySettings(initial_seconds=0, jitter_seconds=0)).complete(request())


def test_a_server_that_hangs_up_on_whatever_comes_next_is_asked_over_new_connections(
    ask: Any,
) -> None:
    def respond(connection: socket.socket) -> None:
        connection.sendall(response(b'{"error": {"message": "Bad request"}}', "400 Bad Request"))
        connection.recv(1)

    _, adapter = ask(respond)
    with pytest.raises(RequestRefused, match="Bad request"):
        Retry(adapter, RetrySettings(initial_seconds=0, jitter_seconds=0)).complete(request())


def test_half_responses_now_and_then_are_made_good_by_trying_again(ask: Any) -> None:
    closed = {"connection": "close"}
    answers = iter(
        [
            response(completion())[:-9],
            response(b"", "503 Busy", closed),
            response(completion(), headers=closed),
        ]
    )
    server, adapter = ask(lambda connection: connection.sendall(next(answers)))
    patient = Retry(adapter, RetrySettings(initial_seconds=0, jitter_seconds=0))
    assert patient.complete(request()).text == '{"answer": "x"}'
    assert server.requests == 3


def test_an_error_with_a_packed_reason_is_told(ask: Any) -> None:
    import gzip

    _, adapter = ask(
        sends(response(gzip.compress(b'{"error": {"message": "oh dear"}}'), "503 Busy", GZIP))
    )
    with pytest.raises(ServerFailed, match="oh dear"):
        adapter.complete(request())
