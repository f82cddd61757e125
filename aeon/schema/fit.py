"""Compares your schema file with the packaged one of the same call: it must contain everything that
the program reads.

Both are walked in parallel. At every place, your schema must have the same types as the packaged
one, all its properties, and only values that the packaged one lists, if it lists any. The model is
also asked for properties of your own, but answers there are neither checked nor read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import may_be_left_out, pointer, resolve, type_of


class _Shape:
    """What a schema allows, with all alternatives combined and references followed; `place` is the
    place of its properties."""

    def __init__(self, schema: object, document: JsonMapping, place: str = "") -> None:
        self.place = place
        self.types = dict[str, None]()
        self.values = list[Any]()
        self.properties: JsonMapping = {}
        self.items: Any = None
        for at, form in _find_forms(schema, document, place):
            listed = [form["const"]] if "const" in form else form.get("enum", [])
            kinds = form.get("type", [type_of(value) for value in listed])
            self.types |= dict.fromkeys([kinds] if isinstance(kinds, str) else kinds)
            self.values += listed
            self.items = form.get("items", self.items)
            if "properties" in form:
                self.place = at
                self.properties = form["properties"]

    def allows_only(self, values: Sequence[Any]) -> bool:
        """Whether every allowed value is among `values`; True if `values` is empty."""
        if not values:
            return True
        return bool(self.values) and all(value in values for value in self.values)


def _find_forms(
    schema: Any, document: JsonMapping, place: str
) -> Iterator[tuple[str, JsonMapping]]:
    if "$ref" in schema:
        yield from _find_forms(resolve(document, schema["$ref"]), document, schema["$ref"][1:])
    elif "anyOf" in schema:
        for index, option in enumerate(schema["anyOf"]):
            yield from _find_forms(option, document, f"{place}/anyOf/{index}")
    else:
        yield place, schema


def misfits(own: JsonMapping, packaged: JsonMapping) -> tuple[str, ...]:
    """Return why answers by your schema could not be read, each as `pointer: reason`; empty if they
    can be."""

    def compare(mine: object, theirs: object, place: str) -> Iterator[str]:
        given = _Shape(mine, own, place)
        read = _Shape(theirs, packaged)
        at = given.place or "(root)"
        if given.types.keys() != read.types.keys():
            found = " or ".join(sorted(given.types)) or "anything"
            yield f"{at}: must be of type {' or '.join(read.types)}, not {found}"
            return
        if not given.allows_only(read.values):
            yield f"{at}: must allow no values but {', '.join(map(str, read.values))}"
        for name, schema in read.properties.items():
            if name in given.properties:
                inner = given.place + pointer(("properties", name))
                yield from compare(given.properties[name], schema, inner)
            elif not may_be_left_out(schema):
                yield f"{at}: has no property {name!r}"
        if read.items is not None and given.items is not None:
            yield from compare(given.items, read.items, f"{given.place}/items")

    return tuple(dict.fromkeys(compare(own, packaged, "")))


def relax_extras(own: JsonObject, packaged: JsonMapping) -> JsonObject:
    """Return your schema with unread properties neither required nor checked, and without the
    requirement of properties that may be left out by the packaged schema."""

    def relax(mine: Any, theirs: Any) -> Any:
        if "$ref" in mine:
            return relax(resolve(own, mine["$ref"]), theirs)
        if "anyOf" in mine:
            return {**mine, "anyOf": [relax(option, theirs) for option in mine["anyOf"]]}
        read = _Shape(theirs, packaged)
        result = dict(mine)
        if read.properties and "properties" in mine:
            known = read.properties.keys() & mine["properties"].keys()
            result["properties"] = dict.fromkeys(mine["properties"], True) | {
                name: relax(mine["properties"][name], read.properties[name]) for name in known
            }
            needed = {name for name in known if not may_be_left_out(read.properties[name])}
            result["required"] = [name for name in mine.get("required", ()) if name in needed]
        if read.items is not None and "items" in mine:
            result["items"] = relax(mine["items"], read.items)
        return result

    relaxed: JsonObject = relax(own, packaged)
    return relaxed


def drop_extras(answer: object, packaged: JsonMapping) -> Any:
    """Return an answer without the properties that the packaged schema lacks."""

    def read(value: object, schema: object) -> Any:
        shape = _Shape(schema, packaged)
        if isinstance(value, dict) and shape.properties:
            known = shape.properties
            return {
                name: read(inner, known[name]) for name, inner in value.items() if name in known
            }
        if isinstance(value, list) and shape.items is not None:
            return [read(inner, shape.items) for inner in value]
        return value

    return read(answer, packaged)
