"""The subset of JSON Schema that OpenAI's strict structured outputs accept, as documented."""

from __future__ import annotations

from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter

from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import resolve, walk

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
_KEYWORDS = frozenset(
    {
        "$defs",
        "$ref",
        "additionalProperties",
        "anyOf",
        "const",
        "definitions",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)


def strict_violations(schema: JsonMapping) -> tuple[str, ...]:
    """Return why a schema is outside the strict subset, each as `pointer: reason`; empty if it
    qualifies. Recursive schemas do not qualify here although OpenAI accepts them, because servers
    with constrained decoding often do not."""
    document = dict(schema)
    parts = list(walk(document))
    found = [("", "must be of type object")] if document.get("type") != "object" else []
    found += [("", "must not be an anyOf")] if "anyOf" in document else []
    found += [(place, reason) for place, part in parts for reason in _check_part(part, document)]
    found += [("", reason) for reason in _find_circles(parts)]
    return tuple(f"{place or '(root)'}: {reason}" for place, reason in found)


def _check_part(part: JsonObject, document: JsonObject) -> Iterator[str]:
    for keyword in sorted(part.keys() - _KEYWORDS):
        yield f"{keyword} is not supported"
    if "$ref" in part:
        yield from _check_reference(part, document)
    else:
        yield from _check_form(part)


def _check_form(part: JsonObject) -> Iterator[str]:
    kinds = part.get("type", [])
    if not part.keys() & {"type", "enum", "const", "anyOf"}:
        yield "has no type"
    if "object" in kinds or "properties" in part:
        yield from _check_object(part)
    if "array" in kinds and not isinstance(part.get("items"), dict):
        yield "an array needs items with a schema"
    if part.get("format", "date") not in _FORMATS:
        yield f"format {part['format']} is not supported"
    if any(isinstance(inner, bool) for inner in part.get("anyOf", ())):
        yield "anyOf needs schemas, not true or false"


def _check_reference(part: JsonObject, document: JsonObject) -> Iterator[str]:
    reference = part["$ref"]
    if len(part) > 1:
        yield f"$ref cannot be combined with {', '.join(sorted(part.keys() - {'$ref'}))}"
    if not reference.startswith(("#/$defs/", "#/definitions/")) or not isinstance(
        resolve(document, reference), dict
    ):
        yield f"$ref must lead to a definition of this schema, not {reference}"


def _check_object(part: JsonObject) -> Iterator[str]:
    properties = part.get("properties", {})
    required = part.get("required", ())
    if "properties" not in part:
        yield "an object needs properties"
    if part.get("additionalProperties") is not False:
        yield "additionalProperties must be false"
    if optional := sorted(properties.keys() - set(required)):
        yield f"every property must be required: {', '.join(optional)}"
    if unknown := [name for name in required if name not in properties]:
        yield f"required names no property: {', '.join(unknown)}"
    if any(isinstance(inner, bool) for inner in properties.values()):
        yield "a property needs a schema, not true or false"


def _find_circles(parts: list[tuple[str, JsonObject]]) -> Iterator[str]:
    """Yield a message for each definition that refers to itself, directly or through others."""
    definitions = {"#" + place for place, _ in parts if place.count("/") == 2}
    uses: dict[str, list[str]] = {name: [] for name in definitions}
    for place, part in parts:
        if (owner := "#" + "/".join(place.split("/")[:3])) in uses and "$ref" in part:
            uses[owner].append(part["$ref"])
    try:
        TopologicalSorter(uses).prepare()
    except CycleError as error:
        yield f"refers to itself: {error.args[1][0]}"
