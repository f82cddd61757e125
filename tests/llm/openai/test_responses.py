"""The Responses API: what a server is sent, and what is read of its answers, as by chat completions."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon import Aeon
from aeon.domain.errors import (
    AnswerError,
    ConfigError,
    ConnectionFailed,
    ContextFull,
    EmptyAnswer,
    Filtered,
    LLMError,
    ProviderError,
    RateLimited,
    Refused,
    ServerFailed,
    StopRequested,
    Truncated,
)
from aeon.domain.request import LLMRequest, LLMResponse, Message, Parameters
from aeon.llm.dialects.dialect import Dialect, Wire
from aeon.llm.dialects.responses_answer import assemble_response
from aeon.llm.openai import background
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.openai.endpoint import Response
from aeon.llm.protocols import OfRun
from aeon.llm.settings import OpenAIProvider, RetrySettings
from aeon.llm.stack.retry import Retry
from aeon.llm.stack.stored import Stored
from aeon.llm.watching import WATCHER, Piece, Waiting, Watcher
from aeon.store.chain import one_call
from aeon.store.lookup import ByKey
from aeon.store.opening import store_in
from aeon.store.session import Session
from aeon.store.sqlite_store import SqliteStore, create_file
from tests.service.gates import wait_for
from tests.support.openai_server import Completion, Failure, Received, error
from tests.support.requests import SCHEMA, request
from tests.support.responses_server import ResponsesServer
from tests.support.timing import SOON

ANSWER = {"answer": "x"}
USAGE = {
    "prompt_tokens": 2100,
    "completion_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 1500, "cache_write_tokens": 400},
    "completion_tokens_details": {"reasoning_tokens": 30},
}
LONG = "What stays the same in all calls of a run. " * 120
Start = Callable[..., tuple[ResponsesServer, OpenAIAdapter]]


@pytest.fixture(autouse=True)
def ask_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "_FIRST_WAIT_SECONDS", 0.02)


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(script, **settings)`: a server that speaks both, and an adapter that asks it for responses."""
    with ExitStack() as running:

        def make(
            script: dict[str, Any] | None = None, **given: Any
        ) -> tuple[ResponsesServer, OpenAIAdapter]:
            server = running.enter_context(
                ResponsesServer(script or {"plan": ANSWER, "repair": ANSWER})
            )
            settings = {
                "base_url": server.url,
                "model": "m",
                "api": "responses",
                "timeout_seconds": 10.0,
                **given,
            }
            adapter = OpenAIAdapter(OpenAIProvider(**settings), "sk-a-secret")
            running.callback(adapter.close)
            return server, adapter

        yield make


def test_a_request_has_the_same_messages_schema_and_parameters(start: Start) -> None:
    server, adapter = start(temperature=0.5, max_tokens=700)
    asked = request(parameters=Parameters(effort="low"))
    assert json.loads(adapter.complete(asked).text) == ANSWER
    [body] = server.inputs
    assert body == {
        "model": "m",
        "input": [{"role": m.role, "content": m.content} for m in asked.messages],
        "text": {
            "format": {"type": "json_schema", "name": "plan", "schema": SCHEMA, "strict": True}
        },
        "temperature": 0.5,
        "max_output_tokens": 700,
        "reasoning": {"effort": "low"},
        "include": ["reasoning.encrypted_content"],
        "store": False,
    }


@pytest.mark.parametrize("stream", ["never", "always"])
def test_an_answer_is_read_as_that_of_a_chat_completion(start: Start, stream: str) -> None:
    script = {"plan": Completion(ANSWER, usage=USAGE)}
    _, adapter = start(script, stream=stream)
    by_chat = OpenAIAdapter(adapter._settings.model_copy(update={"api": "chat"}), "k")
    one = adapter.complete(request())
    other = by_chat.complete(request())
    by_chat.close()
    same = ("text", "usage", "model", "finish_reason", "endpoint", "usage_reported")
    assert [getattr(one, name) for name in same] == [getattr(other, name) for name in same]
    assert one.usage.cached_tokens == 1500
    assert one.usage.cache_write_tokens == 400
    assert one.usage.reasoning_tokens == 30
    assert one.response_id == "resp_1"


