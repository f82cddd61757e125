"""Makes values from a schema: examples, wishes adapted to it, and completed values. Supports plain
keywords; a `pattern` needs `examples` or a `default`. Every value made is valid, or NoExample is
raised."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import is_type, resolve
from aeon.schema.validators import is_valid
from aeon.schema.visits import MOST_VISITS

# Below the first depth, lists are empty and nullable values null; below the second, nothing is
# made.
_SPARE_DEPTH = 4
_MAX_DEPTH = 24
_MOST_VALUES = 1000
_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
NOTHING: Final = object()
"""The absence of a wish."""


class NoExample(Exception):
    """No simple value can be made for a schema."""


def make_example(
    schema: JsonMapping, wish: object = NOTHING, text: Callable[[str], str] = lambda _: "text"
) -> Any:
    """Make a value that the schema accepts, with all required properties and as much of `wish` as
    allowed. `text` makes the texts of properties from their names. Raises NoExample."""
    if wish is not NOTHING and is_valid(schema, wish):
        return wish
    made = _Maker(schema, text).make(schema, wish)
    if not is_valid(schema, made):
        raise NoExample
    return made


def complete_value(schema: JsonMapping, given: object, text: Callable[[str], str]) -> Any:
    """Return `given`, which is never changed, with every missing required property: null or an
    empty list if allowed, else as in an example. Returns `given` itself if no value can be made."""
    try:
        return _Maker(schema, text).complete(schema, given)
    except NoExample:
        return given


@dataclass
class _Maker:
    document: JsonMapping
    text: Callable[[str], str]
    made: int = 0
    flattened: int = 0

    def make(self, schema: object, wish: object = NOTHING, name: str = "", depth: int = 0) -> Any:
        """Make a value for the property `name`. Raises NoExample."""
        self.made += 1
        if self.made > _MOST_VALUES:
            raise NoExample
        flat = self._flatten(schema, wish, depth)
        listed = _choose_listed(flat, wish, depth)
        if listed is not NOTHING:
            return listed
        match _choose_type(flat, wish, depth):
            case "object":
                return self._make_object(flat, wish if isinstance(wish, Mapping) else {}, depth)
            case "array":
                return self._make_array(flat, wish, name, depth)
            case "integer":
                return math.ceil(_make_number(flat, wish))
            case "number":
                return _make_number(flat, wish)
            case "string":
                return self._make_string(flat, wish, name)
            case "null":
                return None
        return wish is not False

    def _make_object(self, flat: JsonMapping, wish: JsonMapping, depth: int) -> JsonObject:
        known = flat.get("properties", {})
        other = flat.get("additionalProperties", {})
        wished = [name for name in wish if name in known or other is not False]
        # If nothing is required or wished for, the first property.
        needed = [*flat.get("required", ()), *wished] or list(known)[:1]
        names = dict.fromkeys((*(name for name in known if name in needed), *needed))
        return {
            name: self.make(known.get(name, other), wish.get(name, NOTHING), name, depth + 1)
            for name in names
        }

    def _make_array(self, flat: JsonMapping, wish: object, name: str, depth: int) -> list[Any]:
        usual = [NOTHING] if depth <= _SPARE_DEPTH else []
        wishes = wish if isinstance(wish, list) else usual
        missing = flat.get("minItems", 0) - len(wishes)
        wishes = [*wishes, *[NOTHING] * missing][: flat.get("maxItems")]
        return [self.make(flat.get("items", {}), each, name, depth + 1) for each in wishes]

    def _make_string(self, flat: JsonMapping, wish: object, name: str) -> str:
        usual = _FORMATS.get(flat.get("format", "")) or self.text(name)
        made = wish if isinstance(wish, str) else usual
        return made.ljust(flat.get("minLength", 0), ".")[: flat.get("maxLength")]

    def complete(self, schema: object, given: object) -> Any:
        """Return `given` with its missing required properties added."""
        if not isinstance(given, dict | list):
            return given
        flat = self._flatten(schema, given, 0)
        if isinstance(given, list):
            return [self.complete(flat.get("items", {}), item) for item in given]
        known = flat.get("properties", {})
        whole = dict(given)
        for name in flat.get("required", ()):
            if name not in given:
                whole[name] = self.make(known.get(name), NOTHING, name, _SPARE_DEPTH + 1)
        in_order = [name for name in {**known, **whole} if name in whole]
        return {name: self.complete(known.get(name), whole[name]) for name in in_order}

    def _flatten(self, schema: object, wish: object, depth: int) -> JsonObject:
        """Return the schema with references, parts and one of its alternatives resolved."""
        self.flattened += 1
        if self.flattened > MOST_VISITS:
            raise NoExample
        flat = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(_MAX_DEPTH - depth):
            parts = self._take_parts(flat, wish, depth)
            if parts is None:
                return flat
            for part in parts:
                flat = {**part, **flat} if isinstance(part, Mapping) else flat
        raise NoExample

    def _take_parts(self, flat: JsonObject, wish: object, depth: int) -> list[Any] | None:
        if "$ref" in flat:
            return [resolve(self.document, flat.pop("$ref"))]
        if "allOf" in flat:
            return list(flat.pop("allOf"))
        options = flat.pop("anyOf", None) or flat.pop("oneOf", None)
        return [self._choose(options, wish, depth)] if options else None

    def _choose(self, options: list[Any], wish: object, depth: int) -> Any:
        kinds = [_types(self._flatten(option, NOTHING, depth + 1)) for option in options]
        if wish is not NOTHING:
            for option, allowed in zip(options, kinds, strict=True):
                if not allowed or _is_one_of(wish, allowed):
                    return option
        is_spare = depth > _SPARE_DEPTH and ["null"] in kinds
        return options[kinds.index(["null"])] if is_spare else options[0]


def _choose_listed(flat: JsonMapping, wish: object, depth: int) -> Any:
    """Return a value that the schema lists: the wished one if only listed ones are allowed, else
    any example; NOTHING if it lists none."""
    allowed = [*flat.get("enum", ()), *([flat["const"]] if "const" in flat else [])]
    if wish is not NOTHING:
        # True equals 1 in Python, but only one of them may be listed.
        number = allowed.index(wish) if wish in allowed else 0
        return allowed[number] if allowed else NOTHING
    default = flat.get("default")
    listed = [*flat.get("examples", ()), *allowed, *([] if default is None else [default])]
    if depth > _SPARE_DEPTH and None in listed:
        return None
    return listed[0] if listed else NOTHING


def _make_number(flat: JsonMapping, wish: object) -> Any:
    number = wish if is_type(wish, "number") else flat.get("minimum", 1)
    number = max(number, flat.get("minimum", number))
    return min(number, flat.get("maximum", number))


def _types(flat: JsonMapping) -> list[str]:
    kinds = flat.get("type", ["object"] if "properties" in flat else [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _is_one_of(wish: object, kinds: list[str]) -> bool:
    return any(is_type(wish, kind) for kind in kinds)


def _choose_type(flat: JsonMapping, wish: object, depth: int) -> str:
    kinds = _types(flat) or ["object" if depth == 0 else "string"]
    for kind in kinds:
        if wish is not NOTHING and is_type(wish, kind):
            return kind
    if depth > _SPARE_DEPTH and "null" in kinds:
        return "null"
    return next((kind for kind in kinds if kind != "null"), kinds[0])
