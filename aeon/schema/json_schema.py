"""JSON Schemas as documents: their parts, their references, their types. Pure; nothing is ever fetched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

# Where schemas stand within a schema, by keyword: under names, in a list, or alone (older drafts' keywords included).
_MAPS = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_TYPES: Mapping[str, Any] = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": Mapping,
}


def pointer(path: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901) from its parts; empty for the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def is_type(value: Any, kind: str) -> bool:
    """Whether a value is of a JSON Schema type; false for a name that is no type. 1.0 is an integer, true is none."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, ()))


def type_of(value: Any) -> str:
    """The narrowest JSON Schema type of a JSON value."""
    return next(kind for kind in _TYPES if is_type(value, kind))


def inner_schemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The schemas directly in a schema, each with its path. Data (enum, const, default) is not entered."""
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, Mapping):
            yield from (((keyword, name), inner) for name, inner in value.items())
        elif keyword in _LISTS and isinstance(value, list | tuple):
            yield from (((keyword, index), inner) for index, inner in enumerate(value))
        elif keyword in _SINGLE:
            yield (keyword,), value


def walk(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema with its JSON pointer, outermost first."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for path, inner in inner_schemas(schema):
        yield from walk(inner, place + pointer(path))


def rebuild(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of the schema with `change` applied to every schema in it, innermost first."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for path, inner in inner_schemas(schema):
        keyword = str(path[0])
        if len(path) == 1:
            result[keyword] = rebuild(inner, change)
            continue
        if result[keyword] is schema[keyword]:
            result[keyword] = schema[keyword].copy()
        result[keyword][path[1]] = rebuild(inner, change)
    return change(result)


def resolve(schema: Mapping[str, Any], reference: str) -> Any:
    """The schema that a reference within this schema leads to; None when it leads to none. Nothing is fetched."""
    resource = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", resource).resolver_with_root(resource)
    try:
        found = resolver.lookup(reference).contents
    except (Unresolvable, TypeError):
        return None
    return found if isinstance(found, Mapping | bool) else None


def enum_of(schema: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """The values that a schema lists for the first property of that name, wherever it is; empty when it lists none."""
    for _, part in walk(schema):
        found = part.get("properties", {}).get(name)
        if isinstance(found, Mapping) and "$ref" in found:
            found = resolve(schema, found["$ref"])
        if isinstance(found, Mapping) and "enum" in found:
            return tuple(found["enum"])
    return ()
