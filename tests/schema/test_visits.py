"""Schemas whose work multiplies are refused when they are read, or given up; nothing here takes long, or it never ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aeon.domain.errors import ConfigError, SchemaFileError
from aeon.schema.examples import NoExample, make_example
from aeon.schema.validators import SchemaValidator, compile_schema, find_errors
from aeon.schema.visits import MOST_IN_ALL, VisitBudget, Visits
from aeon.tools.registry import Tool, ToolRegistry

Wrap = Callable[[dict[str, Any]], dict[str, Any]]
DOUBLING: dict[str, Wrap] = {
    "anyOf": lambda inner: {"anyOf": [inner, inner]},
    "allOf": lambda inner: {"allOf": [inner, inner]},
    "oneOf": lambda inner: {"oneOf": [inner, {"not": inner}]},
    "if": lambda inner: {"if": inner, "then": inner},
    "dependentSchemas": lambda inner: {"dependentSchemas": {"a": inner, "b": inner}},
}


def doubled(wrap: Wrap, levels: int) -> dict[str, Any]:
    definitions = {f"d{n}": wrap({"$ref": f"#/$defs/d{n + 1}"}) for n in range(levels)}
    return {
        "type": "object",
        "properties": {"k": {"$ref": "#/$defs/d0"}},
        "$defs": {**definitions, f"d{levels}": {"type": "string"}},
    }


@pytest.mark.parametrize("wrap", DOUBLING.values(), ids=DOUBLING)
def test_a_schema_that_doubles_its_work_at_each_level_is_refused(wrap: Wrap) -> None:
    compile_schema(doubled(wrap, 8), "s")
    with pytest.raises(SchemaFileError, match="checked by more than 10,000 schemas"):
        compile_schema(doubled(wrap, 40), "s")


@pytest.mark.parametrize("wrap", DOUBLING.values(), ids=DOUBLING)
def test_a_tool_with_such_a_schema_is_refused_with_its_place(wrap: Wrap) -> None:
    tool = Tool("t", "d", doubled(wrap, 40), {}, lambda arguments: None)
    with pytest.raises(ConfigError, match=r"tool 't': input_schema: .*10,000 schemas"):
        ToolRegistry([tool])


@pytest.mark.parametrize("part", [True, {}, {"items": {"type": "string"}}])
def test_a_schema_of_very_many_schemas_is_refused(part: Any) -> None:
    compile_schema({"properties": {f"p{n}": part for n in range(4_900)}}, "s")
    with pytest.raises(SchemaFileError, match="s: it has more than 10,000 schemas"):
        compile_schema({"properties": {f"p{n}": part for n in range(10_000)}}, "s")
    with pytest.raises(SchemaFileError, match="s: it has more than 10,000 schemas"):
        compile_schema({"$defs": {"d": {"anyOf": [part] * 10_000}}}, "s")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"anyOf": [{"$ref": "#"}, {"type": "string"}]},
        {"$id": "http://x.y/s", "not": {"$ref": "http://x.y/s"}},
        {"allOf": [{"$ref": "#me"}], "$anchor": "me"},
        {"$dynamicAnchor": "me", "$dynamicRef": "#me"},
    ],
)
def test_a_schema_that_refers_to_itself_in_place_is_refused(schema: Any) -> None:
    with pytest.raises(SchemaFileError, match="it refers to itself"):
        compile_schema(schema, "s")


def test_properties_that_double_are_no_work_for_a_value_that_does_not_have_them() -> None:
    validator = compile_schema(
        doubled(lambda inner: {"properties": {"a": inner, "b": inner}}, 60), "s"
    )
    assert validator.is_valid({"k": {"a": {"b": {"a": {}}}}})
    assert [error.pointer for error in find_errors(validator, {"k": 1, "a": 2})] == []
    assert validator.is_valid({"k": {}})


TREE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "children": {"type": "array", "items": {"$ref": "#"}},
    },
    "required": ["name"],
}


@pytest.mark.slow
def test_a_tree_of_any_size_is_checked_by_a_schema_that_refers_to_itself() -> None:
    leaves = [{"name": str(n), "children": []} for n in range(5_000)]
    validator = compile_schema(TREE, "s")
    assert validator.is_valid({"name": "all", "children": leaves})
    (error,) = find_errors(validator, {"name": "all", "children": [*leaves, {"children": []}]})
    assert error.pointer == "/children/5000"


def test_a_value_that_doubles_the_work_of_a_schema_is_given_up_and_said_so() -> None:
    branch = {"properties": {"a": {"$ref": "#"}}, "required": ["z"]}
    validator = compile_schema({"anyOf": [branch, {**branch}]}, "s")
    value: Any = {}
    for _ in range(40):
        value = {"a": value}
    assert not validator.is_valid(value)
    (error,) = find_errors(validator, value)
    assert "cannot be checked by its schema in 10,000 steps and 20 for each value" in error.message
    assert find_errors(validator, {"z": 1, "a": {"z": 1}}) == []


@pytest.mark.slow
def test_no_check_goes_through_more_schemas_than_there_are_in_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spent: list[int] = []
    spend = VisitBudget.spend

    def count(self: VisitBudget, characters: int = 0) -> None:
        spent.append(1)
        spend(self, characters)

    monkeypatch.setattr(VisitBudget, "spend", count)
    numbers = {"anyOf": [{"type": "string", "maxLength": n} for n in range(18)]}
    unused = {str(n): {} for n in range(1_100)}
    validator = compile_schema({"items": numbers, "properties": unused}, "s")
    (error,) = find_errors(validator, [1] * 60_000)
    assert "200,000 at most" in error.message
    decided_twice_and_explained = 3
    assert len(spent) <= decided_twice_and_explained * (MOST_IN_ALL + 1)


def test_a_value_of_very_many_values_is_not_given_up_by_a_plain_schema() -> None:
    validator = compile_schema({"items": {"type": "integer"}}, "s")
    assert find_errors(validator, [1] * 300_000) == []


def test_of_very_many_errors_the_first_are_reported() -> None:
    errors = find_errors(compile_schema({"items": {"type": "string"}}, "s"), list(range(20_000)))
    assert [error.pointer for error in errors[:2]] == ["/0", "/1"]
    assert len(errors) == 1_000


def test_unlike_items_are_compared_by_the_engine() -> None:
    items = [{"n": n} for n in range(20_000)]
    validator = compile_schema({"uniqueItems": True}, "s")
    assert find_errors(validator, items) == []
    (error,) = find_errors(validator, [*items, {"n": 1.0}])
    assert "has non-unique elements" in error.message


def test_no_example_is_sought_without_an_end() -> None:
    with pytest.raises(NoExample):
        make_example(
            TREE | {"required": ["name", "children", "next"], "properties": {"next": {"$ref": "#"}}}
        )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            {"items": {"$ref": "other.json"}, "$defs": {"a": {"$id": "other.json"}}},
            r"/\$defs/a/\$id",
        ),
        ({"items": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}, None),
    ],
)
def test_only_references_that_can_be_followed_are_taken(schema: Any, said: str | None) -> None:
    if said is None:
        assert SchemaValidator(schema).is_valid([{"type": "string"}])
    else:
        with pytest.raises(SchemaFileError, match=said):
            compile_schema(schema, "s")


def test_a_schema_and_a_value_of_usual_size_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    visits = Visits({"properties": {f"k{n}": {"type": "string"} for n in range(900)}})
    monkeypatch.setattr(Visits, "_visit", None)
    assert not visits.are_too_many({"k1": object()})