def test_the_text_of_a_stream_is_seen_as_it_comes(start: Start) -> None:
    _, adapter = start(stream="always")
    pieces: list[str] = []

    def tell(seen: Waiting | Piece) -> None:
        if isinstance(seen, Piece):
            pieces.append(seen.text)

    watcher = Watcher(tell, stream=True)
    token = WATCHER.set(watcher)
    try:
        text = adapter.complete(request()).text
    finally:
        WATCHER.reset(token)
    assert "".join(pieces) == text
    assert text


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (Completion('{"answer": "x', finish_reason="length", usage=USAGE), Truncated),
        (Completion("", finish_reason="content_filter", usage=USAGE), Filtered),
        (Completion(None, refusal="I will not", usage=USAGE), Refused),
        (Completion("", usage=USAGE), EmptyAnswer),
        (error(429, "slow down", code="rate_limit_exceeded"), RateLimited),
        (error(500, "it failed"), ServerFailed),
        (error(400, "too long", code="context_length_exceeded"), ProviderError),
    ],
)
@pytest.mark.parametrize("stream", ["never", "always"])
def test_what_is_no_answer_is_the_same_error_as_by_chat(
    start: Start, answer: Completion | Failure, raised: type[LLMError], stream: str
) -> None:
    _, adapter = start({"plan": answer}, stream=stream)
    by_chat = OpenAIAdapter(adapter._settings.model_copy(update={"api": "chat"}), "k")
    with pytest.raises(raised) as one:
        adapter.complete(request())
    with pytest.raises(raised) as other:
        by_chat.complete(request())
    by_chat.close()
    assert type(one.value) is type(other.value) is not ContextFull
    assert (one.value.message, one.value.usage) == (other.value.message, other.value.usage)


@pytest.mark.parametrize(
    ("failed", "raised"),
    [
        ({"code": "server_error", "message": "it broke"}, ServerFailed),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, RateLimited),
        ({"code": "misalignment_policy_violation", "message": "no"}, Filtered),
    ],
)
def test_a_response_that_has_failed_is_the_error_that_it_names(
    start: Start, failed: dict[str, str], raised: type[LLMError], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, adapter = start()
    whole = {"id": "resp_1", "object": "response", "status": "failed", "output": []}
    monkeypatch.setattr(server, "respond", lambda *_: {**whole, "error": failed})
    with pytest.raises(raised, match=failed["message"]):
        adapter.complete(request())


WHOLE: dict[str, Any] = {"id": "r", "object": "response", "status": "completed", "output": []}


@pytest.mark.slow
@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        {"object": "response"},
        {"object": "chat.completion", "choices": []},
        {**WHOLE, "output": "text"},
        {**WHOLE, "output": ["text"]},
        {**WHOLE, "output": [{"type": "message"}]},
        {**WHOLE, "output": [{"type": "message", "content": "text"}]},
        {**WHOLE, "output": [{"type": "message", "content": ["text", None]}]},
        {**WHOLE, "output": [{"type": "message", "content": [{"type": "output_text"}]}]},
        {**WHOLE, "output": [{"type": "reasoning", "summary": 3}], "usage": [1]},
        {**WHOLE, "usage": {"input_tokens": "many"}},
        {**WHOLE, "status": "incomplete", "incomplete_details": "cut"},
        {**WHOLE, "status": "in_progress"},
        {**WHOLE, "status": ["odd"]},
        {**WHOLE, "error": "it broke"},
        {**WHOLE, "error": {"code": 3}},
        {**WHOLE, "model": {}},
    ],
)
@pytest.mark.parametrize("how", [{}, {"background": True}])
def test_what_is_no_response_is_an_error_and_nothing_worse(
    start: Start, document: Any, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, adapter = start(timeout_seconds=0.5, **how)
    monkeypatch.setattr(server, "respond", lambda *_: document)
    monkeypatch.setattr(server, "retrieve", lambda *_: document)
    with pytest.raises(LLMError):
        adapter.complete(request())


@pytest.mark.parametrize(
    "events",
    [
        [],
        ["text"],
        [{"type": "response.output_text.delta"}],
        [{"type": "response.completed"}],
        [{"type": "response.completed", "response": "whole"}],
        [{"type": "error"}],
        [{"type": "error", "code": "server_error", "message": "it broke"}],
        [{"type": "response.created", "response": WHOLE}],
    ],
)
def test_a_stream_that_is_none_is_an_error_and_nothing_worse(
    start: Start, events: list[Any]
) -> None:
    body = assemble_response(events, lambda _: None)
    _, adapter = start()
    outcome = adapter._read(Response(200, {}, body), Wire(request(), adapter._settings), Dialect())
    assert isinstance(outcome.failure, LLMError)


def refuse(server: ResponsesServer, name: str, *, is_sent: Callable[[Any], bool]) -> None:
    """Have the server refuse a parameter as OpenAI does."""
    respond = server.respond

    def answer(body: Any, headers: Any) -> Any:
        if not is_sent(body):
            return respond(body, headers)
        server.refused.append(name)
        message = f"Unsupported parameter: '{name}' is not supported with this model."
        return Failure(400, body={"error": {"message": message, "param": name, "code": None}})

    server.respond = answer  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("name", "is_sent"),
    [
        ("temperature", lambda body: "temperature" in body),
        ("reasoning.effort", lambda body: "reasoning" in body),
        ("max_output_tokens", lambda body: "max_output_tokens" in body),
        ("include", lambda body: "include" in body),
        ("text.format", lambda body: body.get("text", {})["format"]["type"] == "json_schema"),
    ],
)
def test_a_parameter_that_is_refused_is_left_out_from_then_on(
    start: Start, name: str, is_sent: Callable[[Any], bool]
) -> None:
    server, adapter = start(temperature=0.5, max_tokens=700, effort="low")
    refuse(server, name, is_sent=is_sent)
    if name == "text.format":
        server.answer = lambda *_: Completion(ANSWER)  # type: ignore[method-assign]
    for _ in range(2):
        assert json.loads(adapter.complete(request()).text) == ANSWER
    assert server.refused == [name]
    assert len(server.inputs) == 2
    assert not any(is_sent(body) for body in server.inputs)


