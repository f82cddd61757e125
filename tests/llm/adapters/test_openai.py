"""The OpenAI adapter against a real server on loopback."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from aeon.errors import (
    AeonError,
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    EmptyAnswer,
    Filtered,
    NotAnAPI,
    ProviderError,
    RateLimited,
    Refused,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.llm.adapters.openai import OpenAIAdapter
from aeon.llm.interface import Message, Parameters, Usage
from aeon.llm.settings import OpenAIProvider
from tests.support.openai_server import Completion, Failure, OpenAIServer, error
from tests.support.requests import SCHEMA, request

KEY = "sk-a-secret-that-nobody-may-see"
Connect = Callable[..., OpenAIAdapter]


@pytest.fixture
def connect(openai_server: OpenAIServer) -> Iterator[Connect]:
    """Makes adapters for the server, and closes them."""
    with contextlib.ExitStack() as open_adapters:

        def make(key: str | None = KEY, headers: dict[str, str] | None = None, **settings: Any) -> OpenAIAdapter:
            given = {"base_url": openai_server.url, "timeout_seconds": 5.0, **settings}
            adapter = OpenAIAdapter(OpenAIProvider(**given), key, headers)
            open_adapters.callback(adapter.close)
            return adapter

        yield make


def everything_said(failure: BaseException) -> str:
    """All text that printing an error with its causes could show."""
    said, chain = "", failure
    while chain is not None:
        said += f"{chain!r} {chain} {getattr(chain, 'hint', '')} {vars(chain) if isinstance(chain, AeonError) else ''}"
        chain = chain.__cause__ or chain.__context__
    return said


def test_sends_a_strict_json_schema_request_and_returns_the_text(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = {"answer": "because"}
    response = connect(model="m-1").complete(request())
    assert response.text == '{"answer": "because"}'
    assert (response.model, response.finish_reason, response.response_id) == ("scripted-1", "stop", "chatcmpl-1")
    assert response.synthetic is False
    [received] = openai_server.requests
    assert received.body == {
        "model": "m-1",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "plan", "schema": SCHEMA, "strict": True}},
    }
    assert received.headers["authorization"] == f"Bearer {KEY}"


def test_a_schema_that_is_not_strict_is_sent_as_such(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["tool_arguments"] = {"anything": 1}
    connect().complete(request("tool_arguments", schema={"type": "object"}, strict=False))
    assert openai_server.requests[0].strict is False


def test_the_requests_parameters_win_over_the_providers(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect(model="base", temperature=0.0, max_tokens=100, effort="low", extra_body={"seed": 7})
    adapter.complete(request(parameters=Parameters(model="better", effort="high")))
    body = openai_server.requests[0].body
    sent = {name: body[name] for name in ("model", "temperature", "max_completion_tokens", "reasoning_effort", "seed")}
    assert sent == {
        "model": "better",
        "temperature": 0.0,
        "max_completion_tokens": 100,
        "reasoning_effort": "high",
        "seed": 7,
    }


def test_the_token_limit_goes_by_the_name_that_the_server_knows(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    connect(max_tokens=50, max_tokens_parameter="max_tokens").complete(request())
    body = openai_server.requests[0].body
    assert body["max_tokens"] == 50
    assert "max_completion_tokens" not in body


@pytest.mark.parametrize("name", ["Authorization", "authorization"])
def test_extra_headers_go_with_every_request_and_win_over_the_key(
    name: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    for key in (KEY, None):
        connect(key, headers={"X-Team": "blue", name: "Basic abc"}).complete(request())
    for received in openai_server.requests:
        assert (received.headers["x-team"], received.headers["authorization"]) == ("blue", "Basic abc")


def test_without_a_key_no_authorization_is_sent_even_if_the_environment_has_one(
    openai_server: OpenAIServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    openai_server.script["plan"] = {"answer": "x"}
    connect(None).complete(request())
    assert "authorization" not in openai_server.requests[0].headers


def test_text_in_any_script_arrives_as_it_was_written(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = lambda received: Completion({"answer": received.user})
    text = 'quotes " \\ ${x} {{ y }} \n\ttabs, 中文, עברית, 🙂, \u2028'
    response = connect().complete(request(messages=(Message("user", text),)))
    assert openai_server.requests[0].user == text
    assert response.text.isascii()


def test_usage_has_cached_and_reasoning_tokens(openai_server: OpenAIServer, connect: Connect) -> None:
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "total_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 12},
    }
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    assert connect().complete(request()).usage == Usage(100, 20, 64, 12, 1)


@pytest.mark.parametrize(
    ("usage", "read"),
    [
        (None, Usage(requests=1)),
        ({}, Usage(requests=1)),
        ({"prompt_tokens": 3, "completion_tokens": None, "prompt_tokens_details": None}, Usage(3, requests=1)),
        ({"prompt_tokens": "many"}, Usage(requests=1)),
    ],
)
def test_usage_that_is_missing_or_odd_counts_as_nothing_and_costs_no_answer(
    usage: Any, read: Usage, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Completion({"answer": "x"}, usage=usage)
    response = connect().complete(request())
    assert (response.text, response.usage) == ('{"answer": "x"}', read)


@pytest.mark.parametrize(
    ("answer", "kind", "hint"),
    [
        (Completion('{"answer": "bec', finish_reason="length"), Truncated, "provider.max_tokens"),
        (Completion(None, finish_reason="length"), Truncated, "provider.max_tokens"),
        (Completion(None, refusal="I cannot help with that."), Refused, "another model"),
        (Completion(None, finish_reason="content_filter"), Filtered, "another filter"),
        (Completion(None), EmptyAnswer, "structured output"),
        (Completion(" \n"), EmptyAnswer, "structured output"),
    ],
)
def test_an_answer_without_a_usable_text_is_an_error_that_knows_what_was_paid(
    answer: Completion, kind: type[AeonError], hint: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = answer
    with pytest.raises(kind) as failure:
        connect().complete(request())
    assert failure.value.usage == Usage(100, 20, requests=1)
    assert "plan" in failure.value.message
    assert hint in failure.value.hint
    assert not failure.value.retryable


def test_a_refusal_is_quoted(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Completion(None, refusal="I cannot help with that.")
    with pytest.raises(Refused, match="I cannot help with that"):
        connect().complete(request())


@pytest.mark.parametrize(
    ("failure", "kind", "retryable", "message", "hint"),
    [
        (error(400, "temperature is not supported"), RequestRefused, False, "temperature is not supported", "model"),
        (error(400, "too long", "context_length_exceeded"), RequestRefused, False, "too long", "larger context"),
        (error(401, "no such key"), AuthenticationFailed, False, "no such key", "OPENAI_API_KEY"),
        (error(403, "not yours"), AuthenticationFailed, False, "not yours", "OPENAI_API_KEY"),
        (error(404, "no such model"), RequestRefused, False, "no such model", "provider.model"),
        (Failure(404, body={"detail": "Not Found"}), RequestRefused, False, "Not Found", "provider.base_url"),
        (error(408, "late"), ServerFailed, True, "late", "fails"),
        (error(409, "busy"), ServerFailed, True, "busy", "fails"),
        (error(413, "too large"), RequestRefused, False, "too large", "model"),
        (error(422, "odd"), RequestRefused, False, "odd", "model"),
        (error(429, "slow down"), RateLimited, True, "slow down", "execution.max_parallel"),
        (error(500, "oh dear"), ServerFailed, True, "oh dear", "fails"),
        (error(503, "overloaded"), ServerFailed, True, "overloaded", "fails"),
        (Failure(502, html=True), ServerFailed, True, "HTML page", "fails"),
        (Failure(404, html=True), NotAnAPI, False, "HTML page", "provider.base_url"),
        (Failure(500, body=""), ServerFailed, True, "no reason given", "fails"),
        (Failure(418, body='["odd"]'), RequestRefused, False, "odd", "model"),
    ],
)
def test_an_error_status_is_mapped_with_the_servers_words_and_a_hint(
    failure: Failure,
    kind: type[ProviderError],
    retryable: bool,
    message: str,
    hint: str,
    openai_server: OpenAIServer,
    connect: Connect,
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(ProviderError) as raised:
        connect().complete(request())
    assert type(raised.value) is kind
    assert (raised.value.retryable, raised.value.status) == (retryable, failure.status)
    assert str(failure.status) in raised.value.message
    assert message in raised.value.message
    assert hint in raised.value.hint
    assert len(openai_server.requests) == 1, "the SDK must not retry by itself"


@pytest.mark.parametrize(
    "failure",
    [
        Failure(200, html=True),
        Failure(200, body="not json", headers={"content-type": "application/json"}),
        Failure(200, body="just text", headers={"content-type": "text/plain"}),
        Failure(200, body=""),
        Failure(200, body="[]"),
        Failure(200, body={"error": {"message": "no credit"}}),
        Failure(200, body={"choices": []}),
        Failure(200, body={"choices": None}),
        Failure(200, body={"choices": [{"message": {"content": 7}}]}),
        Failure(200, headers={"content-encoding": "gzip"}),
        Failure(200, headers={"content-length": "many"}),
        Failure(304),
        Failure(308, headers={"location": "/v1/chat/completions"}),
    ],
)
def test_what_is_no_chat_completion_names_the_base_url(
    failure: Failure, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(NotAnAPI) as raised:
        connect().complete(request())
    assert openai_server.url in raised.value.hint
    assert not raised.value.retryable


def test_what_the_server_says_is_shortened(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = error(400, "x" * 10_000)
    with pytest.raises(RequestRefused) as raised:
        connect().complete(request())
    assert len(raised.value.message) < 400


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "7", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_the_wait_that_the_server_asks_for_is_kept(
    status: int, headers: dict[str, str], seconds: float | None, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(status, headers=headers)
    with pytest.raises(ProviderError) as raised:
        connect().complete(request())
    assert raised.value.retry_after == seconds


@pytest.mark.parametrize("failure", [Failure(reset=True), Failure(200, headers={"content-length": "9999"})])
def test_a_broken_connection_can_be_retried(failure: Failure, openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = failure
    with pytest.raises(ConnectionFailed) as raised:
        connect(timeout_seconds=0.5).complete(request())
    assert openai_server.url in raised.value.message
    assert "provider.base_url" in raised.value.hint
    assert raised.value.retryable


def test_a_reset_is_not_called_a_timeout(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Failure(reset=True)
    with pytest.raises(ConnectionFailed, match="reset"):
        connect().complete(request())


def test_a_server_that_is_not_there_is_named(openai_server: OpenAIServer) -> None:
    with OpenAIServer() as gone:
        url = gone.url
    adapter = OpenAIAdapter(OpenAIProvider(base_url=url), KEY)
    with pytest.raises(ConnectionFailed) as raised:
        adapter.complete(request())
    adapter.close()
    assert url in raised.value.message
    assert url in raised.value.hint


def test_a_slow_server_ends_the_attempt_after_its_time(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Failure(delay=0.6)
    begin = time.monotonic()
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.15 s") as raised:
        connect(timeout_seconds=0.15).complete(request())
    assert time.monotonic() - begin < 0.5
    assert "provider.timeout_seconds=0.15" in raised.value.hint


def test_64_calls_are_in_flight_at_once(openai_server: OpenAIServer, connect: Connect) -> None:
    together = threading.Barrier(64, timeout=10)
    openai_server.script["step"] = lambda received: (together.wait(), Completion({"answer": received.user}))[1]
    adapter = connect(timeout_seconds=20)
    asked = [request("step", messages=(Message("user", str(number)),)) for number in range(64)]
    with ThreadPoolExecutor(64) as pool:
        responses = list(pool.map(adapter.complete, asked))
    assert [response.text for response in responses] == [f'{{"answer": "{number}"}}' for number in range(64)]
    assert openai_server.max_in_flight == 64


def test_no_more_than_max_connections_are_in_flight_and_waiting_is_not_a_timeout(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["step"] = Completion({"answer": "x"}, delay=0.1)
    adapter = connect(max_connections=2, timeout_seconds=0.35)
    with ThreadPoolExecutor(10) as pool:
        responses = list(pool.map(adapter.complete, [request("step")] * 10))
    assert len(responses) == 10
    assert openai_server.max_in_flight == 2


@pytest.mark.parametrize("echo", [f"Incorrect API key provided: {KEY}", "header was team-secret"])
@pytest.mark.parametrize("status", [400, 401, 429, 500, 200])
def test_no_secret_is_shown_even_if_the_server_echoes_it(
    status: int, echo: str, openai_server: OpenAIServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    openai_server.script["plan"] = Failure(status, body={"error": {"message": echo, "code": echo}})
    adapter = connect(headers={"X-Team": "team-secret"})
    with pytest.raises(ProviderError) as raised:
        adapter.complete(request())
    shown = everything_said(raised.value) + repr(adapter) + caplog.text
    assert KEY not in shown
    assert "team-secret" not in shown
    assert "[secret]" in raised.value.message


def test_a_password_in_the_base_url_is_refused_without_being_shown(connect: Connect) -> None:
    with pytest.raises(ConfigError, match="user or a password") as raised:
        connect(base_url="http://me:hunter2@localhost:8000/v1")
    assert "hunter2" not in everything_said(raised.value)


@pytest.mark.parametrize("key", ["sk-with\nnewline", "sk-with-é"])
def test_a_key_that_cannot_be_sent_is_refused_without_being_shown(key: str, connect: Connect) -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY") as raised:
        connect(key)
    assert key not in everything_said(raised.value)


@pytest.mark.parametrize("headers", [{"X Team": "a"}, {"X-Team": "a\nb"}, {"": "a"}])
def test_a_header_that_cannot_be_sent_is_refused(headers: dict[str, str], connect: Connect) -> None:
    with pytest.raises(ConfigError, match="extra_headers_env"):
        connect(headers=headers)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://example.org", "http://", "http://[::1", "nonsense"])
def test_a_base_url_that_is_none_is_refused_before_any_call(url: str, connect: Connect) -> None:
    with pytest.raises(ConfigError, match="base_url") as raised:
        connect(base_url=url)
    assert "http://localhost:8000/v1" in raised.value.hint


def test_a_prompt_that_is_not_unicode_is_refused(connect: Connect) -> None:
    with pytest.raises(RequestRefused, match="surrogates") as raised:
        connect().complete(request(messages=(Message("user", "half \ud83d a pair"),)))
    assert "Unicode" in raised.value.hint


def test_closing_ends_a_call_under_way(openai_server: OpenAIServer, connect: Connect) -> None:
    arrived, release = threading.Event(), threading.Event()
    openai_server.script["plan"] = lambda _: (arrived.set(), release.wait(5), Failure(500))[2]
    adapter = connect()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(adapter.complete, request())
        assert arrived.wait(5)
        adapter.close()
        with pytest.raises(ProviderError, match="closed while a plan call was under way"):
            call.result(5)
    release.set()


def test_a_closed_adapter_connects_again_when_it_is_used_again(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect()
    for _ in range(2):
        assert adapter.complete(request()).text == '{"answer": "x"}'
        adapter.close()
    adapter.close()


def test_a_connection_is_kept_for_the_next_call(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    adapter = connect()
    for _ in range(5):
        adapter.complete(request())
    assert openai_server.connections == 1


def test_importing_and_building_the_adapter_does_not_import_the_sdk() -> None:
    code = (
        "import sys; from aeon.llm.adapters.openai import OpenAIAdapter; from aeon.llm.settings import OpenAIProvider;"
        "OpenAIAdapter(OpenAIProvider(), 'k'); print([m for m in ('openai', 'aiohttp') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_process_that_never_closes_its_adapter_ends_silently(openai_server: OpenAIServer) -> None:
    openai_server.script["plan"] = {"answer": "x"}
    code = (
        "from aeon.llm.adapters.openai import OpenAIAdapter; from aeon.llm.settings import OpenAIProvider;"
        "from tests.support.requests import request;"
        f"print(OpenAIAdapter(OpenAIProvider(base_url={openai_server.url!r}), 'k').complete(request()).text)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ('{"answer": "x"}', "")
