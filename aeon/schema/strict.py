"""The subset of JSON Schema that OpenAI's strict structured outputs accept, as documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aeon.schema.json_schema import resolve, walk

MAX_PROPERTIES = 5000
MAX_NESTING = 10
MAX_ENUM_VALUES = 1000
MAX_TEXT = 120_000
# One enum of more values than the first may hold no more characters than the second.
LARGE_ENUM, MAX_LARGE_ENUM_TEXT = 250, 15_000

_TYPES = frozenset({"string", "number", "integer", "boolean", "object", "array", "null"})
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_KEYWORDS = frozenset(
    [
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf"),
        *("$ref", "$defs", "definitions", "description", "title", "pattern", "format", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    ]
)


def strict_violations(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """What keeps a schema out of the strict subset, each as `pointer: reason`; empty when it qualifies.

    Recursive schemas do not qualify here, though OpenAI takes them: servers with constrained decoding often do not.
    """
    document = dict(schema)
    parts = list(walk(document))
    found = [("", "must be of type object")] if document.get("type") != "object" else []
    found += [("", "must not be an anyOf")] if "anyOf" in document else []
    found += [(place, reason) for place, part in parts for reason in _check_part(part, document)]
    found += [("", reason) for reason in _check_size([part for _, part in parts], document)]
    return tuple(f"{place or '(root)'}: {reason}" for place, reason in found)


def _check_part(part: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    for keyword in sorted(part.keys() - _KEYWORDS):
        yield f"{keyword} is not supported"
    if "$ref" in part:
        yield from _check_reference(part, document)
        return
    if not part.keys() & {"type", "enum", "const", "anyOf"}:
        yield "has no type"
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not set(kinds) <= _TYPES:
        yield f"type {part['type']} is not supported"
    if "object" in kinds or "properties" in part:
        yield from _check_object(part)
    if "array" in kinds and not isinstance(part.get("items"), dict):
        yield "an array needs items with a schema"
    if part.get("format", "date") not in _FORMATS:
        yield f"format {part['format']} is not supported"
    if any(isinstance(inner, bool) for inner in part.get("anyOf", ())):
        yield "anyOf needs schemas, not true or false"


def _check_object(part: dict[str, Any]) -> Iterator[str]:
    properties, required = part.get("properties"), part.get("required", ())
    if not isinstance(properties, dict):
        yield "an object needs properties"
        properties = {}
    if part.get("additionalProperties") is not False:
        yield "additionalProperties must be false"
    if optional := sorted(properties.keys() - set(required)):
        yield f"every property must be required: {', '.join(optional)}"
    if unknown := [name for name in required if name not in properties]:
        yield f"required names no property: {', '.join(unknown)}"
    if any(isinstance(inner, bool) for inner in properties.values()):
        yield "a property needs a schema, not true or false"


def _check_reference(part: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    reference = part["$ref"]
    if len(part) > 1:
        yield f"$ref cannot stand beside {', '.join(sorted(part.keys() - {'$ref'}))}"
    if not reference.startswith(("#/$defs/", "#/definitions/")) or not isinstance(resolve(document, reference), dict):
        yield f"$ref must lead to a definition of this schema, not {reference}"


def _check_size(parts: list[dict[str, Any]], document: dict[str, Any]) -> Iterator[str]:
    enums = [part["enum"] for part in parts if isinstance(part.get("enum"), list)]
    names = [name for part in parts for key in ("properties", "$defs", "definitions") for name in part.get(key, {})]
    values = [value for enum in enums for value in enum] + [part["const"] for part in parts if "const" in part]
    large = [_count_characters(enum) for enum in enums if len(enum) > LARGE_ENUM]
    for what, count, limit in (
        ("properties", sum(len(part.get("properties", {})) for part in parts), MAX_PROPERTIES),
        ("enum values", sum(map(len, enums)), MAX_ENUM_VALUES),
        ("characters in names and enum values", _count_characters([*names, *values]), MAX_TEXT),
        *(("characters in one large enum", count, MAX_LARGE_ENUM_TEXT) for count in large),
    ):
        if count > limit:
            yield f"{count} {what}, more than {limit}"
    try:
        depth = _nesting(document, document, frozenset(), {})
    except RecursionError:
        yield "refers to itself"
        return
    if depth > MAX_NESTING:
        yield f"objects nested {depth} levels deep, more than {MAX_NESTING}"


def _count_characters(values: list[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _nesting(part: Any, document: dict[str, Any], open_: frozenset[str], known: dict[str, int]) -> int:
    """Levels of objects; `known` has the levels of references. RecursionError for one of the `open_` references."""
    if not isinstance(part, dict):
        return 0
    reference = part.get("$ref")
    if reference in open_:
        raise RecursionError(reference)
    if reference is not None:
        if reference not in known:
            known[reference] = _nesting(resolve(document, reference), document, open_ | {reference}, known)
        return known[reference]
    inner = [*part.get("properties", {}).values(), *part.get("anyOf", ()), part.get("items")]
    deepest = max((_nesting(each, document, open_, known) for each in inner), default=0)
    return deepest + (1 if "properties" in part else 0)
