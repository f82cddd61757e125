"""Finding out what a server can do: what is tried, what is believed, what is remembered, and what it costs."""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    ConnectionFailed,
    EmptyAnswer,
    NotAnAPI,
    ProviderError,
    RateLimited,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.domain.request import Message, Parameters
from aeon.llm.openai.adapter import OpenAIAdapter
from aeon.llm.settings import OpenAIProvider
from tests.support import able_server as servers
from tests.support.able_server import AbleServer, with_message
from tests.support.fences import texts_in
from tests.support.openai_server import Completion, Failure, error
from tests.support.requests import SCHEMA, request

ANSWER = '{"answer": "x"}'
ALL_HAVE_STARTED = 0.3
Start = Callable[..., tuple[AbleServer, OpenAIAdapter]]


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(settings, **abilities)`: a server that answers every call, and an adapter for it."""
    with ExitStack() as running:

        def make(
            settings: dict[str, Any] | None = None, **abilities: Any
        ) -> tuple[AbleServer, OpenAIAdapter]:
            script = {call: {"answer": "x"} for call in ("task_profile", "plan", "step", "repair")}
            server = running.enter_context(AbleServer(script, **abilities))
            given = {
                "base_url": server.url,
                "timeout_seconds": 30.0,
                "model": "m",
                **(settings or {}),
            }
            adapter = OpenAIAdapter(OpenAIProvider(**given), "sk-a-secret")
            running.callback(adapter.close)
            return server, adapter

        yield make


def test_a_refused_form_is_tried_no_more_and_said_once(start: Start) -> None:
    server, adapter = start(forms={"json_object"})
    for _ in range(3):
        assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", *["json_object+"] * 3]
    [told] = adapter.findings(only_new=True)
    assert (
        str(told)
        == "openai, model m: does not take json_schema: json_object and the schema in the prompt from now on; "
        "provider.structured_output=json_object skips the trial"
    )
    assert adapter.findings(only_new=True) == ()
    assert adapter.findings() == (told,)


def test_what_is_known_is_known_to_every_adapter_of_that_address_and_model_and_to_no_other(
    start: Start,
) -> None:
    server, adapter = start(forms={"text"})
    adapter.complete(request())
    OpenAIAdapter(OpenAIProvider(base_url=server.url, model="m"), None).complete(request())
    assert server.forms_asked == ["json_schema", "json_object+", "text+", "text+"]
    adapter.complete(request(parameters=Parameters(model="another")))
    assert server.forms_asked[4:] == ["json_schema", "json_object+", "text+"]


def test_the_schema_goes_to_the_end_of_the_system_message_and_the_request_stays_as_it_is(
    start: Start,
) -> None:
    server, adapter = start({"structured_output": "prompt"})
    asked = request()
    adapter.complete(asked)
    system, user = server.bodies[0]["messages"]
    assert system["content"].startswith("Be brief.\n\nAnswer with one JSON value")
    assert texts_in(system["content"], "json_schema")[0].startswith('{"type":"object","properties"')
    assert user == {"role": "user", "content": "Why?"}
    assert asked.messages == (Message("system", "Be brief."), Message("user", "Why?"))
    adapter.complete(request(messages=(Message("user", "Why?"),)))
    assert [message["role"] for message in server.bodies[1]["messages"]] == ["system", "user"]


def test_a_schema_that_the_prompt_shows_already_is_not_repeated(start: Start) -> None:
    server, adapter = start({"structured_output": "json_object"})
    shown = '{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}'
    adapter.complete(
        request("repair", messages=(Message("system", "Mend."), Message("user", f"By {shown}")))
    )
    assert server.bodies[0]["messages"][0]["content"].startswith(
        "Mend.\n\nAnswer with one JSON value that matches the"
    )
    assert str(server.bodies[0]["messages"]).count("additionalProperties") == 1


@pytest.mark.parametrize(
    ("failure", "kind", "tries"),
    [
        (error(400, "the model is busy being odd"), RequestRefused, 3),
        (error(404, "no such model", "model_not_found"), RequestRefused, 1),
        (error(400, "too long", "context_length_exceeded"), RequestRefused, 1),
        (error(401, "no such key"), AuthenticationFailed, 1),
        (error(403, "not yours"), AuthenticationFailed, 1),
        (error(402, "pay first"), ProviderError, 1),
        (error(429, "slow down"), RateLimited, 1),
        (error(500, "oh dear"), ServerFailed, 1),
        (error(502, "bad gateway"), ServerFailed, 1),
        (error(503, "overloaded"), ServerFailed, 1),
        (error(503, "response_format is not supported"), ServerFailed, 3),
        (Failure(404, html=True), NotAnAPI, 1),
        (Failure(200, html=True), NotAnAPI, 1),
        (Failure(200, body={"error": {"code": 429, "message": "slow down"}}), RateLimited, 1),
        (Failure(reset=True), ConnectionFailed, 1),
    ],
)
def test_where_no_form_helps_the_first_error_is_told_and_nothing_is_believed(
    failure: Failure, kind: type[AeonError], tries: int, start: Start
) -> None:
    server, adapter = start(forms=set(), says=failure)
    with pytest.raises(kind):
        adapter.complete(request())
    assert len(server.bodies) == tries
    assert adapter.findings() == ()
    server.forms = {"json_schema", "text"}
    assert adapter.complete(request()).text == ANSWER


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (
            error(
                400, "This model's maximum context length is 9 tokens.", "context_length_exceeded"
            ),
            RequestRefused,
        ),
        (error(401, "no such key"), AuthenticationFailed),
        (Failure(reset=True), ConnectionFailed),
    ],
)
def test_what_stops_the_next_form_is_told_where_the_first_was_refused_as_a_form(
    failure: Failure, kind: type[AeonError], status: int, start: Start
) -> None:
    server, adapter = start(forms={"json_object"}, says=error(status, "response_format: not built"))
    server.script = {"plan": failure}
    with pytest.raises(kind) as raised:
        adapter.complete(request())
    assert "response_format" not in raised.value.message
    assert server.forms_asked == ["json_schema", "json_object+"]


@pytest.mark.parametrize("status", [403, 406, 408, 409, 410, 412, 413, 418, 423, 431, 451, 503])
def test_a_refusal_that_names_the_format_is_one_whatever_its_status(
    status: int, start: Start
) -> None:
    server, adapter = start(
        forms={"json_object"}, says=error(status, "response_format is not available on your tier")
    )
    for _ in range(2):
        assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", "json_object+", "json_object+"]


@pytest.mark.parametrize("status", [401, 402, 429])
def test_a_key_an_account_and_a_limit_are_never_the_formats_fault(
    status: int, start: Start
) -> None:
    server, adapter = start(
        forms={"json_object"}, says=error(status, "response_format is not available on your tier")
    )
    with pytest.raises(ProviderError):
        adapter.complete(request())
    assert len(server.bodies) == 1


@pytest.mark.parametrize("status", [403, 409, 413])
def test_a_refusal_that_names_the_format_is_told_as_one_and_not_tried_again(
    status: int, start: Start
) -> None:
    settings = {"structured_output": "json_schema"}
    _, adapter = start(
        settings, forms=set(), says=error(status, "response_format is not available on your tier")
    )
    with pytest.raises(RequestRefused) as raised:
        adapter.complete(request())
    assert not raised.value.retryable
    assert "provider.structured_output" in raised.value.hint


def test_an_outage_of_a_server_that_took_the_schema_costs_nothing_more(start: Start) -> None:
    server, adapter = start()
    adapter.complete(request())
    server.forms, server.says = set(), Failure(500)
    for _ in range(5):
        with pytest.raises(ServerFailed):
            adapter.complete(request())
    assert len(server.bodies) == 1 + 5


def test_a_dead_server_is_asked_no_oftener_than_a_call_is_tried(start: Start) -> None:
    server, adapter = start(forms=set(), says=Failure(500))
    for _ in range(24):
        with pytest.raises(ServerFailed):
            adapter.complete(request())
    assert len(server.bodies) == 24
    assert adapter.findings() == ()


def tries(adapter: OpenAIAdapter, times: int) -> list[str]:
    """The answers to so many calls, or the names of the errors."""
    said = []
    for _ in range(times):
        try:
            said.append(adapter.complete(request()).text)
        except AeonError as error:
            said.append(type(error).__name__)
    return said


@pytest.mark.parametrize(
    ("says", "error"),
    [(Failure(500, body=""), "ServerFailed"), (Failure(reset=True), "ConnectionFailed")],
)
def test_a_failure_that_comes_twice_is_believed_when_the_schema_in_the_prompt_works(
    says: Failure, error: str, start: Start
) -> None:
    server, adapter = start(forms={"json_object", "text"}, says=says)
    assert tries(adapter, 5) == [error, error, ANSWER, ANSWER, ANSWER]
    assert server.forms_asked == ["json_schema", "json_schema", "text+", "text+", "text+"]
    [finding] = adapter.findings()
    assert "provider.structured_output=prompt" in str(finding)


def test_a_failure_that_passes_is_no_refusal(start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = [
        Failure(500, body=""),
        error(503, "busy"),
        Failure(500, body=""),
        {"answer": "x"},
    ]
    assert tries(adapter, 4) == ["ServerFailed"] * 3 + [ANSWER]
    assert server.forms_asked == ["json_schema"] * 4


def test_a_guess_that_is_refused_costs_no_answer(start: Start) -> None:
    server, adapter = start(forms={"json_schema"})
    server.script["plan"] = [Failure(500, body=""), Failure(500, body=""), {"answer": "x"}]
    assert tries(adapter, 3) == ["ServerFailed", "ServerFailed", ANSWER]
    assert server.forms_asked == ["json_schema", "json_schema", "text+", "json_schema"]
    assert adapter.findings() == ()


@pytest.mark.parametrize("form", ["json_schema", "prompt"])
def test_a_server_that_refuses_after_it_has_failed_twice_is_asked_a_few_times(
    form: str, start: Start
) -> None:
    server, adapter = start({} if form == "json_schema" else {"structured_output": form})
    server.script["plan"] = [Failure(500, body=""), Failure(500, body=""), error(400, "odd")]
    assert tries(adapter, 3) == ["ServerFailed", "ServerFailed", "RequestRefused"]
    assert len(server.bodies) <= 6


def test_a_server_that_dies_on_one_schema_is_asked_without_that_one(start: Start) -> None:
    odd = {**SCHEMA, "properties": {"answer": {"type": "string", "pattern": "^x"}}}
    server, adapter = start()
    adapter.complete(request())
    server.script["step"] = lambda got: (
        Failure(reset=True) if servers.form_of(got.body) == "json_schema" else {"answer": "x"}
    )
    for _ in range(2):
        with pytest.raises(ConnectionFailed) as raised:
            adapter.complete(request("step", schema=odd))
        assert "provider.structured_output=prompt" in raised.value.hint
    assert adapter.complete(request("step", schema=odd)).text == ANSWER
    adapter.complete(request())
    assert server.forms_asked == [
        "json_schema",
        "json_schema",
        "json_schema",
        "text+",
        "json_schema",
    ]


@pytest.mark.slow
def test_a_moment_of_failure_that_many_first_calls_meet_is_no_refusal(start: Start) -> None:
    together, left = threading.Barrier(15, timeout=60), iter(range(16))

    def answer(_: object) -> Any:
        number = next(left, None)
        if number is None:
            return {"answer": "x"}
        if number:
            together.wait()
        else:
            time.sleep(ALL_HAVE_STARTED)
        return Failure(503 if number == 0 else 500, body="")

    server, adapter = start()
    server.script["plan"] = answer
    with ThreadPoolExecutor(16) as pool:
        failures = [
            asked.exception()
            for asked in [pool.submit(adapter.complete, request()) for _ in range(16)]
        ]
        assert {type(failure) for failure in failures} == {ServerFailed}
        assert {answered.text for answered in pool.map(adapter.complete, [request()] * 16)} == {
            ANSWER
        }
    assert tries(adapter, 2) == [ANSWER] * 2
    assert server.forms_asked[-2:] == ["json_schema"] * 2


def test_the_error_of_the_way_that_is_tried_is_told_where_it_may_pass(start: Start) -> None:
    server, adapter = start(forms={"json_object"})
    server.script["plan"] = [error(429, "slow down"), {"answer": "x"}]
    with pytest.raises(RateLimited):
        adapter.complete(request())
    assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", "json_object+"] * 2


def test_a_schema_that_a_good_server_refuses_is_said_otherwise_and_the_others_are_not(
    start: Start,
) -> None:
    odd = {**SCHEMA, "properties": {"answer": {"type": "string", "pattern": "^x"}}}
    server, adapter = start()
    adapter.complete(request())
    server.script["step"] = lambda got: (
        error(400, "Invalid schema: 'pattern' is not permitted")
        if servers.form_of(got.body) == "json_schema"
        else ANSWER
    )
    for _ in range(2):
        adapter.complete(request("step", schema=odd))
    adapter.complete(request())
    assert server.forms_asked == [
        "json_schema",
        "json_schema",
        "json_object+",
        "json_object+",
        "json_schema",
    ]
    assert "for some schemas" in str(adapter.findings()[0])


def test_first_calls_side_by_side_meet_a_refusal_once(start: Start) -> None:
    server, adapter = start(forms={"text"}, shape=lambda answer, _: Completion(answer, delay=0.05))
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(adapter.complete, [request("step")] * 16))
    assert {answer.text for answer in answers} == {ANSWER}
    assert sorted(server.forms_asked) == ["json_object+", "json_schema", *["text+"] * 16]


@pytest.mark.slow
def test_first_calls_wait_for_the_first_however_long_it_takes(start: Start) -> None:
    slow = Failure(400, body={"error": {"message": "no response_format here"}}, delay=1.3)
    server, adapter = start(forms={"text"}, says=slow)
    with ThreadPoolExecutor(16) as pool:
        assert {answer.text for answer in pool.map(adapter.complete, [request("step")] * 16)} == {
            ANSWER
        }
    assert sorted(server.forms_asked) == ["json_object+", "json_schema", *["text+"] * 16]


def test_the_first_answer_sets_all_others_free_at_once(start: Start) -> None:
    together, first = threading.Barrier(7, timeout=60), iter(range(1))
    _, adapter = start(
        shape=lambda answer, _: (next(first, None) is None and together.wait(), answer)[1]
    )
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(adapter.complete, [request("step")] * 8))) == 8


def test_first_calls_to_a_server_that_is_not_there_wait_for_one_of_them(start: Start) -> None:
    together, alone = threading.Barrier(7, timeout=60), iter(range(1))

    def down(_: object) -> Any:
        if next(alone, None) is None:
            together.wait()
        else:
            time.sleep(ALL_HAVE_STARTED)
        return error(503, "overloaded")

    server, adapter = start()
    server.script["step"] = down
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(adapter.complete, request("step")) for _ in range(8)]
        assert {type(call.exception()) for call in asked} == {ServerFailed}
    assert len(server.bodies) == 8


@pytest.mark.parametrize(
    "answer",
    ["Because.", '```json\n{"answer": "x"}\n```', '{"answer": 1}', '{"answer": "x", "b": 1}'],
)
def test_a_server_that_does_not_hold_to_the_schema_is_shown_it_from_then_on(
    answer: str, start: Start
) -> None:
    server, adapter = start()
    server.script["plan"] = [answer, {"answer": "x"}]
    assert adapter.complete(request()).text == answer
    adapter.complete(request())
    assert server.forms_asked == ["json_schema", "json_schema+"]
    assert "did not follow it" in str(adapter.findings()[0])


@pytest.mark.parametrize("settings", [{}, {"structured_output": "json_object"}])
def test_a_schema_that_json_object_was_not_held_to_stands_beside_it_from_then_on(
    settings: dict[str, Any], start: Start
) -> None:
    server, adapter = start(settings, forms={"json_object"}, shape=servers.reading_beside)
    assert adapter.complete(request()).text != ANSWER
    assert adapter.complete(request()).text == ANSWER
    assert [body["response_format"] for body in server.bodies[-2:]] == [
        {"type": "json_object"},
        {"type": "json_object", "schema": SCHEMA},
    ]


@pytest.mark.parametrize(
    "message", ["Unknown parameter: 'response_format.schema'.", "the request is not valid"]
)
def test_a_server_that_takes_no_schema_beside_json_object_is_not_sent_it_again(
    message: str, start: Start
) -> None:
    server, adapter = start(
        forms={"json_object"}, refuses={"response_format.schema": error(400, message)}
    )
    server.script["plan"] = ["{}", {"answer": "x"}]
    for _ in range(4):
        adapter.complete(request())
    beside = ["schema" in body["response_format"] for body in server.bodies[1:]]
    assert beside == [False, True, False, False, False]
    assert "takes no response_format.schema" in str(adapter.findings()[0])


def test_a_schema_that_need_not_be_held_to_proves_nothing_of_those_that_must(start: Start) -> None:
    server, adapter = start()
    server.script["step"] = ['{"answer": 1}', {"answer": "x"}]
    adapter.complete(request("step", strict=False))
    adapter.complete(request())
    assert server.forms_asked == ["json_schema", "json_schema"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": None, "tool_calls": [{"function": {"name": "plan", "arguments": ANSWER}}]},
        {"content": None, "function_call": {"name": "plan", "arguments": ANSWER}},
        {"content": [{"type": "text", "text": ANSWER}]},
        {"content": {"answer": "x"}},
        {"content": "", "reasoning_content": ANSWER},
        {"content": None, "reasoning": ANSWER},
    ],
)
def test_the_answer_is_found_wherever_a_message_has_it(
    message: dict[str, Any], start: Start
) -> None:
    server, adapter = start()
    server.script["plan"] = with_message(message)
    assert adapter.complete(request()).text == ANSWER


def test_reasoning_that_is_no_answer_is_not_taken_for_one(start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = with_message(
        {"content": "", "reasoning_content": f"I think {ANSWER} would do"}
    )
    with pytest.raises(EmptyAnswer) as raised:
        adapter.complete(request())
    assert "reasoning" in raised.value.hint


def test_an_answer_that_is_whole_is_taken_though_the_server_says_that_it_was_cut(
    start: Start,
) -> None:
    server, adapter = start()
    server.script["plan"] = Completion(ANSWER, finish_reason="length")
    response = adapter.complete(request())
    assert (response.text, response.finish_reason) == (ANSWER, "stop")
    server.script["plan"] = Completion(f"Here: {ANSWER}", finish_reason="length")
    with pytest.raises(Truncated):
        adapter.complete(request())


def test_a_response_names_its_endpoint_and_whether_its_cost_is_known(start: Start) -> None:
    server, adapter = start({"name": "my-server"})
    assert adapter.complete(request()).endpoint == "my-server"
    assert adapter.complete(request()).usage_reported
    told = {"prompt_tokens": 5, "completion_tokens": 5}
    untold = ({}, {"prompt_tokens": 5}, {"completion_tokens": 5})
    unlike = (
        {"prompt_tokens": -5},
        {"completion_tokens": -5},
        {"completion_tokens": 0},
        {"prompt_tokens": 0},
    )
    for usage in (None, {"total_tokens": 5}, *untold, *({**told, **wrong} for wrong in unlike)):
        server.script["plan"] = Completion(ANSWER, usage=usage)
        response = adapter.complete(request())
        assert not response.usage_reported
        assert response.usage.input_tokens in (0, 5)
        assert response.usage.output_tokens in (0, 5)
