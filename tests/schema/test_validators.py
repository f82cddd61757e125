"""Schemas that strangers wrote: of any draft, with references and patterns of any kind."""

import time
from typing import Any

import pytest

from aeon.domain.errors import ConfigError
from aeon.schema.validators import compile_schema, find_errors
from tests.support.timing import SOON

DRAFT_4 = {"$schema": "http://json-schema.org/draft-04/schema#"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
LONG = "a" * 40 + "b"


def found(schema: Any, value: Any) -> list[str]:
    return [str(each) for each in find_errors(compile_schema(schema, "s"), value)]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({**DRAFT_7, "items": [{"type": "string"}, {"type": "number"}]}, ["x", 2], [1, 2]),
        ({**DRAFT_4, "minimum": 3, "exclusiveMinimum": True}, 4, 3),
        (
            {
                "properties": {"p": {"$ref": "#here"}},
                "$defs": {"T": {"$anchor": "here", "type": "string"}},
            },
            {},
            {"p": 1},
        ),
        (
            {**DRAFT_7, "properties": {"p": {"$ref": "#"}}, "maxProperties": 1},
            {"p": {}},
            {"p": {"q": 1, "r": 1}},
        ),
        (
            {
                "$id": "http://x.y/s",
                "items": {"$ref": "http://x.y/s#/$defs/T"},
                "$defs": {"T": {"type": "null"}},
            },
            [],
            [1],
        ),
        ({"properties": {"default": {"type": "string"}}}, {"default": "x"}, {"default": 1}),
        ({"pattern": r"^\p{L}+$"}, "né", "1"),
        ({"pattern": "^(?!x).+$"}, "y", "x"),
        (
            {"patternProperties": {"^a": {"type": "null"}}, "additionalProperties": False},
            {"ab": None},
            {"b": None},
        ),
        (
            {"patternProperties": {"^a": {"type": "null"}}, "properties": {"b": {}}},
            {"ab": None, "b": 1},
            {"ab": 1},
        ),
        (
            {"uniqueItems": True},
            [1, True, "1", [1], [True], {"a": 1}, {"a": True}],
            [{"a": [1]}, {"a": [1.0]}],
        ),
    ],
)
def test_a_value_is_checked_by_the_draft_and_the_references_of_its_schema(
    schema: Any, good: Any, bad: Any
) -> None:
    assert found(schema, good) == []
    assert found(schema, bad) != []


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"properties": {"p": {"$ref": "#/$defs/z"}}},
            r"s#/properties/p/\$ref: Pointer '/\$defs/z' does not exist",
        ),
        ({"properties": {"default": {"$ref": "#/nowhere"}}}, "/nowhere"),
        ({"items": {"type": "strin"}}, "s#/items/type"),
        ({"x-own": {"type": "strin"}, "items": {"$ref": "#/x-own"}}, "s#/x-own/type"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "s#: Unknown meta-schema"),
        ({"$schema": []}, r"s#/\$schema"),
        ({"items": {"pattern": "("}}, "s#/items/pattern"),
        ({"patternProperties": {"[": {}}}, r"s#/patternProperties/\["),
        ({"pattern": "(((a{1000}){1000}){1000}){1000}"}, "s#/pattern"),
        ([], "a schema is a JSON object, not list"),
    ],
)
def test_a_schema_that_no_check_could_use_is_refused_with_its_path(schema: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        compile_schema(schema, "s")


@pytest.mark.parametrize("dialect", [{}, DRAFT_7, DRAFT_4])
@pytest.mark.parametrize("pattern", ["^(a+)+$", r"^(a|a)*\1$"])
def test_a_pattern_that_python_would_never_be_done_with_is_matched_at_once(
    dialect: Any, pattern: str
) -> None:
    started = time.monotonic()
    assert found({**dialect, "pattern": pattern}, LONG) == [
        f"(whole answer): {LONG!r} does not match {pattern!r}"
    ]
    assert time.monotonic() - started < SOON


def test_half_a_surrogate_pair_is_a_character_like_others() -> None:
    assert found({"pattern": "^.$"}, "\ud800") == []
    assert found({"pattern": "^[a-z]$"}, "\ud800") != []


def test_a_pattern_of_names_that_only_the_engine_knows_is_said_to_be_unchecked() -> None:
    schema = {"patternProperties": {r"^\p{L}$": {"type": "null"}}}
    assert found(schema, {"a": None}) == []
    assert "cannot be checked" in found(schema, {"a": 1})[0]
