"""Schemas that strangers wrote: of any draft, with references and patterns of any kind."""

import time
from typing import Any

import pytest

from aeon.domain.errors import ConfigError
from aeon.domain.tool_result import Undecided
from aeon.schema.patterns import CheckTookTooLong, matches
from aeon.schema.validators import compile_schema, find_violations
from tests.support.timing import SOON

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
SLOW = r"^(a|a)*\1$"
LONG = "a" * 40 + "b"


def found(schema: Any, value: Any) -> list[str]:
    return [str(each) for each in find_violations(compile_schema(schema, "s"), value)]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({**DRAFT_7, "items": [{"type": "string"}, {"type": "number"}]}, ["x", 2], [1, 2]),
        ({**DRAFT_4, "minimum": 3, "exclusiveMinimum": True}, 4, 3),
        ({"properties": {"p": {"$ref": "#here"}}, "$defs": {"T": {"$anchor": "here", "type": "string"}}}, {}, {"p": 1}),
        ({**DRAFT_7, "properties": {"p": {"$ref": "#"}}, "maxProperties": 1}, {"p": {}}, {"p": {"q": 1, "r": 1}}),
        (
            {"$id": "http://x.y/s", "items": {"$ref": "http://x.y/s#/$defs/T"}, "$defs": {"T": {"type": "null"}}},
            [],
            [1],
        ),
        ({"properties": {"default": {"type": "string"}}}, {"default": "x"}, {"default": 1}),
        ({"pattern": r"^\p{L}+$"}, "né", "1"),
        ({"pattern": "^(?!x).+$"}, "y", "x"),
        ({"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False}, {"ab": None}, {"b": None}),
        ({"patternProperties": {"^a": {"type": "null"}}, "properties": {"b": {}}}, {"ab": None, "b": 1}, {"ab": 1}),
        ({"uniqueItems": True}, [1, True, "1", [1], [True], {"a": 1}, {"a": True}], [{"a": [1]}, {"a": [1.0]}]),
    ],
)
def test_a_value_is_checked_by_the_draft_and_the_references_of_its_schema(schema: Any, good: Any, bad: Any) -> None:
    assert found(schema, good) == []
    assert found(schema, bad) != []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"properties": {"p": {"$dynamicRef": "#q"}}}, r"s#/properties/p/\$dynamicRef"),
        ({"items": {"$recursiveRef": "#"}}, r"s#/items/\$recursiveRef"),
        (
            {"properties": {"p": {"$id": "http://e.x/in", "$ref": "#/$defs/z"}}, "$defs": {"z": {}}},
            r"s#/properties/p/\$ref: '#/\$defs/z' does not lead to a schema",
        ),
        ({"properties": {"default": {"$ref": "#/nowhere"}}}, r"s#/properties/default/\$ref"),
        ({"required": ["a"], "items": {"$ref": "#/required/0"}}, r"s#/items/\$ref: .* does not lead to a schema"),
        ({"x-own": {"type": "strin"}, "items": {"$ref": "#/x-own"}}, r"s#/x-own/type"),
        ({"default": {"$ref": "#/no"}, "items": {"$ref": "#/default"}}, r"s#/default/\$ref"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, r"s#/\$schema"),
        ({"$schema": []}, r"s#/\$schema"),
        ({"items": {"pattern": "("}}, r"s#/items/pattern"),
        ({"patternProperties": {"[": {}}}, r"s#/patternProperties/\[: '\[' is no regular expression"),
        ({"pattern": "(((a{1000}){1000}){1000}){1000}"}, "too large"),
        ({"patternProperties": {"a": {}}, "unevaluatedProperties": False}, r"s#/patternProperties: "),
    ],
)
def test_a_schema_that_no_check_could_use_is_refused_with_its_path(schema: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        compile_schema(schema, "s")


@pytest.mark.parametrize("dialect", [{}, DRAFT_7, DRAFT_4])
@pytest.mark.parametrize("place", [lambda p: p, lambda p: {**p, "properties": {"p": {"$ref": "#"}}}])
def test_a_pattern_that_python_would_never_be_done_with_is_matched_at_once(dialect: Any, place: Any) -> None:
    started = time.monotonic()
    schema = {**dialect, **place({"pattern": "^(a+)+$"})}
    assert found(schema, LONG) != []
    assert found(schema, {"p": LONG}) == [] or "properties" in schema
    assert found({**dialect, "patternProperties": {"^(a+)+$": {}}, "additionalProperties": False}, {LONG: 1}) != []
    assert time.monotonic() - started < SOON


@pytest.mark.parametrize(
    "value", [LONG, {"p": LONG}, {LONG: 1}, "a" * 500_000], ids=["whole", "property", "name", "long"]
)
def test_what_takes_too_long_is_undecided_and_says_so(value: Any) -> None:
    schema = {
        "pattern": SLOW,
        "properties": {"p": {"$ref": "#"}},
        "patternProperties": {SLOW: {}},
        "additionalProperties": False,
    }
    started = time.monotonic()
    (violation,) = find_violations(compile_schema(schema, "s"), value)
    assert isinstance(violation, Undecided)
    assert "cannot be checked" in violation.message
    assert time.monotonic() - started < SOON


@pytest.mark.slow
def test_a_schema_that_doubles_its_work_at_each_level_is_given_up() -> None:
    schema: dict[str, Any] = {"$defs": {"0": {"type": "string"}}, "$ref": "#/$defs/40"}
    schema["$defs"] |= {str(n): {"allOf": [{"$ref": f"#/$defs/{n - 1}"}] * 2} for n in range(1, 41)}
    started = time.monotonic()
    (violation,) = find_violations(compile_schema(schema, "s"), "x", 0.2)
    assert isinstance(violation, Undecided)
    assert time.monotonic() - started < SOON
    with pytest.raises(CheckTookTooLong):
        compile_schema(schema, "s").is_valid("x")


def test_a_reference_to_itself_is_undecided() -> None:
    (violation,) = find_violations(compile_schema({"$ref": "#"}, "s"), 1)
    assert isinstance(violation, Undecided)


def test_many_unlike_items_are_compared_at_once() -> None:
    started = time.monotonic()
    assert found({"uniqueItems": True}, [{"n": n} for n in range(20_000)]) == []
    assert time.monotonic() - started < SOON


def test_half_a_surrogate_pair_is_no_character_of_a_pattern() -> None:
    assert not matches("^[a-z]$", "\ud800")