def test_reasoning_is_kept_between_the_repairs_of_one_call_and_no_further(start: Start) -> None:
    server, adapter = start()
    repair = request("repair")
    with one_call():
        adapter.complete(request())
        with one_call():
            adapter.complete(repair)
            adapter.complete(repair)
    with one_call():
        adapter.complete(repair)
    kinds = [[item.get("id") or item["role"] for item in body["input"]] for body in server.inputs]
    first = ["rs_1", "msg_1"]
    assert kinds == [
        ["system", "user"],
        ["system", *first, "user"],
        ["system", *first, "rs_2", "msg_2", "user"],
        ["system", "user"],
    ]


@pytest.mark.parametrize(("background", "lengths"), [(False, [2, 2]), (True, [2, 4])])
def test_reasoning_without_its_text_goes_back_only_to_a_server_that_keeps_it(
    start: Start, lengths: list[int], *, background: bool
) -> None:
    server, adapter = start(background=background)
    server.encrypts = False
    with one_call():
        adapter.complete(request())
        adapter.complete(request("repair"))
    assert [len(body["input"]) for body in server.inputs] == lengths


def test_reasoning_that_is_refused_costs_one_request(start: Start) -> None:
    server, adapter = start()
    respond = server.respond

    def answer(body: Any, headers: Any) -> Any:
        if len(body["input"]) > 2:
            server.refused.append("items")
            return error(400, "The encrypted content gAAA... could not be verified.")
        return respond(body, headers)

    server.respond = answer  # type: ignore[method-assign]
    with one_call():
        adapter.complete(request())
        adapter.complete(request("repair"))
        adapter.complete(request("repair"))
    assert server.refused == ["items"]


def test_a_refusal_that_merely_speaks_of_including_something_takes_no_reasoning_away(
    start: Start,
) -> None:
    server, adapter = start(temperature=0.5)
    respond = server.respond

    def answer(body: Any, headers: Any) -> Any:
        if "temperature" in body:
            return error(400, "Requests must not include 'temperature': it is not supported.")
        return respond(body, headers)

    server.respond = answer  # type: ignore[method-assign]
    adapter.complete(request())
    assert "include" in server.inputs[0]


def test_a_model_that_does_not_reason_is_asked_for_no_reasoning(start: Start) -> None:
    server, adapter = start(models=[{"match": "m", "efforts": []}])
    adapter.complete(request())
    assert "include" not in server.inputs[0]


def test_marks_for_the_cache_stand_on_the_parts_of_the_input(start: Start) -> None:
    server, adapter = start({"step": ANSWER}, prompt_cache="openai")
    user = Message("user", f"{LONG}Why?", (len(LONG),))
    OfRun(adapter, "a-run").complete(request("step", messages=(Message("system", "Brief."), user)))
    [body] = server.inputs
    marked, rest = body["input"][1]["content"]
    assert marked == {
        "type": "input_text",
        "text": LONG,
        "prompt_cache_breakpoint": {"mode": "explicit"},
    }
    assert rest == {"type": "input_text", "text": "Why?"}
    assert body["prompt_cache_key"] == "a-run"


