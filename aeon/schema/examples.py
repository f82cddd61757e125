"""Values made from a schema: examples of what it asks for, wishes fitted to it, and values completed by it. Plain
keywords are known; for a `pattern`, give `examples` or a `default`. What is made is valid, or refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aeon.schema.json_schema import is_type, resolve
from aeon.schema.validators import is_valid
from aeon.schema.visits import MOST_VISITS

# Deeper than the first, lists are empty and what may be null is null; deeper than the second nothing is made.
_SPARE_DEPTH, _MAX_DEPTH = 4, 24
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
"""No wish."""


class NoExample(Exception):
    """No value is easily made for a schema."""


def make_example(
    schema: Mapping[str, Any], wish: Any = NOTHING, text: Callable[[str], str] = lambda _: "text"
) -> Any:
    """A value that the schema accepts, with all that it requires, and as much of `wish` as it allows. `text` makes the
    texts of properties by their names. Raises NoExample."""
    if wish is not NOTHING and is_valid(schema, wish):
        return wish
    made = _Maker(schema, text).make(schema, wish)
    if not is_valid(schema, made):
        raise NoExample
    return made


def complete_value(schema: Mapping[str, Any], given: Any, text: Callable[[str], str]) -> Any:
    """`given`, never changed, with every required property that it lacks: null or an empty list where that is allowed,
    else as in an example. As it is given, where none can be made."""
    try:
        return _Maker(schema, text).complete(schema, given)
    except NoExample:
        return given


@dataclass
class _Maker:
    document: Mapping[str, Any]
    text: Callable[[str], str]
    made: int = 0
    flattened: int = 0

    def make(self, schema: Any, wish: Any = NOTHING, name: str = "", depth: int = 0) -> Any:
        """A value for the property `name`. Raises NoExample."""
        self.made += 1
        if self.made > _MOST_VALUES:
            raise NoExample
        flat = self._flatten(schema, wish, depth)
        allowed = [*flat.get("enum", ()), *([flat["const"]] if "const" in flat else [])]
        listed = [
            *flat.get("examples", ()),
            *allowed,
            *([] if flat.get("default") is None else [flat["default"]]),
        ]
        if allowed and wish is not NOTHING:
            return allowed[allowed.index(wish) if wish in allowed else 0]
        if listed and wish is NOTHING:
            return None if depth > _SPARE_DEPTH and None in listed else listed[0]
        kind = _choose_type(flat, wish, depth)
        if kind == "object":
            return self._make_object(flat, wish if isinstance(wish, Mapping) else {}, depth)
        if kind == "array":
            wishes = wish if isinstance(wish, list) else [NOTHING] if depth <= _SPARE_DEPTH else []
            wishes = [*wishes, *[NOTHING] * (flat.get("minItems", 0) - len(wishes))]
            items = flat.get("items", {})
            return [
                self.make(items, each, name, depth + 1) for each in wishes[: flat.get("maxItems")]
            ]
        if kind in ("integer", "number"):
            number = wish if is_type(wish, "number") else flat.get("minimum", 1)
            number = max(number, flat.get("minimum", number))
            number = min(number, flat.get("maximum", number))
            return math.ceil(number) if kind == "integer" else number
        if kind == "string":
            made = (
                wish
                if isinstance(wish, str)
                else _FORMATS.get(flat.get("format", "")) or self.text(name)
            )
            return made.ljust(flat.get("minLength", 0), ".")[: flat.get("maxLength")]
        return None if kind == "null" else wish is not False

    def _make_object(
        self, flat: Mapping[str, Any], wish: Mapping[str, Any], depth: int
    ) -> dict[str, Any]:
        known, other = flat.get("properties", {}), flat.get("additionalProperties", {})
        # Where nothing is required or wished for, the first property.
        wanted = [
            *flat.get("required", ()),
            *(name for name in wish if name in known or other is not False),
        ]
        wanted = wanted or list(known)[:1]
        names = dict.fromkeys((*(name for name in known if name in wanted), *wanted))
        return {
            name: self.make(known.get(name, other), wish.get(name, NOTHING), name, depth + 1)
            for name in names
        }

    def complete(self, schema: Any, given: Any) -> Any:
        """What is given with the required properties that are missing."""
        if not isinstance(given, dict | list):
            return given
        flat = self._flatten(schema, given, 0)
        if isinstance(given, list):
            return [self.complete(flat.get("items", {}), item) for item in given]
        known = flat.get("properties", {})
        missing = [name for name in flat.get("required", ()) if name not in given]
        whole = {
            **given,
            **{
                name: self.make(known.get(name), NOTHING, name, _SPARE_DEPTH + 1)
                for name in missing
            },
        }
        return {
            name: self.complete(known.get(name), whole[name])
            for name in {**known, **whole}
            if name in whole
        }

    def _flatten(self, schema: Any, wish: Any, depth: int) -> dict[str, Any]:
        self.flattened += 1
        if self.flattened > MOST_VISITS:
            raise NoExample
        flat = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(_MAX_DEPTH - depth):
            if "$ref" in flat:
                parts = [resolve(self.document, flat.pop("$ref"))]
            elif "allOf" in flat:
                parts = flat.pop("allOf")
            elif options := flat.pop("anyOf", None) or flat.pop("oneOf", None):
                parts = [self._choose(options, wish, depth)]
            else:
                return flat
            for part in parts:
                flat = {**part, **flat} if isinstance(part, Mapping) else flat
        raise NoExample

    def _choose(self, options: list[Any], wish: Any, depth: int) -> Any:
        kinds = [_types(self._flatten(option, NOTHING, depth + 1)) for option in options]
        for option, allowed in zip(options, kinds, strict=True):
            if wish is not NOTHING and (
                not allowed or any(is_type(wish, kind) for kind in allowed)
            ):
                return option
        return (
            options[kinds.index(["null"])]
            if depth > _SPARE_DEPTH and ["null"] in kinds
            else options[0]
        )


def _types(flat: Mapping[str, Any]) -> list[str]:
    kinds = flat.get("type", ["object"] if "properties" in flat else [])
    return [kinds] if isinstance(kinds, str) else list(kinds)


def _choose_type(flat: Mapping[str, Any], wish: Any, depth: int) -> str:
    kinds = _types(flat) or ["object" if depth == 0 else "string"]
    wished = [kind for kind in kinds if wish is not NOTHING and is_type(wish, kind)]
    spare = ["null"] if depth > _SPARE_DEPTH and "null" in kinds else []
    return (wished or spare or [kind for kind in kinds if kind != "null"] or kinds)[0]
