"""The rules of strict structured output, as the scripted server applies them."""

from typing import Any

import pytest

from tests.support.strict_subset import violations


def an_object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def nested(levels: int) -> dict[str, Any]:
    return an_object(a={"type": "string"}) if levels == 1 else an_object(a=nested(levels - 1))


TEXT = {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        an_object(a=TEXT),
        an_object(),
        an_object(a={"type": ["string", "null"], "description": "May be missing."}),
        an_object(
            a={"type": "string", "enum": ["x", "y"]}, b={"enum": ["x", None]}, c={"const": 1}
        ),
        an_object(a={"anyOf": [TEXT, {"type": "null"}, an_object(b=TEXT)]}),
        an_object(a={"type": "array", "items": TEXT, "minItems": 1, "maxItems": 3}),
        an_object(
            a={"type": "number", "minimum": 0, "maximum": 1}, b={"type": "string", "pattern": "^x$"}
        ),
        an_object(a={"type": "string", "format": "date-time"}),
        {**an_object(a={"$ref": "#/$defs/part"}), "$defs": {"part": an_object(b=TEXT)}},
        {
            **an_object(a={"$ref": "#/$defs/node"}),
            "$defs": {"node": an_object(next={"$ref": "#/$defs/node"})},
        },
        an_object(a={"anyOf": [{"$ref": "#"}, {"type": "null"}]}),
        nested(10),
        an_object(**{f"p{n}": {"type": "integer"} for n in range(5000)}),
    ],
)
def test_what_strict_mode_accepts_has_no_violations(schema: dict[str, Any]) -> None:
    assert violations(schema) == []


@pytest.mark.parametrize(
    ("schema", "where", "what"),
    [
        ({"type": "array", "items": TEXT}, "#", "root must be an object"),
        ({**an_object(a=TEXT), "anyOf": [an_object(a=TEXT)]}, "#", "root must not be anyOf"),
        (
            {"type": "object", "properties": {"a": TEXT}, "required": ["a"]},
            "#",
            "additionalProperties must be false",
        ),
        (
            {**an_object(a=TEXT), "additionalProperties": TEXT},
            "#",
            "additionalProperties must be false",
        ),
        ({**an_object(a=TEXT, b=TEXT), "required": ["a"]}, "#", "property 'b' must be required"),
        ({**an_object(a=TEXT), "required": ["a", "z"]}, "#", "required names 'z'"),
        ({"type": "object", "additionalProperties": False}, "#", "an object needs properties"),
        (an_object(a={"type": "object"}), "#/properties/a", "additionalProperties must be false"),
        (an_object(a={"type": ["object", "null"]}), "#/properties/a", "an object needs properties"),
        (an_object(a={}), "#/properties/a", "is needed"),
        (an_object(a=True), "#/properties/a", "a schema must be an object"),
        (an_object(a={"type": "text"}), "#/properties/a", "'text' does not exist"),
        (an_object(a={"type": "array"}), "#/properties/a", "an array needs items"),
        (
            an_object(a={"type": "array", "items": {"type": "object"}}),
            "#/properties/a/items",
            "additionalProperties",
        ),
        (an_object(a={"type": "string", "enum": []}), "#/properties/a", "enum must be"),
        (an_object(a={"type": "string", "format": "uri"}), "#/properties/a", "format 'uri'"),
        (an_object(a={"$ref": "#/$defs/none"}), "#/properties/a", "leads nowhere"),
        (an_object(a={"$ref": "https://example.org/x.json"}), "#/properties/a", "leads nowhere"),
        (
            {**an_object(a=TEXT), "$defs": {"p": {"type": "object"}}},
            "#/$defs/p",
            "additionalProperties",
        ),
        (
            an_object(a={"anyOf": [TEXT, {"oneOf": [TEXT]}]}),
            "#/properties/a/anyOf/1",
            "'oneOf' is not supported",
        ),
        (nested(11), "#" + "/properties/a" * 10, "more than 10 levels"),
        (an_object(**{f"p{n}": {"type": "integer"} for n in range(5001)}), "#", "5001 properties"),
        (an_object(a={"enum": list(range(1001))}), "#", "1001 enum values"),
        (an_object(a={"enum": [f"{n:060}" for n in range(251)]}), "#/properties/a", "over 15000"),
        (an_object(**{"p" * 120_001: {"type": "integer"}}), "#", "120001 characters"),
    ],
)
def test_a_violation_names_its_place(schema: dict[str, Any], where: str, what: str) -> None:
    found = violations(schema)
    assert any(problem.startswith(f"{where}: ") and what in problem for problem in found), found


@pytest.mark.parametrize(
    "keyword",
    ["allOf", "oneOf", "not", "if", "then", "else", "default", "minLength", "maxLength", "uniqueItems", "contains",
     "patternProperties", "minProperties", "propertyNames", "dependentRequired", "$schema", "examples"],
)  # fmt: skip
def test_keywords_outside_the_subset_are_named(keyword: str) -> None:
    assert violations(an_object(a={**TEXT, keyword: []})) == [
        f"#/properties/a: keyword {keyword!r} is not supported"
    ]


def test_levels_are_counted_through_references() -> None:
    schema = {**an_object(a={"$ref": "#/$defs/deep"}), "$defs": {"deep": nested(10)}}
    assert any("more than 10 levels" in problem for problem in violations(schema))
