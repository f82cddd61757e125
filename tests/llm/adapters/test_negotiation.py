"""Finding out what a server can do: what is tried, what is believed, what is remembered, and what it costs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest

from aeon.errors import (
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
from aeon.llm.adapters import capabilities, negotiation
from aeon.llm.adapters.openai import OpenAIAdapter
from aeon.llm.interface import Message, Parameters
from aeon.llm.settings import OpenAIProvider
from tests.support import able_server as servers
from tests.support.able_server import AbleServer, with_message
from tests.support.openai_server import Completion, Failure, error
from tests.support.requests import SCHEMA, request

ANSWER = '{"answer": "x"}'
Start = Callable[..., tuple[AbleServer, OpenAIAdapter]]


@pytest.fixture
def start() -> Iterator[Start]:
    """`start(settings, **abilities)`: a server that answers every call, and an adapter for it."""
    with ExitStack() as running:

        def make(settings: dict[str, Any] | None = None, **abilities: Any) -> tuple[AbleServer, OpenAIAdapter]:
            script = {call: {"answer": "x"} for call in ("task_profile", "plan", "step", "repair")}
            server = running.enter_context(AbleServer(script, **abilities))
            given = {"base_url": server.url, "timeout_seconds": 30.0, "model": "m", **(settings or {})}
            adapter = OpenAIAdapter(OpenAIProvider(**given), "sk-a-secret")
            running.callback(adapter.close)
            return server, adapter

        yield make


def test_a_refused_form_is_tried_no_more_and_said_once(start: Start) -> None:
    server, adapter = start(forms={"json_object"})
    for _ in range(3):
        assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", *["json_object+"] * 3]
    [told] = adapter.untold_findings()
    assert (
        str(told)
        == "openai, model m: does not take json_schema: json_object and the schema in the prompt from now on; "
        "provider.structured_output=json_object spares the try"
    )
    assert adapter.untold_findings() == ()
    assert adapter.findings() == (told,)


def test_what_is_known_is_known_to_every_adapter_of_that_address_and_model_and_to_no_other(start: Start) -> None:
    server, adapter = start(forms={"text"})
    adapter.complete(request())
    OpenAIAdapter(OpenAIProvider(base_url=server.url, model="m"), None).complete(request())
    assert server.forms_asked == ["json_schema", "json_object+", "text+", "text+"]
    adapter.complete(request(parameters=Parameters(model="another")))
    assert server.forms_asked[4:] == ["json_schema", "json_object+", "text+"]


def test_the_schema_goes_to_the_end_of_the_system_message_and_the_request_stays_as_it_is(start: Start) -> None:
    server, adapter = start({"structured_output": "prompt"})
    asked = request()
    adapter.complete(asked)
    system, user = server.bodies[0]["messages"]
    assert system["content"].startswith("Be brief.\n\nAnswer with one JSON value")
    assert '<json_schema>\n{"type":"object","properties"' in system["content"]
    assert user == {"role": "user", "content": "Why?"}
    assert asked.messages == (Message("system", "Be brief."), Message("user", "Why?"))
    adapter.complete(request(messages=(Message("user", "Why?"),)))
    assert [message["role"] for message in server.bodies[1]["messages"]] == ["system", "user"]


def test_a_schema_that_the_prompt_shows_already_is_not_repeated(start: Start) -> None:
    server, adapter = start({"structured_output": "json_object"})
    shown = (
        '{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}'
    )
    adapter.complete(request("repair", messages=(Message("system", "Mend."), Message("user", f"By {shown}"))))
    assert server.bodies[0]["messages"][0]["content"].startswith("Mend.\n\nAnswer with one JSON value that matches the")
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
    server.forms = {"json_schema"}
    assert adapter.complete(request()).text == ANSWER


@pytest.mark.parametrize("status", [400, 500])
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (error(400, "This model's maximum context length is 9 tokens.", "context_length_exceeded"), RequestRefused),
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
def test_a_refusal_that_names_the_format_is_one_whatever_its_status(status: int, start: Start) -> None:
    server, adapter = start(forms={"json_object"}, says=error(status, "response_format is not available on your tier"))
    for _ in range(2):
        assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", "json_object+", "json_object+"]


@pytest.mark.parametrize("status", [401, 402, 429])
def test_a_key_an_account_and_a_limit_are_never_the_formats_fault(status: int, start: Start) -> None:
    server, adapter = start(forms={"json_object"}, says=error(status, "response_format is not available on your tier"))
    with pytest.raises(ProviderError):
        adapter.complete(request())
    assert len(server.bodies) == 1


@pytest.mark.parametrize("status", [403, 409, 413])
def test_a_refusal_that_names_the_format_is_told_as_one_and_not_tried_again(status: int, start: Start) -> None:
    settings = {"structured_output": "json_schema"}
    _, adapter = start(settings, forms=set(), says=error(status, "response_format is not available on your tier"))
    with pytest.raises(RequestRefused) as raised:
        adapter.complete(request())
    assert not raised.value.retryable
    assert "provider.structured_output" in raised.value.hint


def test_a_dead_server_is_hardly_asked_twice(start: Start) -> None:
    server, adapter = start(forms=set(), says=Failure(500))
    for _ in range(24):
        with pytest.raises(ServerFailed):
            adapter.complete(request())
    assert len(server.bodies) == 24 + 3


def test_an_outage_of_a_server_that_took_the_schema_costs_nothing_more(start: Start) -> None:
    server, adapter = start()
    adapter.complete(request())
    server.forms, server.says = set(), Failure(500)
    for _ in range(5):
        with pytest.raises(ServerFailed):
            adapter.complete(request())
    assert len(server.bodies) == 1 + 5


def fails_first(times: int) -> Callable[[object], Any]:
    """A script: so many failures that say nothing, then answers."""
    left = iter(range(times))
    return lambda _: Failure(500, body="") if next(left, None) is not None else {"answer": "x"}


def test_a_moment_of_failure_that_many_first_calls_meet_is_told_as_what_it_is(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "SCOUT_SECONDS", 0.0)
    together, left = threading.Barrier(16, timeout=20), iter(range(16))

    def answer(_: object) -> Any:
        if next(left, None) is None:
            return {"answer": "x"}
        together.wait()
        return Failure(500, body="")

    server, adapter = start(forms={"json_schema"})
    server.script["plan"] = answer
    with ThreadPoolExecutor(16) as pool:
        failures = [asked.exception() for asked in [pool.submit(adapter.complete, request()) for _ in range(16)]]
        assert {type(failure) for failure in failures} == {ServerFailed}
        assert {answered.text for answered in pool.map(adapter.complete, [request()] * 16)} == {ANSWER}
    assert server.forms_asked == ["json_schema"] * 32
    assert adapter.findings() == ()


def test_one_failure_before_the_first_answer_is_not_taken_for_a_refusal(start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = fails_first(1)
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    adapter.complete(request())
    assert server.forms_asked == ["json_schema"] * 2


def test_a_failure_that_comes_again_is_a_refusal_only_if_it_is_still_there_when_another_form_has_worked(
    start: Start,
) -> None:
    server, adapter = start(forms={"json_object"}, says=Failure(500, body=""))
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    assert adapter.complete(request()).text == ANSWER
    assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", "json_schema", "json_object+", "json_schema", "json_object+"]
    assert "does not take json_schema" in str(adapter.findings()[0])


def test_a_failure_that_is_over_when_another_form_has_worked_was_none_of_the_form(start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = fails_first(2)
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    answered = adapter.complete(request())
    assert (answered.text, answered.usage.requests) == (ANSWER, 2)
    adapter.complete(request())
    assert server.forms_asked == ["json_schema", "json_schema", "json_object+", "json_schema", "json_schema"]
    assert adapter.findings() == ()


def test_where_a_trial_fails_the_failure_before_it_is_told(start: Start) -> None:
    server, adapter = start(forms={"json_schema"})
    server.script["plan"] = fails_first(2)
    for _ in range(2):
        with pytest.raises(ServerFailed):
            adapter.complete(request())
    assert server.forms_asked == ["json_schema", "json_schema", "json_object+", "text+"]
    assert adapter.complete(request()).text == ANSWER


def test_of_many_first_calls_that_fail_again_one_explores_and_the_others_wait(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "SCOUT_SECONDS", 10.0)
    slow = 0.3
    server, adapter = start(
        forms={"json_object"},
        says=Failure(500, body=""),
        shape=lambda answer, _: Completion(answer, delay=slow),
    )
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    with ThreadPoolExecutor(16) as pool:
        assert {answered.text for answered in pool.map(adapter.complete, [request()] * 16)} == {ANSWER}
    assert server.forms_asked.count("json_schema") == 3
    assert server.forms_asked.count("json_object+") == 16


def test_those_that_wait_for_an_exploration_wait_until_it_has_an_answer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "SCOUT_SECONDS", 0.05)
    answers, exploring = threading.Event(), threading.Event()

    def explored(answer: Any, _: object) -> Any:
        exploring.set()
        assert answers.wait(20)
        return answer

    server, adapter = start(forms={"json_object"}, says=Failure(500, body=""), shape=explored)
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(adapter.complete, request())
        assert exploring.wait(20)
        others = [pool.submit(adapter.complete, request()) for _ in range(7)]
        threading.Event().wait(0.2)
        answers.set()
        assert {asked.result().text for asked in [first, *others]} == {ANSWER}
    assert server.forms_asked.count("json_schema") == 3


def test_a_failure_amid_other_calls_is_not_explored(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(negotiation, "SCOUT_SECONDS", 0.0)
    waiting, answers = threading.Event(), threading.Event()

    def held(_: object) -> Any:
        waiting.set()
        assert answers.wait(20)
        return {"answer": "x"}

    server, adapter = start()
    server.script["step"], server.script["plan"] = held, Failure(500, body="")
    with ThreadPoolExecutor(1) as pool:
        held_call = pool.submit(adapter.complete, request("step"))
        assert waiting.wait(20)
        for _ in range(3):
            with pytest.raises(ServerFailed):
                adapter.complete(request())
        answers.set()
        held_call.result()
    assert set(server.forms_asked) == {"json_schema"}


def test_a_server_that_failed_for_long_is_asked_by_json_schema_again_now_and_then(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capabilities, "DOUBTED_ANSWERS", 3)
    server, adapter = start(forms={"json_object"}, says=Failure(500, body=""))
    with pytest.raises(ServerFailed):
        adapter.complete(request())
    for _ in range(9):
        adapter.complete(request())
    asked = "".join("s" if form == "json_schema" else "o" for form in server.forms_asked)
    assert asked == "ssos" + "ooo" + "so" + "oooo"
    server.forms = {"json_schema", "json_object"}
    for _ in range(9):
        adapter.complete(request())
    assert set(server.forms_asked[-2:]) == {"json_schema"}
    assert adapter.findings() == ()


def test_the_error_of_the_way_that_is_tried_is_told_where_it_may_pass(start: Start) -> None:
    server, adapter = start(forms={"json_object"})
    server.script["plan"] = [error(429, "slow down"), {"answer": "x"}]
    with pytest.raises(RateLimited):
        adapter.complete(request())
    assert adapter.complete(request()).text == ANSWER
    assert server.forms_asked == ["json_schema", "json_object+"] * 2


def test_a_schema_that_a_good_server_refuses_is_said_otherwise_and_the_others_are_not(start: Start) -> None:
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
    assert server.forms_asked == ["json_schema", "json_schema", "json_object+", "json_object+", "json_schema"]
    assert "for some schemas" in str(adapter.findings()[0])


def test_first_calls_side_by_side_meet_a_refusal_once(start: Start) -> None:
    server, adapter = start(forms={"text"}, shape=lambda answer, _: Completion(answer, delay=0.05))
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(adapter.complete, [request("step")] * 16))
    assert {answer.text for answer in answers} == {ANSWER}
    assert sorted(server.forms_asked) == ["json_object+", "json_schema", *["text+"] * 16]


def test_first_calls_wait_for_the_first_however_long_it_takes(start: Start) -> None:
    slow = Failure(400, body={"error": {"message": "no response_format here"}}, delay=1.3)
    server, adapter = start(forms={"text"}, says=slow)
    with ThreadPoolExecutor(16) as pool:
        assert {answer.text for answer in pool.map(adapter.complete, [request("step")] * 16)} == {ANSWER}
    assert sorted(server.forms_asked) == ["json_object+", "json_schema", *["text+"] * 16]


def test_the_first_answer_sets_all_others_free_at_once(start: Start) -> None:
    together, first = threading.Barrier(7, timeout=20), iter(range(1))
    _, adapter = start(shape=lambda answer, _: (next(first, None) is None and together.wait(), answer)[1])
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(adapter.complete, [request("step")] * 8))) == 8


def test_of_many_first_calls_to_a_server_that_fails_two_are_made_before_the_others(start: Start) -> None:
    server, adapter = start(forms={"json_object"}, says=Failure(500, body="", delay=0.05))
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(adapter.complete, request("step")) for _ in range(16)]
        failures = [call.exception() for call in asked]
    assert [type(failure) for failure in failures if failure] == [ServerFailed]
    assert server.forms_asked[:4] == ["json_schema", "json_schema", "json_object+", "json_schema"]
    assert server.forms_asked[4:] == ["json_object+"] * 14


def test_those_that_have_waited_long_enough_use_the_form_that_is_being_tried(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(negotiation, "SCOUT_SECONDS", 0.3)
    together = threading.Barrier(8, timeout=20)
    server, adapter = start(forms={"json_object"}, shape=lambda answer, _: (together.wait(), answer)[1])
    with ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(adapter.complete, [request("step")] * 8))) == 8
    assert server.forms_asked.count("json_object+") == 8


def test_first_calls_to_a_server_that_is_not_there_wait_for_one_of_them(start: Start) -> None:
    together, alone = threading.Barrier(7, timeout=20), iter(range(1))

    def down(_: object) -> Any:
        if next(alone, None) is None:
            together.wait()
        return error(503, "overloaded")

    server, adapter = start()
    server.script["step"] = down
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(adapter.complete, request("step")) for _ in range(8)]
        assert {type(call.exception()) for call in asked} == {ServerFailed}
    assert len(server.bodies) == 8


@pytest.mark.parametrize(
    "answer", ["Because.", '```json\n{"answer": "x"}\n```', '{"answer": 1}', '{"answer": "x", "b": 1}']
)
def test_a_server_that_does_not_hold_to_the_schema_is_shown_it_from_then_on(answer: str, start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = [answer, {"answer": "x"}]
    assert adapter.complete(request()).text == answer
    adapter.complete(request())
    assert server.forms_asked == ["json_schema", "json_schema+"]
    assert "does not hold to it" in str(adapter.findings()[0])


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


@pytest.mark.parametrize("message", ["Unknown parameter: 'response_format.schema'.", "the request is not valid"])
def test_a_server_that_takes_no_schema_beside_json_object_is_not_sent_it_again(message: str, start: Start) -> None:
    server, adapter = start(forms={"json_object"}, refuses={"response_format.schema": error(400, message)})
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
    adapter.complete(request("step", strict=False))
    assert server.forms_asked == ["json_schema", "json_schema", "json_schema+"]


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
def test_the_answer_is_found_wherever_a_message_has_it(message: dict[str, Any], start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = with_message(message)
    assert adapter.complete(request()).text == ANSWER


def test_reasoning_that_is_no_answer_is_not_taken_for_one(start: Start) -> None:
    server, adapter = start()
    server.script["plan"] = with_message({"content": "", "reasoning_content": f"I think {ANSWER} would do"})
    with pytest.raises(EmptyAnswer) as raised:
        adapter.complete(request())
    assert "reasoning" in raised.value.hint


def test_an_answer_that_is_whole_is_taken_though_the_server_says_that_it_was_cut(start: Start) -> None:
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
    unlike = ({"prompt_tokens": -5}, {"completion_tokens": -5}, {"completion_tokens": 0}, {"prompt_tokens": 0})
    for usage in (None, {"total_tokens": 5}, *untold, *({**told, **wrong} for wrong in unlike)):
        server.script["plan"] = Completion(ANSWER, usage=usage)
        response = adapter.complete(request())
        assert not response.usage_reported
        assert response.usage.input_tokens in (0, 5)
        assert response.usage.output_tokens in (0, 5)