def test_a_server_without_it_says_what_to_change(start: Start) -> None:
    server, adapter = start()
    server.has_responses = False
    with pytest.raises(ProviderError) as failed:
        adapter.complete(request())
    assert "provider.api=chat" in failed.value.hint


@pytest.mark.parametrize("has_responses", [True, False])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_which_interfaces_a_server_has_is_found_without_asking_a_model(
    start: Start, api: str, *, has_responses: bool
) -> None:
    server, adapter = start(api=api)
    server.has_responses = has_responses
    assert adapter.find_apis() == {"chat": True, "responses": has_responses}
    assert not server.requests


def test_a_server_that_is_down_or_wants_another_key_does_not_say(start: Start) -> None:
    server, adapter = start()
    server.key = "another"
    assert adapter.find_apis() == {"chat": None, "responses": None}
    down = OpenAIAdapter(OpenAIProvider(base_url="http://127.0.0.1:9/v1", model="m"), "k")
    assert down.find_apis() == {"chat": None, "responses": None}


def test_a_response_in_the_background_is_asked_for_until_it_is_done(start: Start) -> None:
    server, adapter = start(background=True, stream="always")
    seen: list[str] = []
    watcher = Watcher(lambda each: seen.append(each.text) if isinstance(each, Waiting) else None)
    token = WATCHER.set(watcher)
    try:
        assert json.loads(adapter.complete(request()).text) == ANSWER
    finally:
        WATCHER.reset(token)
    [body] = server.inputs
    assert (body["background"], body["store"]) == (True, True)
    assert "stream" not in body
    assert server.polled == ["resp_1", "resp_1"]
    assert seen == ["in the background: queued", "in the background: in progress"]
    assert server.cancelled == []


def test_a_poll_that_fails_does_not_lose_the_response(start: Start) -> None:
    server, adapter = start(background=True)
    server.failures = [error(503, "for a moment")]
    assert json.loads(adapter.complete(request()).text) == ANSWER
    assert len(server.inputs) == 1


def test_a_response_that_is_gone_is_an_error(start: Start) -> None:
    server, adapter = start(background=True)
    server.failures = [error(404, "Response not found.")]
    with pytest.raises(ProviderError, match="not found"):
        adapter.complete(request())


@pytest.mark.slow
def test_a_response_in_the_background_is_cancelled_when_its_run_is_stopped(start: Start) -> None:
    server, adapter = start(background=True)
    server.polls = 1_000
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()
    began = time.monotonic()
    with pytest.raises(StopRequested, match="in the background"):
        OfRun(adapter, "a-run", stopped.is_set).complete(request())
    assert server.cancelled == ["resp_1"]
    assert time.monotonic() - began < SOON


@pytest.mark.slow
def test_one_whose_provider_is_closed_is_waited_for_no_longer(start: Start) -> None:
    server, adapter = start(background=True)
    server.polls = 1_000
    threading.Timer(0.3, adapter.close).start()
    with pytest.raises(ProviderError, match="was closed"):
        adapter.complete(request())
    assert server.cancelled == ["resp_1"]


def test_one_that_cannot_be_asked_for_is_cancelled(start: Start) -> None:
    server, adapter = start(background=True)
    server.failures = [error(503, "down")] * 5
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    assert server.cancelled == ["resp_1"]


@pytest.mark.slow
def test_one_that_takes_longer_than_a_call_may_is_cancelled(start: Start) -> None:
    server, adapter = start(background=True, timeout_seconds=0.5)
    server.polls = 1_000
    with pytest.raises(ConnectionFailed, match="no answer within") as failed:
        adapter.complete(request())
    assert failed.value.timed_out
    assert server.cancelled == ["resp_1"]


class Killed(BaseException):
    """What a kill is to a call under way: nothing is cleaned up."""


