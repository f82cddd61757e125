from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema.validators import validator_for

from aeon.domain.errors import NotSimulated
from aeon.files.resources import resource_root
from aeon.schema.validators import is_valid
from aeon.simulated.values import complete_value, fit_value, make_value

SCHEMAS: dict[str, Any] = {
    "anything": {},
    "short text": {"type": "string", "maxLength": 3},
    "long text": {"type": "string", "minLength": 300},
    "range": {"type": "number", "minimum": 0, "maximum": 1},
    "only a maximum": {"type": "number", "maximum": -5000},
    "whole numbers within fractions": {"type": "integer", "minimum": 2.2, "maximum": 3.9},
    "multiples": {"type": "integer", "multipleOf": 7, "minimum": 50},
    "negative multiples": {"type": "integer", "multipleOf": 1000, "exclusiveMaximum": 0},
    "fractional multiples": {"type": "number", "multipleOf": 0.25, "minimum": 1, "maximum": 2},
    "whole numbers of a fraction": {"type": "integer", "multipleOf": 2.5, "minimum": 1, "maximum": 9},
    "open whole numbers": {"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 3},
    "enum": {"enum": ["a", 1, None, {"x": []}]},
    "const": {"const": {"a": [1, True]}},
    "types": {"type": ["string", "null", "integer"], "minimum": 5, "minLength": 2},
    "no type but properties": {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "required without a schema": {"type": "object", "required": ["x", "y"]},
    "reference": {"$ref": "#/$defs/a%20b~1c", "$defs": {"a b/c": {"type": "integer", "minimum": 4}}},
    "reference beside keywords": {"$ref": "#/$defs/n", "maximum": 2, "$defs": {"n": {"type": "integer", "minimum": 2}}},
    "chain of references": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"const": 9}}},
    "tree": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "required": ["name", "children"],
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                    "left": {"$ref": "#/$defs/node"},
                    "right": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
                },
                "additionalProperties": False,
            }
        },
    },
    "linked list": {
        "type": "object",
        "required": ["next"],
        "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    },
    "alternatives": {"anyOf": [False, {"type": "integer", "minimum": 8}, {"type": "string", "maxLength": 2}]},
    "exclusive alternatives": {"oneOf": [{"type": "integer", "multipleOf": 3}, {"type": "integer", "multipleOf": 5}]},
    "not": {"type": "integer", "minimum": 0, "maximum": 3, "not": {"enum": [0, 1, 2]}},
    "all of": {
        "allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {"const": 1}}, "required": ["b"]}],
        "$defs": {"a": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    },
    "set": {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c"]}, "minItems": 2},
    "array": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
    "tuple": {"type": "array", "prefixItems": [{"const": 1}, {"type": "string"}], "items": False, "minItems": 2},
    "a property called $ref": {"type": "object", "properties": {"$ref": {"type": "string"}}, "required": ["$ref"]},
    "pattern": {"type": "string", "pattern": r"^[A-Z]{2,3}-\d{4}(?:\.(a|b|[^c-z]))?$"},
    "unanchored pattern": {"type": "string", "pattern": "foo|bar", "minLength": 20},
    "pattern of a length": {"type": "string", "pattern": "^[a-z]+$", "minLength": 12, "maxLength": 13},
    "nullable object": {
        "anyOf": [{"type": "object", "required": ["q"], "properties": {"q": {"const": 1}}}, {"type": "null"}]
    },
}
FORMATS = ["date", "time", "date-time", "email", "ipv4", "ipv6", "uri", "uuid", "hostname", "regex", "duration"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def wire_schemas() -> dict[str, Any]:
    """The schemas that Aeon itself sends."""
    return {path.stem: json.loads(path.read_text()) for path in sorted((resource_root() / "schemas").glob("*.json"))}


def assert_valid(schema: Any, value: Any) -> None:
    errors = list(validator_for(schema)(schema).iter_errors(value))
    assert not errors, f"{json.dumps(value)[:400]}: {errors[0].message}"


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_made_up_value_is_valid_for_every_seed(name: str) -> None:
    for seed in range(15):
        assert_valid(SCHEMAS[name], make_value(SCHEMAS[name], Random(seed)))


@pytest.mark.parametrize("name", sorted(wire_schemas()))
def test_a_made_up_value_is_valid_for_what_is_sent_on_the_wire(name: str) -> None:
    schema = wire_schemas()[name]
    for seed in range(5):
        assert_valid(schema, make_value(schema, Random(seed)))


@pytest.mark.parametrize("form", FORMATS)
def test_a_format_is_obeyed(form: str) -> None:
    checker = validator_for({}).FORMAT_CHECKER
    for seed in range(10):
        assert checker.conforms(make_value({"type": "string", "format": form}, Random(seed)), form)


def test_the_same_random_state_makes_the_same_value() -> None:
    for schema in SCHEMAS.values():
        assert make_value(schema, Random("one")) == make_value(schema, Random("one"))


def test_free_text_says_that_it_is_simulated_and_for_what_it_stands() -> None:
    value = make_value(
        {"type": "object", "properties": {"due_note": {"type": "string"}}, "required": ["due_note"]}, Random(1)
    )
    assert value["due_note"].startswith("(simulated) due note ")


def test_a_reference_out_of_the_schema_is_never_followed() -> None:
    schema = {"properties": {"a": {"$ref": "https://example.org/never-fetched.json"}}, "required": ["a"]}
    with pytest.raises(NotSimulated):
        make_value(schema, Random(0))
    assert not is_valid(schema, {"a": 5})


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": r"^(?=z)a$"},
        {"type": "string", "pattern": "(unclosed"},
        {"type": "nonsense"},
        {"allOf": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "required": ["a"], "properties": {"a": False}},
        {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"enum": []},
        {"type": "array", "items": {"type": "integer"}, "contains": {"minimum": 10**6}, "minContains": 2},
        {"type": "object", "minProperties": 1},
        {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[A-Z]{5}$"}},
    ],
)
def test_a_schema_that_is_too_odd_for_it_or_that_no_value_satisfies_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(NotSimulated, match="can make up no value"):
        make_value(schema, Random(0))
    with pytest.raises(NotSimulated):
        fit_value(schema, 1.5, Random(0))
    complete_value(schema, {"a": 1}, Random(0))


@pytest.mark.parametrize("name", SCHEMAS)
@given(wish=JSON)
@settings(max_examples=10, deadline=None)
def test_a_fitted_value_is_valid_whatever_was_wished_for(name: str, wish: Any) -> None:
    assert_valid(SCHEMAS[name], fit_value(SCHEMAS[name], wish, Random(0)))


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_wish_that_is_valid_is_taken_as_it_is(name: str) -> None:
    wish = make_value(SCHEMAS[name], Random(7))
    assert fit_value(SCHEMAS[name], wish, Random(8)) == wish


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
    assert fit_value(schema, wish, Random(0)) == {"score": 1, "note": "abcd", "tags": ["x"], "level": 3}


def test_what_is_given_is_completed_and_never_changed() -> None:
    plan = wire_schemas()["plan"]
    given = {"steps": [{"step_id": "a", "description": 5, "unknown": True}]}
    value = complete_value(plan, given, Random(0))
    assert value["goal"].startswith("(simulated)")
    assert value["steps"] == [
        {
            "step_id": "a",
            "description": 5,
            "unknown": True,
            "dependencies": [],
            "provides": [],
            "handoff_to_next": None,
            "tool": None,
            "arguments": None,
        }
    ]


def test_a_score_outside_its_range_stays_when_given() -> None:
    value = complete_value(wire_schemas()["convergence"], {"completeness_score": 1.7}, Random(0))
    assert value["completeness_score"] == 1.7
    assert 0 <= value["coherence_score"] <= 1


@pytest.mark.parametrize("given", ["text", 3, None, [1, {"a": 2}], True])
def test_anything_given_at_the_top_stays(given: Any) -> None:
    assert complete_value(wire_schemas()["step"], given, Random(0)) == given


def test_making_a_value_does_not_change_the_schema() -> None:
    for schema in SCHEMAS.values():
        before = json.dumps(schema)
        make_value(schema, Random(3))
        assert json.dumps(schema) == before
