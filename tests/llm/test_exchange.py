from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pydantic
import pytest

from aeon.domain.errors import (
    AnswerError,
    EmptyAnswer,
    Filtered,
    LimitReached,
    Oversized,
    RateLimited,
    Truncated,
)
from aeon.domain.events import CallAnswered, CallFailed
from aeon.domain.request import CallSite, LLMRequest, LLMResponse, Message
from aeon.llm.exchange import MAX_ERRORS, InvalidAnswer, check_answer, exchange
from aeon.schema.validators import FieldError, SchemaValidator
from tests.llm.scripted import COST, Heard, Scripted

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["goal", "steps"],
    "properties": {
        "goal": {"type": "string"},
        "steps": {
            "type": "array",
            "items": {"anyOf": [{"$ref": "#/$defs/step"}, {"type": "null"}]},
        },
    },
    "$defs": {
        "step": {
            "type": "object",
            "additionalProperties": False,
            "required": ["a/b"],
            "properties": {"a/b": {"type": "integer"}, "tool": {"enum": ["search", None]}},
        }
    },
}
VALIDATOR = SchemaValidator(SCHEMA)
SITE = CallSite(pass_number=2, cycle=7, sequence=5)
REQUEST = LLMRequest("plan", (Message("user", "x"),), SCHEMA, site=SITE)


class Goal(pydantic.BaseModel):
    goal: str = pydantic.Field(min_length=3)
    steps: list[dict[str, pydantic.PositiveInt] | None]


def same(value: Any) -> Any:
    return value


def errors_of(text: str, parse: Callable[[Any], Any] = same) -> tuple[FieldError, ...]:
    with pytest.raises(InvalidAnswer) as caught:
        check_answer(text, VALIDATOR, parse)
    return caught.value.errors


def test_a_valid_answer_is_what_parse_makes_of_it() -> None:
    answer = check_answer(
        '```json\n{"goal": "all", "steps": []}\n```', VALIDATOR, Goal.model_validate
    )
    assert answer == Goal(goal="all", steps=[])


def test_every_schema_error_is_reported_in_order_of_place() -> None:
    errors = errors_of('{"steps": [{"a/b": "x", "tool": "fax"}, 3, {"z": 1}], "goal": 1}')
    assert [error.pointer for error in errors] == [
        "/goal",
        "/steps/0/a~1b",
        "/steps/0/tool",
        "/steps/1",
        "/steps/2",
        "/steps/2",
    ]
    assert errors[0].message == "1 is not of type 'string'"
    assert "'fax' is not one of" in errors[2].message
    assert (
        "'a/b' is a required property" in errors[4].message
        or "'a/b' is a required property" in errors[5].message
    )


def test_places_are_ordered_by_number_not_by_digits() -> None:
    steps = ", ".join(["3"] * 12)
    errors = errors_of(f'{{"goal": "x", "steps": [{steps}]}}')
    assert [error.pointer for error in errors] == [f"/steps/{n}" for n in range(12)]


def test_very_many_errors_are_counted() -> None:
    steps = ", ".join(["3"] * 50)
    errors = errors_of(f'{{"goal": "x", "steps": [{steps}]}}')
    assert len(errors) == MAX_ERRORS + 1
    assert errors[-1] == FieldError("", "and 30 more errors")


def test_a_long_value_is_not_quoted_whole() -> None:
    (error,) = errors_of(f'{{"goal": ["{"x" * 10_000}"], "steps": []}}')
    assert len(error.message) < 500
    assert error.message.endswith("is not of type 'string'")


def test_pydantic_errors_of_parse_become_field_errors() -> None:
    errors = errors_of('{"goal": "x", "steps": [{"a/b": 0}]}', Goal.model_validate)
    assert errors[0] == FieldError("/goal", "String should have at least 3 characters")
    assert errors[1].pointer.startswith("/steps/0/a~1b")


def test_an_error_of_parse_itself_is_the_answers() -> None:
    def cyclic(value: Any) -> Any:
        raise InvalidAnswer([FieldError("/steps/0", "depends on itself")])

    def wrong(value: Any) -> Any:
        raise ValueError("out of range")

    assert errors_of('{"goal": "x", "steps": []}', cyclic) == (
        FieldError("/steps/0", "depends on itself"),
    )
    assert errors_of('{"goal": "x", "steps": []}', wrong) == (FieldError("", "out of range"),)


def test_a_bug_in_parse_is_not_taken_for_a_bad_answer() -> None:
    with pytest.raises(KeyError):
        check_answer('{"goal": "x", "steps": []}', VALIDATOR, lambda value: value["nope"])


def test_text_without_json_is_one_error_for_the_whole() -> None:
    (error,) = errors_of("I would rather not.")
    assert error.pointer == ""
    assert str(error) == "(whole answer): there is no JSON object in the answer"


def test_an_invalid_answer_always_has_an_error() -> None:
    assert InvalidAnswer([]).errors


def test_an_exchange_gives_a_value_and_tells_what_it_cost() -> None:
    heard = Heard()
    llm = Scripted('{"goal": "x", "steps": []}')
    answered = exchange(llm, REQUEST, VALIDATOR, same, emit=heard)
    assert (answered.value, answered.errors) == ({"goal": "x", "steps": []}, ())
    assert answered.response.usage == COST
    ((event, site),) = heard.told
    assert isinstance(event, CallAnswered)
    assert (event.call, event.role, event.model, event.usage, site) == (
        "plan",
        "planner",
        "scripted",
        COST,
        SITE,
    )
    assert event.request == llm.requests[0]
    assert event.seconds >= 0


def test_an_exchange_gives_the_errors_of_a_bad_answer() -> None:
    heard = Heard()
    answered = exchange(Scripted('{"goal": 1, "steps": []}'), REQUEST, VALIDATOR, same, emit=heard)
    assert answered.value is None
    assert answered.errors == (FieldError("/goal", "1 is not of type 'string'"),)
    assert heard.kinds == ["CallAnswered"]


@pytest.mark.parametrize(
    "error", [RateLimited("slow down", usage=COST), LimitReached("enough", limit="max_tokens")]
)
def test_what_the_adapter_raises_passes_through_and_is_told(
    error: RateLimited | LimitReached,
) -> None:
    heard = Heard()
    with pytest.raises(type(error)):
        exchange(Scripted(error), REQUEST, VALIDATOR, same, emit=heard)
    ((event, site),) = heard.told
    assert isinstance(event, CallFailed)
    assert (event.error, event.message, event.usage, site) == (
        type(error).__name__,
        error.message,
        error.usage,
        SITE,
    )


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (LLMResponse('{"goal": "x", "steps": []', COST, finish_reason="length"), Truncated),
        (LLMResponse("x", COST, finish_reason="content_filter"), Filtered),
        (LLMResponse(" \n", COST), EmptyAnswer),
        (LLMResponse('{"goal": "' + "x" * 4_000_000, COST), Oversized),
    ],
)
def test_an_answer_that_is_none_is_an_error_with_its_cost(
    response: LLMResponse, error: type[AnswerError]
) -> None:
    heard = Heard()
    with pytest.raises(error) as caught:
        exchange(Scripted(response), REQUEST, VALIDATOR, same, emit=heard)
    assert caught.value.usage == COST
    assert heard.kinds == ["CallFailed"]
