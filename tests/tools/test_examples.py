"""Example arguments for tools that have none."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.tools.registry import ToolRegistry
from tests.tools.builders import NO_ARGUMENTS, a_tool


def shown(schema: dict[str, Any], **more: Any) -> Any:
    (described,) = ToolRegistry([a_tool(inputs=schema, **more)]).describe()
    return described.get("examples")


def fields(*required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required)}


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        (NO_ARGUMENTS, {}),
        (fields("text", text={"type": "string"}, more={"type": "string"}), {"text": "text"}),
        (fields(text={"type": "string"}), {"text": "text"}),
        (fields("n", n={"type": "integer", "minimum": 3}), {"n": 3}),
        (fields("n", n={"type": "number", "maximum": 0}), {"n": 0}),
        (fields("unit", unit={"enum": ["km", "mi"]}), {"unit": "km"}),
        (fields("day", day={"type": "string", "format": "date"}), {"day": "2026-01-31"}),
        (fields("city", city={"type": "string", "examples": ["Turin"]}), {"city": "Turin"}),
        (fields("all", all={"type": "boolean", "default": False}), {"all": False}),
        (fields("of", of={"type": "array", "items": {"type": "integer"}}), {"of": [1]}),
        (fields("of", of={"type": ["string", "null"]}), {"of": "text"}),
        (fields(of={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}), {"of": 1}),
        (fields("of", of={"anyOf": [{"type": "integer"}, {"type": "null"}]}), {"of": 1}),
        (
            {
                **fields("at", at={"$ref": "#/$defs/at"}),
                "$defs": {"at": fields("x", x={"type": "number"})},
            },
            {"at": {"x": 1}},
        ),
    ],
)
def test_a_tool_without_examples_is_shown_with_one_made_from_its_schema(
    schema: dict[str, Any], example: Any
) -> None:
    assert shown(schema) == [example]


@pytest.mark.parametrize(
    "schema",
    [
        fields("code", code={"type": "string", "pattern": "^[0-9]{4}$"}),
        {**fields("a", a={"$ref": "#"})},
        {
            **fields("a", a={"$ref": "#/$defs/a"}),
            "$defs": {
                "a": fields(*"abcdefgh", **{name: {"$ref": "#/$defs/a"} for name in "abcdefgh"})
            },
        },
    ],
)
def test_what_is_not_easily_made_has_no_example(schema: dict[str, Any]) -> None:
    assert shown(schema) is None


def test_a_tools_own_examples_stay() -> None:
    assert shown(fields("text", text={"type": "string"}), examples=[{"text": "its own"}]) == [
        {"text": "its own"}
    ]
