"""The part of JSON Schema that OpenAI's strict structured output accepts, as published (October 2026).

`violations` names every place where a schema leaves it: what a server with strict mode refuses with 400.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

MAX_DEPTH = 10
MAX_PROPERTIES = 5_000
MAX_NAMES_LENGTH = 120_000
MAX_ENUM_VALUES = 1_000
LARGE_ENUM = 250
MAX_LARGE_ENUM_LENGTH = 15_000

TYPES = {"string", "number", "boolean", "integer", "object", "array", "null"}
FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
KEYWORDS = (
    {"type", "enum", "const", "anyOf", "$ref", "$defs", "definitions", "description", "title"}
    | {"properties", "required", "additionalProperties"}
    | {"items", "minItems", "maxItems"}
    | {"pattern", "format"}
    | {"multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum"}
)


@dataclass
class _Counts:
    properties: int = 0
    enum_values: int = 0
    names_length: int = 0
    found: list[str] = field(default_factory=list)


def violations(schema: Mapping[str, Any]) -> list[str]:
    """Every way in which a schema leaves the strict subset, as `pointer: what`; empty for a schema that is accepted."""
    counts = _Counts()
    if schema.get("type") != "object":
        counts.found.append("#: the root must be an object")
    if "anyOf" in schema:
        counts.found.append("#: the root must not be anyOf")
    _walk(schema, schema, "#", 1, (), counts)
    _check_totals(counts)
    return list(dict.fromkeys(counts.found))


def _walk(
    root: Mapping[str, Any], node: Any, at: str, depth: int, seen: tuple[str, ...], counts: _Counts
) -> None:
    if not isinstance(node, Mapping):
        counts.found.append(f"{at}: a schema must be an object, not {node!r}")
        return
    counts.found += [f"{at}: {problem}" for problem in _problems(root, node)]
    is_object = "object" in _types(node) or "properties" in node
    if is_object and depth > MAX_DEPTH:
        counts.found.append(f"{at}: objects are nested more than {MAX_DEPTH} levels deep")
        return
    _count(node, at, counts)
    for name, child, deeper in _children(node):
        _walk(root, child, f"{at}/{name}", depth + (is_object and deeper), seen, counts)
    reference = node.get("$ref")
    if (
        isinstance(reference, str)
        and reference not in seen
        and (target := _resolve(root, reference)) is not None
    ):
        # A definition counts once, wherever it stands; through a reference only its depth is looked at.
        _walk(root, target, at, depth, (*seen, reference), _Counts(found=counts.found))


def _problems(root: Mapping[str, Any], node: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"keyword {key!r} is not supported" for key in node if key not in KEYWORDS)
    types = _types(node)
    yield from (f"type {name!r} does not exist" for name in types if name not in TYPES)
    if not any(key in node for key in ("type", "anyOf", "$ref", "enum", "const")):
        yield "a type, an anyOf, an enum, a const or a $ref is needed"
    if "object" in types or "properties" in node:
        yield from _object_problems(node)
    if "array" in types and "items" not in node:
        yield "an array needs items"
    if "enum" in node and (not isinstance(node["enum"], list) or not node["enum"]):
        yield "enum must be a list that is not empty"
    if "anyOf" in node and (not isinstance(node["anyOf"], list) or not node["anyOf"]):
        yield "anyOf must be a list that is not empty"
    if "format" in node and node["format"] not in FORMATS:
        yield f"format {node['format']!r} is not supported"
    if "$ref" in node and _resolve(root, node["$ref"]) is None:
        yield f"$ref {node['$ref']!r} leads nowhere in this schema"
    if "$ref" in node and len(node) > 1:
        yield "$ref cannot have keywords beside it"


def _object_problems(node: Mapping[str, Any]) -> Iterator[str]:
    if node.get("additionalProperties") is not False:
        yield "additionalProperties must be false"
    properties, required = node.get("properties"), node.get("required")
    if not isinstance(properties, Mapping):
        yield "an object needs properties"
        return
    listed = set(required) if isinstance(required, list) else set()
    yield from (f"property {name!r} must be required" for name in properties if name not in listed)
    yield from (
        f"required names {name!r}, which is no property"
        for name in sorted(listed - set(properties))
    )


def _types(node: Mapping[str, Any]) -> list[str]:
    kind = node.get("type", [])
    return list(kind) if isinstance(kind, list) else [kind]


def _children(node: Mapping[str, Any]) -> Iterator[tuple[str, Any, bool]]:
    """Each subschema, its place, and whether it is one level deeper than this object."""
    for key in ("properties", "$defs", "definitions"):
        group = node.get(key)
        for name, child in group.items() if isinstance(group, Mapping) else ():
            yield f"{key}/{name}", child, key == "properties"
    if "items" in node:
        yield "items", node["items"], True
    options = node.get("anyOf")
    for index, child in enumerate(options if isinstance(options, list) else ()):
        yield f"anyOf/{index}", child, False


def _resolve(root: Mapping[str, Any], reference: Any) -> Any:
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~")
        target = target.get(key) if isinstance(target, Mapping) else None
    return target


def _count(node: Mapping[str, Any], at: str, counts: _Counts) -> None:
    properties = node.get("properties")
    names = list(properties) if isinstance(properties, Mapping) else []
    definitions = [name for key in ("$defs", "definitions") for name in (node.get(key) or {})]
    values = node["enum"] if isinstance(node.get("enum"), list) else []
    texts = [value for value in [*values, node.get("const")] if isinstance(value, str)]
    counts.properties += len(names)
    counts.enum_values += len(values)
    counts.names_length += sum(map(len, [*names, *definitions, *texts]))
    length = sum(map(len, texts))
    if len(values) > LARGE_ENUM and length > MAX_LARGE_ENUM_LENGTH:
        most = MAX_LARGE_ENUM_LENGTH
        counts.found.append(
            f"{at}: an enum of {len(values)} values is {length} characters long, over {most}"
        )


def _check_totals(counts: _Counts) -> None:
    for what, count, most in (
        ("properties", counts.properties, MAX_PROPERTIES),
        ("enum values", counts.enum_values, MAX_ENUM_VALUES),
        ("characters of names and enum values", counts.names_length, MAX_NAMES_LENGTH),
    ):
        if count > most:
            counts.found.append(f"#: {count} {what}, more than {most}")
