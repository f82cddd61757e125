"""The subset of JSON Schema that OpenAI's strict structured outputs accept, as documented."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aeon.schema.json_schema import resolved, walk

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
    found = list(_of_root(document))
    for place, part in walk(document):
        found += [f"{place or '(root)'}: {reason}" for reason in _of_part(part, document)]
    return tuple(found + list(_of_size(document)))


def _of_root(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield "(root): must be of type object"
    if "anyOf" in schema:
        yield "(root): must not be an anyOf"


def _of_part(part: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    for keyword in sorted(part.keys() - _KEYWORDS):
        yield f"{keyword} is not supported"
    if "$ref" in part:
        yield from _of_reference(part, document)
        return
    if not part.keys() & {"type", "enum", "const", "anyOf"}:
        yield "has no type"
    kinds = part.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not set(kinds) <= _TYPES:
        yield f"type {part['type']} is not supported"
    if "object" in kinds or "properties" in part:
        yield from _of_object(part)
    if "array" in kinds and not isinstance(part.get("items"), dict):
        yield "an array needs items with a schema"
    if part.get("format", "date") not in _FORMATS:
        yield f"format {part['format']} is not supported"
    if any(isinstance(inner, bool) for inner in part.get("anyOf", ())):
        yield "anyOf needs schemas, not true or false"


def _of_object(part: dict[str, Any]) -> Iterator[str]:
    properties = part.get("properties")
    if not isinstance(properties, dict):
        yield "an object needs properties"
        properties = {}
    if part.get("additionalProperties") is not False:
        yield "additionalProperties must be false"
    optional = sorted(properties.keys() - set(part.get("required", ())))
    if optional:
        yield f"every property must be required: {', '.join(optional)}"
    unknown = [name for name in part.get("required", ()) if name not in properties]
    if unknown:
        yield f"required names no property: {', '.join(unknown)}"
    if any(isinstance(inner, bool) for inner in properties.values()):
        yield "a property needs a schema, not true or false"


def _of_reference(part: dict[str, Any], document: dict[str, Any]) -> Iterator[str]:
    reference = part["$ref"]
    if len(part) > 1:
        yield f"$ref cannot stand beside {', '.join(sorted(part.keys() - {'$ref'}))}"
    if not reference.startswith(("#/$defs/", "#/definitions/")) or not isinstance(resolved(document, reference), dict):
        yield f"$ref must lead to a definition of this schema, not {reference}"


def _of_size(document: dict[str, Any]) -> Iterator[str]:
    parts = [part for _, part in walk(document)]
    enums = [part["enum"] for part in parts if isinstance(part.get("enum"), list)]
    names = [name for part in parts for key in ("properties", "$defs", "definitions") for name in part.get(key, {})]
    values = [value for enum in enums for value in enum] + [part["const"] for part in parts if "const" in part]
    properties = sum(len(part.get("properties", {})) for part in parts)
    text = sum(map(len, names)) + _length(values)
    for what, count, limit in (
        ("properties", properties, MAX_PROPERTIES),
        ("enum values", sum(map(len, enums)), MAX_ENUM_VALUES),
        ("characters in names and enum values", text, MAX_TEXT),
        *(("characters in one large enum", _length(e), MAX_LARGE_ENUM_TEXT) for e in enums if len(e) > LARGE_ENUM),
    ):
        if count > limit:
            yield f"(root): {count} {what}, more than {limit}"
    try:
        depth = _nesting(document, document, frozenset(), {})
    except RecursionError:
        yield "(root): refers to itself"
        return
    if depth > MAX_NESTING:
        yield f"(root): objects nested {depth} levels deep, more than {MAX_NESTING}"


def _length(values: list[Any]) -> int:
    return sum(len(value) for value in values if isinstance(value, str))


def _nesting(part: Any, document: dict[str, Any], open_: frozenset[str], known: dict[str, int]) -> int:
    """Levels of objects, each reference followed once; `known` keeps what they lead to.

    RecursionError for a schema that refers to itself: `open_` are the references that are being followed.
    """
    if not isinstance(part, dict):
        return 0
    reference = part.get("$ref")
    if reference is not None:
        if reference in open_:
            raise RecursionError(reference)
        if reference not in known:
            known[reference] = _nesting(resolved(document, reference), document, open_ | {reference}, known)
        return known[reference]
    inner = [*part.get("properties", {}).values(), *part.get("anyOf", ()), part.get("items")]
    deepest = max((_nesting(i, document, open_, known) for i in inner), default=0)
    return deepest + (1 if "properties" in part else 0)
