"""Servers that are slow: how long they are waited for, and how a connection is kept alive."""

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from openai import OpenAI, Stream

from aeon.domain.errors import ConnectionFailed, LLMError, ServerFailed
from aeon.domain.request import Usage
from aeon.llm.openai import adapter as openai_adapter
from aeon.llm.openai.answer import assemble
from aeon.llm.settings import RetrySettings
from aeon.llm.stack.retry import Retry
from tests.llm.openai.conftest import Connect
from tests.support.openai_server import Answer, Failure, OpenAIServer, Received
from tests.support.requests import request

AT_ONCE = RetrySettings(initial_seconds=0, jitter_seconds=0)
ANSWER = '{"answer": "x"}'
USAGE = {"prompt_tokens": 100, "completion_tokens": 20}


def event(choices: list[Any], **more: Any) -> str:
    return f"data: {json.dumps({'id': 'x', 'model': 'm', 'choices': choices, **more})}\n\n"


def stream(*texts: str, end: str | None = "stop") -> str:
    """An answer in parts, with a comment that keeps the connection alive, and its usage at the end."""
    parts = [
        event([{"index": 0, "delta": {"content": text}, "finish_reason": None}]) for text in texts
    ]
    last = [
        event([{"index": 0, "delta": {}, "finish_reason": end}]),
        event([], usage=USAGE),
        "data: [DONE]\n\n",
    ]
    return ": waiting\n\n" + "".join(parts) + ("".join(last) if end else "")


