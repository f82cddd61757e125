"""Values made from schemas: valid ones, as near to what is wished for as the schema allows."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from aeon.files.resources import resource_root
from aeon.schema.examples import NOTHING, NoExample, complete_value, make_example

SCHEMAS: dict[str, Any] = {
    "anything": {},
    "short text": {"type": "string", "maxLength": 3},
    "long text": {"type": "string", "minLength": 300},
    "range": {"type": "number", "minimum": 0, "maximum": 1},
    "only a maximum": {"type": "number", "maximum": -5000},
    "enum": {"enum": ["a", 1, None, {"x": []}]},
    "const": {"const": {"a": [1, True]}},
    "types": {"type": ["string", "null", "integer"], "minimum": 5, "minLength": 2},
    "no type but properties": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "required without a schema": {"type": "object", "required": ["x", "y"]},
    "reference": {
        "$ref": "#/$defs/a%20b~1c",
        "$defs": {"a b/c": {"type": "integer", "minimum": 4}},
    },
    "reference beside keywords": {
        "$ref": "#/$defs/n",
        "maximum": 2,
        "$defs": {"n": {"type": "integer", "minimum": 2}},
    },
    "chain of references": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"const": 9}},
    },
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "required": ["name", "children", "right"],
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                },
                "additionalProperties": False,
            }
        },
    },
    "alternatives": {
        "anyOf": [{"type": "integer", "minimum": 8}, {"type": "string", "maxLength": 2}]
    },
    "all of": {"allOf": [{"$ref": "#/$defs/a"}], "description": "A.", "$defs": {"a": {"const": 7}}},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    "a property called $ref": {
        "type": "object",
        "properties": {"$ref": {"type": "string"}},
        "required": ["$ref"],
    },
    "pattern with an example": {"type": "string", "pattern": r"^[A-Z]{2}$", "examples": ["AB"]},
    "nullable object": {
        "anyOf": [
            {"type": "object", "required": ["q"], "properties": {"q": {"const": 1}}},
            {"type": "null"},
        ]
    },
}
WIRE = {
    path.stem: json.loads(path.read_text())
    for path in sorted((resource_root() / "schemas").glob("*.json"))
}
FORMATS = ["date", "time", "date-time", "email", "uri", "uuid"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


def plain(name: str) -> str:
    return f"some {name}"


def assert_valid(schema: Any, value: Any) -> None:
    errors = list(validator_for(schema)(schema).iter_errors(value))
    assert not errors, f"{json.dumps(value)[:400]}: {errors[0].message}"


@pytest.mark.parametrize("schema", [*SCHEMAS.values(), *WIRE.values()], ids=[*SCHEMAS, *WIRE])
def test_an_example_is_valid_and_its_schema_unchanged(schema: Any) -> None:
    before = json.dumps(schema)
    assert_valid(schema, make_example(schema))
    assert json.dumps(schema) == before


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_obeyed(form: str) -> None:
    made = make_example({"type": "string", "format": form})
    assert validator_for({}).FORMAT_CHECKER.conforms(made, form)


def test_texts_are_made_by_the_names_of_properties() -> None:
    schema = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
    assert make_example(schema, text=plain) == {"note": "some note"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^[0-9]{4}$"},
        {"type": "string", "pattern": "(unclosed"},
        {"type": "nonsense"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {
            "properties": {"a": {"$ref": "https://example.org/never-fetched.json"}},
            "required": ["a"],
        },
        {"enum": []},
        {"type": "object", "minProperties": 3},
    ],
)
def test_what_is_not_easily_made_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(NoExample):
        make_example(schema)
    with pytest.raises(NoExample):
        make_example(schema, 1.5)


@pytest.mark.parametrize("name", [name for name in SCHEMAS if "pattern" not in name])
@given(wish=JSON)
@settings(max_examples=10, deadline=None)
def test_a_fitted_value_is_valid_whatever_was_wished_for(name: str, wish: Any) -> None:
    assert_valid(SCHEMAS[name], make_example(SCHEMAS[name], wish))


def test_a_wish_is_moved_into_the_bounds() -> None:
    schema = {
        "type": "object",
        "properties": {
            "score": {"type": "number", "minimum": 0, "maximum": 1},
            "note": {"type": "string", "maxLength": 4},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 1},
            "level": {"type": "integer", "minimum": 1},
        },
        "required": ["score", "note", "tags", "level"],
        "additionalProperties": False,
    }
    wish = {"score": 1.7, "note": "abcdefg", "tags": ["x", "y"], "level": 3, "unknown": 1}
    assert make_example(schema, wish) == {"score": 1, "note": "abcd", "tags": ["x"], "level": 3}
    assert make_example(schema, NOTHING) == {
        "score": 0,
        "note": "text",
        "tags": ["text"],
        "level": 1,
    }


def test_what_is_given_is_completed_and_never_changed() -> None:
    given = {"steps": [{"step_id": "a", "description": 5, "unknown": True}]}
    value = complete_value(WIRE["plan"], given, plain)
    assert value["goal"] == "some goal"
    step = {"step_id": "a", "description": 5, "unknown": True, "dependencies": [], "provides": []}
    assert value["steps"] == [{**step, "handoff_to_next": None, "tool": None, "arguments": None}]


@pytest.mark.parametrize("given", ["text", 3, None, [1, {"a": 2}], True])
def test_anything_given_at_the_top_stays(given: Any) -> None:
    assert complete_value(WIRE["step"], given, plain) == given