class StoredCalls:
    """Makes one call in run after run, each with a store of its own, which goes on with those before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stores: list[SqliteStore] = []

    def ask(self, adapter: Any, attempts: int = 1) -> Any:
        """The answer of the next run."""
        folder = self._folder / str(len(self._stores))
        folder.mkdir()
        create_file(store_in(folder))
        own = SqliteStore(store_in(folder))
        before = [ByKey(store) for store in reversed(self._stores)]
        self._stores.append(own)
        retry = Retry(adapter, RetrySettings(attempts=attempts), sleep=lambda _: None)
        stored = Stored(retry, Session(before, own=own), adapter._settings)
        return json.loads(stored.complete(request()).text)

    def be_killed(self, adapter: OpenAIAdapter) -> None:
        """Have the next run killed while its response is in the background."""
        self._end_by(Killed(), adapter)

    def be_stopped(self, adapter: OpenAIAdapter) -> None:
        """Have the next run stopped while its response is in the background."""
        self._end_by(StopRequested("stopped"), adapter)

    def _end_by(self, end: BaseException, adapter: OpenAIAdapter) -> None:
        def raise_end(*_: object) -> None:
            raise end

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(background, "_wait_for_turn", raise_end)
            with pytest.raises(type(end)):
                self.ask(adapter)

    def ask_in_vain(self, adapter: OpenAIAdapter) -> None:
        """Have the next run's answer come to nothing."""
        with suppress(AnswerError), one_call():
            self.ask(adapter)
            raise AnswerError("of no use")

    def close(self) -> None:
        for store in self._stores:
            store.close()


@pytest.fixture
def calls(tmp_path: Path) -> Iterator[StoredCalls]:
    with closing(StoredCalls(tmp_path)) as stored:
        yield stored