def test_an_answer_is_waited_for_once_as_long_as_a_call_may_take(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(delay=0.5)
    waits: list[float] = []
    with pytest.raises(ConnectionFailed, match=r"no answer within 0\.2 s"):
        Retry(connect(timeout_seconds=0.2), AT_ONCE, sleep=waits.append).complete(request())
    assert waits == []


def test_the_seconds_may_be_for_each_attempt(openai_server: OpenAIServer, connect: Connect) -> None:
    openai_server.script["plan"] = Failure(delay=0.4)
    with pytest.raises(ConnectionFailed, match="3 attempts made"):
        Retry(connect(timeout_seconds=0.1, timeout_per="attempt"), AT_ONCE).complete(request())


@pytest.mark.slow
def test_what_attempts_before_it_took_is_not_given_to_an_attempt(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = [Failure(500, delay=0.3), Failure(delay=2.0)]
    with pytest.raises(ConnectionFailed, match=r"no answer within 1\.\d* s"):
        Retry(connect(timeout_seconds=1.6), AT_ONCE).complete(request())


@pytest.mark.slow
def test_a_server_that_has_never_answered_is_waited_for_so_long_once(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(delay=0.8)
    adapter = connect(timeout_seconds=0.5)
    with pytest.raises(ConnectionFailed, match=r"within 0\.5 s"):
        adapter.complete(request())
    with pytest.raises(ConnectionFailed, match=r"within 0\.05 s"):
        adapter.complete(request())


@pytest.mark.slow
def test_a_server_that_has_answered_before_keeps_its_time(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = [{"answer": "x"}, Failure(delay=0.8), Failure(delay=0.8)]
    adapter = connect(timeout_seconds=0.4)
    adapter.complete(request())
    for _ in range(2):
        with pytest.raises(ConnectionFailed, match=r"within 0\.4 s"):
            adapter.complete(request())


@pytest.fixture
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection counts as idle at once."""
    monkeypatch.setattr(openai_adapter, "IDLE_SECONDS", 0.0)


def streaming_only(received: Received) -> Answer:
    """A proxy that cuts connections on which nothing comes."""
    if received.body.get("stream"):
        return Failure(
            200, body=stream('{"answer"', ': "x"}'), headers={"content-type": "text/event-stream"}
        )
    return Failure(504, html=True)


@pytest.mark.usefixtures("no_patience")
def test_a_request_that_was_cut_off_is_streamed_from_then_on(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = streaming_only
    adapter = connect()
    answer = Retry(adapter, AT_ONCE).complete(request())
    assert (answer.text, answer.model) == (ANSWER, "m")
    assert answer.usage == Usage.of_unanswered(request()) + Usage(100, 20, requests=1)
    assert not answer.usage_reported
    adapter.complete(request())
    asked = [received.body.get("stream", False) for received in openai_server.requests]
    assert asked == [False, True, True]
    assert openai_server.requests[-1].body["stream_options"] == {"include_usage": True}
    assert [finding.about for finding in adapter.findings()] == ["stream"]


def test_a_quick_failure_of_a_gateway_is_no_reason_to_stream(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = streaming_only
    with pytest.raises(ServerFailed):
        Retry(connect(), AT_ONCE).complete(request())


@pytest.mark.usefixtures("no_patience")
@pytest.mark.parametrize(("wanted", "answered"), [("always", True), ("never", False)])
def test_streaming_may_be_set(
    wanted: str, answered: bool, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = streaming_only
    adapter = Retry(connect(stream=wanted), AT_ONCE)
    if answered:
        assert adapter.complete(request()).text == ANSWER
        assert len(openai_server.requests) == 1
    else:
        with pytest.raises(ServerFailed):
            adapter.complete(request())


def test_a_server_that_knows_no_options_of_streams_is_sent_none(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    said = {"error": {"message": "Unknown parameter: 'stream_options'", "param": "stream_options"}}
    openai_server.script["plan"] = lambda got: (
        Failure(400, body=said) if "stream_options" in got.body else streaming_only(got)
    )
    assert connect(stream="always").complete(request()).text == ANSWER


def whole(text: str, told: list[str] | None = None) -> Mapping[str, Any]:
    """The document that a stream makes, as the SDK reads it."""
    response = httpx2.Response(
        200, content=text.encode(), request=httpx2.Request("POST", "http://x")
    )
    chunks = Stream(cast_to=object, response=response, client=OpenAI(api_key="none"))
    return json.loads(assemble(chunks, (told if told is not None else []).append))


def test_a_stream_is_the_document_that_it_would_have_been() -> None:
    assert whole(stream("a", "b")) == {
        "id": "x",
        "model": "m",
        "usage": USAGE,
        "choices": [{"message": {"role": "assistant", "content": "ab"}, "finish_reason": "stop"}],
    }
    call = [
        {"index": 0, "delta": {"tool_calls": [{"function": {"name": "plan", "arguments": '{"a'}}]}}
    ]
    more = [
        {
            "index": 0,
            "delta": {"tool_calls": [{"function": {"arguments": '": 1}'}}]},
            "finish_reason": "tool_calls",
        }
    ]
    message = whole(event(call) + event(more))["choices"][0]["message"]
    assert message["tool_calls"][0]["function"] == {"name": "plan", "arguments": '{"a": 1}'}


def test_only_the_ends_of_lines_end_a_line_of_a_stream() -> None:
    text = "one\u2028two\u2029three\x85four\x1cfive"
    raw = stream(text).replace(json.dumps(text), json.dumps(text, ensure_ascii=False))
    assert "\u2028" in raw
    assert whole(raw)["choices"][0]["message"]["content"] == text


def test_the_pieces_of_a_streamed_text_are_told_as_they_come() -> None:
    told: list[str] = []
    role = event([{"index": 0, "delta": {"role": "assistant", "content": None}}])
    other = event([{"index": 1, "delta": {"content": "another choice"}}])
    whole(role + other + stream("Tee: é中🍵 ", "data: [DONE]\n"), told)
    assert told == ["Tee: é中🍵 ", "data: [DONE]\n"]


def test_an_error_within_a_stream_is_that_error(
    openai_server: OpenAIServer, connect: Connect
) -> None:
    said = stream("a", end=None) + 'data: {"error": {"message": "busy", "code": 503}}\n\n'
    openai_server.script["plan"] = Failure(
        200, body=said, headers={"content-type": "text/event-stream"}
    )
    with pytest.raises(ServerFailed, match="busy") as raised:
        connect(stream="always").complete(request())
    assert raised.value.status == 503


BROKEN_IN_THE_MIDDLE = stream("a").replace("data: {", 'data: {"broken\n\ndata: {', 1)


@pytest.mark.parametrize(
    "text",
    [
        stream("a", end=None),
        BROKEN_IN_THE_MIDDLE,
        "data: {}\n\n",
        "data: 7\n\ndata: [",
        "data: \n\n: x\n",
    ],
)
def test_a_stream_that_ends_early_is_half_a_response(
    text: str, openai_server: OpenAIServer, connect: Connect
) -> None:
    openai_server.script["plan"] = Failure(200, body=text)
    with pytest.raises(LLMError, match="half a response") as raised:
        connect(stream="always").complete(request())
    assert raised.value.retryable
