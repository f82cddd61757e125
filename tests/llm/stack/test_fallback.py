"""The fallback chain: who is asked next, for what, and how it is told."""

import pytest

from aeon.domain.errors import (
    AeonError,
    AuthenticationFailed,
    CircuitOpen,
    ConnectionFailed,
    EmptyAnswer,
    Filtered,
    NotAnAPI,
    QuotaExhausted,
    RateLimited,
    Refused,
    RequestRefused,
    ServerFailed,
    Truncated,
)
from aeon.domain.events import FallbackUsed
from aeon.domain.request import LLMResponse, Parameters, Usage
from aeon.llm.stack.retry import EndpointAdapter, Fallback
from tests.llm.scripted import COST, Heard, Scripted
from tests.support.requests import request


def chain(*models: Scripted, heard: Heard | None = None) -> Fallback:
    return Fallback(
        [EndpointAdapter(f"e{index}", model) for index, model in enumerate(models)],
        emit=heard or Heard(),
    )


def test_the_first_that_answers_is_named_on_the_answer() -> None:
    first, second = Scripted("a"), Scripted()
    response = chain(first, second).complete(request())
    assert (response.text, response.endpoint, response.usage) == ("a", "e0", COST)
    assert second.requests == []


@pytest.mark.parametrize(
    "error",
    [
        ConnectionFailed("x"),
        ServerFailed("x"),
        RateLimited("x"),
        QuotaExhausted("x"),
        AuthenticationFailed("x"),
        CircuitOpen("x"),
        NotAnAPI("x"),
    ],
)
def test_an_endpoint_of_no_use_is_followed_by_the_next(error: AeonError) -> None:
    assert chain(Scripted(error), Scripted("b")).complete(request()).endpoint == "e1"


@pytest.mark.parametrize(
    "error",
    [
        Truncated("x"),
        Refused("x"),
        Filtered("x"),
        EmptyAnswer("x"),
        RequestRefused("x", status=400),
    ],
)
def test_an_answer_that_is_none_and_a_request_that_is_bad_stay_where_they_are(
    error: AeonError,
) -> None:
    second = Scripted("b")
    with pytest.raises(type(error)) as raised:
        chain(Scripted(error), second).complete(request())
    assert raised.value is error
    assert raised.value.endpoint == "e0"  # type: ignore[attr-defined]
    assert second.requests == []


def test_a_refusal_that_says_that_another_may_take_it_goes_on() -> None:
    refused = RequestRefused("no such model", status=404)
    refused.falls_back = True
    assert chain(Scripted(refused), Scripted("b")).complete(request()).endpoint == "e1"


def test_the_next_is_asked_for_its_own_model_with_everything_else_as_it_was() -> None:
    first, second = Scripted(ServerFailed("x")), Scripted("b")
    asked = request(parameters=Parameters(model="judge", temperature=0.1, effort="high"))
    chain(first, second).complete(asked)
    assert first.requests == [asked]
    assert second.requests[0].parameters == Parameters(model=None, temperature=0.1, effort="high")
    assert second.requests[0].messages == asked.messages


def test_a_fallback_is_told_once_for_each_endpoint_that_fails() -> None:
    heard = Heard()
    first = Scripted(ServerFailed("down"), CircuitOpen("not asked"), "a", ServerFailed("again"))
    through = chain(first, Scripted("b", "b", "b"), heard=heard)
    assert [through.complete(request()).endpoint for _ in range(4)] == ["e1", "e1", "e0", "e1"]
    (told,) = heard.of(FallbackUsed)
    assert isinstance(told, FallbackUsed)
    assert (told.failed, told.endpoint, told.error) == ("e0", "e1", "ServerFailed: down")


def test_when_none_answers_the_last_error_says_what_all_of_them_said() -> None:
    last = AuthenticationFailed("no key", hint="Set it.")
    with pytest.raises(
        AuthenticationFailed, match=r"e2: no key \(asked before it: e0: .*down; e1: .*busy\)"
    ) as raised:
        chain(
            Scripted(ServerFailed("down")), Scripted(RateLimited("busy")), Scripted(last)
        ).complete(request())
    assert raised.value.hint == "Set it."
    assert raised.value.__cause__ is last
    assert last.message == "no key"


def test_what_failed_endpoints_have_cost_is_counted() -> None:
    failed = ServerFailed("x", usage=Usage(requests=3))
    answered = LLMResponse("b", usage=COST)
    assert (
        chain(Scripted(failed), Scripted(answered)).complete(request()).usage
        == Usage(requests=3) + COST
    )
    with pytest.raises(ServerFailed) as raised:
        chain(Scripted(failed), Scripted(ServerFailed("y", usage=Usage(requests=2)))).complete(
            request()
        )
    assert raised.value.usage.requests == 5