@pytest.mark.parametrize("kills", [1, 2])
def test_after_a_kill_a_response_in_the_background_is_asked_for_again(
    start: Start, calls: StoredCalls, kills: int
) -> None:
    server, adapter = start(background=True)
    server.polls = 3
    for _ in range(kills):
        calls.be_killed(adapter)
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 1
    assert set(server.polled) == {"resp_1"}
    assert server.cancelled == []


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_with_its_response(tmp_path: Path) -> None:
    with ResponsesServer({"direct": {"working": None, "answer": "tea"}}) as server:
        server.polls = 1_000_000
        keys = (*server.overrides, "provider.require_key=false", "provider.api=responses")
        command = [sys.executable, "-m", "aeon", "provider.background=true", "mode=single", *keys]
        with subprocess.Popen(
            [*command, "task=what to drink", "hydra.run.dir=first"],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as killed:
            wait_for(lambda: server.polled)
            killed.kill()
        server.done.add("resp_1")
        resumed = subprocess.run(
            [sys.executable, "-m", "aeon", "resume=first"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert resumed.stdout == "tea\n", resumed.stderr
        assert len(server.inputs) == 1
        assert server.cancelled == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_one_that_the_server_does_not_give_is_made_anew(
    start: Start, calls: StoredCalls, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    server, adapter = start(background=True)
    calls.be_killed(adapter)
    server.failures = [error(status, "You cannot have response 'resp_1'.")]
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 2
    [line] = caplog.messages
    assert line.startswith("The server does not give the answer that an earlier run was waiting")
    assert f"({status})" in line


@pytest.mark.parametrize("kills", [0, 1])
def test_one_that_was_cancelled_with_its_run_is_not_asked_for_again(
    start: Start, calls: StoredCalls, kills: int, caplog: pytest.LogCaptureFixture
) -> None:
    server, adapter = start(background=True)
    server.polls = 3
    for _ in range(kills):
        calls.be_killed(adapter)
    calls.be_stopped(adapter)
    assert server.cancelled == ["resp_1"]
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 2
    assert caplog.messages == []


def test_one_that_was_done_when_its_run_was_stopped_is_used_by_the_next(
    start: Start, calls: StoredCalls
) -> None:
    server, adapter = start(background=True)
    server.done.add("resp_1")
    calls.be_stopped(adapter)
    assert server.cancelled == ["resp_1"]
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 1


class TwoCalls:
    """An adapter of one's own that makes two calls for each request."""

    def __init__(self, inner: OpenAIAdapter) -> None:
        self._inner = inner
        self._settings = inner._settings
        self.drafts: list[str] = []

    def complete(self, request: LLMRequest) -> LLMResponse:
        asked = replace(request, messages=(Message("user", "Draft it."),))
        draft = self._inner.complete(asked)
        self.drafts.append(draft.text)
        return self._inner.complete(request)


def test_each_of_several_calls_for_one_request_gets_its_own_response(
    start: Start, calls: StoredCalls
) -> None:
    def answer(received: Received) -> dict[str, str]:
        return {"answer": "draft" if "Draft it." in json.dumps(received.body) else "x"}

    server, inner = start({"plan": answer}, background=True)
    adapter = TwoCalls(inner)
    wait = background._wait_for_turn

    def die_in_the_second(*given: Any) -> None:
        if adapter.drafts:
            raise Killed
        wait(*given)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(background, "_wait_for_turn", die_in_the_second)
        with pytest.raises(Killed):
            calls.ask(adapter)
    assert calls.ask(adapter) == ANSWER
    assert adapter.drafts == ['{"answer": "draft"}'] * 2
    assert len(server.inputs) == 3


@pytest.mark.parametrize("status", ["cancelled", "failed"])
def test_one_that_gave_no_answer_is_made_anew(
    start: Start, calls: StoredCalls, status: str
) -> None:
    server, adapter = start(background=True)
    calls.be_killed(adapter)
    server.ended["resp_1"] = status
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 2


def test_one_of_another_server_is_not_asked_for(start: Start, calls: StoredCalls) -> None:
    there, adapter_there = start(background=True)
    server, adapter = start(background=True)
    calls.be_killed(adapter_there)
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 1
    assert there.polled == []


def test_a_server_that_is_down_after_a_kill_is_asked_again(
    start: Start, calls: StoredCalls
) -> None:
    server, adapter = start(background=True)
    calls.be_killed(adapter)
    server.failures = [error(503, "down")] * 5
    with pytest.raises(ServerFailed):
        calls.ask(adapter)
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 1


def test_a_server_that_is_down_for_one_attempt_still_has_the_response(
    start: Start, calls: StoredCalls
) -> None:
    server, adapter = start(background=True)
    calls.be_killed(adapter)
    server.failures = [error(503, "down")] * 5
    assert calls.ask(adapter, attempts=2) == ANSWER
    assert len(server.inputs) == 1


def test_one_that_is_empty_is_made_anew_by_the_next_attempt(
    start: Start, calls: StoredCalls
) -> None:
    server, adapter = start({"plan": [Completion(None), ANSWER]}, background=True)
    calls.be_killed(adapter)
    assert calls.ask(adapter, attempts=2) == ANSWER
    assert len(server.inputs) == 2


def test_one_that_is_empty_is_paid_once_and_made_anew_by_the_next_run(
    start: Start, calls: StoredCalls
) -> None:
    empty = Completion(None)
    server, adapter = start({"plan": [empty, empty, ANSWER]}, background=True)
    calls.be_killed(adapter)
    with pytest.raises(EmptyAnswer) as failed:
        calls.ask(adapter, attempts=2)
    assert failed.value.usage.requests == len(server.inputs) == 2
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 3


@pytest.mark.parametrize("kills", [0, 1, 2])
def test_an_answer_that_came_to_nothing_is_not_given_again(
    start: Start, calls: StoredCalls, kills: int
) -> None:
    server, adapter = start(background=True)
    for _ in range(kills):
        calls.be_killed(adapter)
    calls.ask_in_vain(adapter)
    assert len(server.inputs) == 1
    assert calls.ask(adapter) == ANSWER
    assert len(server.inputs) == 2


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["provider.background=true"], "background=true needs api=responses"),
        (["provider.api=responses", "provider.batch=true"], "batch=true needs api=chat"),
    ],
)
def test_what_does_not_go_together_is_refused(overrides: list[str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Aeon.from_config(["provider=openai", *overrides], environ={"OPENAI_API_KEY": "k"})


def test_a_client_of_ones_own_is_asked_by_responses_create(start: Start) -> None:
    from openai import OpenAI

    server, adapter = start()
    client = OpenAI(api_key="k", base_url=server.url)
    own = OpenAIAdapter(adapter._settings, client=client)
    answer: LLMResponse = own.complete(request())
    assert json.loads(answer.text) == ANSWER
    assert server.inputs[0]["text"]["format"]["name"] == "plan"


def test_azure_has_it_at_the_address_of_the_resource_in_both_of_its_forms(start: Start) -> None:
    server, adapter = start(background=True)
    server.responses_path = "/openai/responses"
    dated = adapter._settings.model_copy(
        update={
            "name": "azure",
            "base_url": server.url.removesuffix("/v1"),
            "api_version": "2025-04-01-preview",
        }
    )
    azure = OpenAIAdapter(dated, "k")
    assert json.loads(azure.complete(request()).text) == ANSWER
    azure.close()
    assert server.polled
    server.responses_path = "/openai/v1/responses"
    newest = {"base_url": server.url.removesuffix("/v1") + "/openai/v1/", "api_version": None}
    azure = OpenAIAdapter(dated.model_copy(update=newest), "k")
    assert json.loads(azure.complete(request()).text) == ANSWER
    azure.close()
