"""Every schema that Aeon sends becomes a grammar that llama.cpp takes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from aeon.domain.request import CallName
from aeon.llm.local.grammar import NotExpressible, closest_grammar, expressible
from aeon.llm.local.model import Loading, LocalModel
from aeon.llm.schemas import CALLS, SchemaLibrary
from tests.llm.local.conftest import MakeAdapter
from tests.support.requests import request

ODD: dict[str, Any] = {
    "type": "object",
    "properties": {
        "space": {"type": "boolean"},
        "char": {"type": "boolean"},
        "string": {
            "type": "object",
            "properties": {"value": {"type": "null"}},
            "required": ["value"],
        },
        "a b/c~d": {"enum": [1, None, "x", 'q"\\']},
        "address": {"$ref": "#/$defs/address"},
        "other": {
            "type": "object",
            "properties": {"address": {"$ref": "#/$defs/address"}},
            "required": ["address"],
        },
    },
    "required": ["space", "char", "string", "a b/c~d", "address", "other"],
    "additionalProperties": False,
    "$defs": {
        "address": {
            "type": "object",
            "properties": {"zip": {"type": ["integer", "null"]}},
            "required": ["zip"],
            "additionalProperties": False,
        }
    },
}
RECURSIVE: dict[str, Any] = {
    "type": "object",
    "properties": {"left": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["left"],
}


@pytest.fixture
def model(tiny_model: Path) -> Iterator[LocalModel]:
    loaded = LocalModel(Loading(tiny_model, 512, 0, 1))
    yield loaded
    loaded.close()


@pytest.mark.parametrize("tools", [None, (), ("web.search", 'odd "name" \\ é', "a-b_c")])
@pytest.mark.parametrize("call", CALLS)
def test_the_schema_of_every_call_is_taken(
    model: LocalModel, call: CallName, tools: tuple[str, ...] | None
) -> None:
    wire = SchemaLibrary().wire(
        call, tools=tools, criteria=("short", "kind words") if call == "convergence" else ()
    )
    own = closest_grammar(wire.schema)
    assert own != closest_grammar(RECURSIVE)
    assert model.takes(own)
    for name in wire.schema["required"]:
        assert name in own


def test_properties_are_written_in_the_order_of_the_schema(model: LocalModel) -> None:
    root = next(line for line in closest_grammar(ODD).splitlines() if line.startswith("root ::="))
    places = [
        root.index(f" {name}-kv")
        for name in ("space", "char", "string", "a-b-c-d", "address", "other")
    ]
    assert places == sorted(places)


def test_a_grammar_that_is_none_is_not_taken(model: LocalModel) -> None:
    assert not model.takes('root ::= "a')
    assert not model.takes("root ::= missing")


def test_odd_names_and_shared_definitions_are_held_to(local: MakeAdapter) -> None:
    adapter = local()
    for sample in range(10):
        answer = json.loads(adapter.complete(request(schema=ODD, sample=sample)).text)
        Draft202012Validator(ODD).validate(answer)


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"in": schema}, "required": ["in"]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        RECURSIVE,
        {"type": "object", "allOf": [{"properties": {"a": {"type": "string"}}}]},
        {"type": "object", "properties": {"never": False}, "required": ["never"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {"type": "object", "properties": {"a": {"type": "object", "anyOf": [{"required": ["b"]}]}}},
        nested(400),
    ],
    ids=lambda schema: ", ".join(schema),
)
def test_what_no_grammar_can_hold_is_any_object(local: MakeAdapter, schema: dict[str, Any]) -> None:
    assert closest_grammar(schema) == closest_grammar(RECURSIVE)
    assert isinstance(
        json.loads(local(n_ctx=65536, max_tokens=8000).complete(request(schema=schema)).text), dict
    )


def test_open_places_may_hold_anything(model: LocalModel) -> None:
    schema = {
        "type": "object",
        "properties": {"any": {}, "true": True, "open": {"type": "object"}},
        "required": ["any"],
    }
    own = closest_grammar(schema)
    assert model.takes(own)
    assert "any ::= any-0 | array | string | number | boolean | null" in own


def test_no_grammar_lets_a_control_character_into_a_string() -> None:
    pytest.importorskip("llama_cpp")
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    for grammar in (closest_grammar(schema), closest_grammar(RECURSIVE)):
        assert r"\x00-\x1F" in grammar
        assert r'[^"\\] |' not in grammar


@pytest.mark.parametrize(
    "numbers",
    [
        {"type": "number", "minimum": 0, "maximum": 1},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "minimum": 1},
    ],
)
def test_the_ranges_of_aeons_own_schemas_are_held(
    local: MakeAdapter, numbers: dict[str, Any]
) -> None:
    schema = {
        "type": "object",
        "properties": {
            "numbers": {"type": "array", "items": numbers, "minItems": 20, "maxItems": 20}
        },
        "required": ["numbers"],
        "additionalProperties": False,
    }
    Draft202012Validator(schema).validate(json.loads(local().complete(request(schema=schema)).text))


def test_long_bounds_and_patterns_are_left_to_validation() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "pattern": "^[^x]+$", "maxLength": 5000, "description": "d"},
            "b": {
                "type": "array",
                "items": {"type": "string", "maxLength": 5},
                "maxItems": 1000,
                "minItems": 2,
            },
        },
    }
    assert expressible(schema, schema)["properties"] == {
        "a": {"type": "string"},
        "b": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 2},
    }


def test_several_types_are_several_schemas() -> None:
    found = expressible({"type": ["array", "null"], "items": {"type": "integer"}}, {})
    assert found["anyOf"][0] == {"type": "array", "items": {"type": "integer"}}
    assert found["anyOf"][1]["type"] == "null"


def test_a_schema_that_refers_to_itself_is_not_expressible() -> None:
    with pytest.raises(NotExpressible):
        expressible(RECURSIVE, RECURSIVE)
