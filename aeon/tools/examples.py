"""Example arguments for a tool without examples, made from its input schema: they show what a call looks like.

A schema for which no example is easily made has none, rather than a wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aeon.schema.validators import SchemaValidator, find_violations

_DEEPEST = 8
_MOST_VALUES = 100
_TEXTS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "someone@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


def example_arguments(schema: Mapping[str, Any], validator: SchemaValidator) -> Mapping[str, Any] | None:
    """Arguments that the schema accepts, with all that it requires; None where none are easily found."""
    try:
        made = _ExampleMaker(schema).value(schema, 0)
    except _TooLarge:
        return None
    return made if isinstance(made, Mapping) and not find_violations(validator, made) else None


class _TooLarge(Exception):
    """The example would be too large to show."""


class _ExampleMaker:
    """Makes one example by a schema and follows its references."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._made = 0

    def value(self, part: Any, depth: int) -> Any:
        """An example of a part: one that the schema gives, else the simplest of its type."""
        self._made += 1
        if self._made > _MOST_VALUES or depth > _DEEPEST:
            raise _TooLarge
        if not isinstance(part, Mapping):
            return None
        for keyword in ("examples", "enum"):
            if _is_filled(part.get(keyword)):
                return part[keyword][0]
        for keyword in ("const", "default"):
            if part.get(keyword) is not None:
                return part[keyword]
        if isinstance(part.get("$ref"), str):
            return self.value(_target(part["$ref"], self._document), depth + 1)
        for keyword in ("anyOf", "oneOf", "allOf"):
            if _is_filled(part.get(keyword)):
                return self.value(part[keyword][0], depth + 1)
        return self._of_type(part, depth)

    def _of_type(self, part: Mapping[str, Any], depth: int) -> Any:
        kind = part.get("type", "object" if "properties" in part or depth == 0 else "string")
        kind = kind[0] if _is_filled(kind) else kind
        if kind == "object":
            found = part.get("properties")
            known = found if isinstance(found, Mapping) else {}
            # Where nothing is required, the first property.
            names = list(part["required"]) if _is_filled(part.get("required")) else list(known)[:1]
            return {name: self.value(known.get(name, {}), depth + 1) for name in names}
        if kind == "array":
            return [self.value(part.get("items", {}), depth + 1)]
        if kind in ("integer", "number"):
            return part.get("minimum", min(1, part.get("maximum", 1)))
        return {"boolean": True, "null": None}.get(str(kind), _TEXTS.get(str(part.get("format")), "text"))


def _is_filled(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0


def _target(reference: str, document: Mapping[str, Any]) -> Any:
    found: Any = document
    for name in reference.removeprefix("#/").split("/"):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
