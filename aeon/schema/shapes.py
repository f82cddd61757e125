"""A JSON Schema read down to its plain keywords: references followed, `allOf` merged, alternatives listed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

Schema = dict[str, Any]

_MOST_REFERENCES = 60
_STRICTEST: dict[str, Any] = {
    "minimum": max,
    "exclusiveMinimum": max,
    "minLength": max,
    "minItems": max,
    "minProperties": max,
    "maximum": min,
    "exclusiveMaximum": min,
    "maxLength": min,
    "maxItems": min,
    "maxProperties": min,
}
# Two of these cannot be said in one keyword: the first is kept, and whoever makes a value checks it against the whole.
_FIRST_COUNTS = ("title", "description", "default", "examples", "pattern", "not", "multipleOf")
_TYPE_HINTS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"),
    "array": ("items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


class Unsatisfiable(Exception):
    """No value of this schema can be made here: a contradiction, or a nesting without an end."""


def plain(schema: Any, root: Mapping[str, Any]) -> Schema:
    """`schema` without `$ref` and `allOf` at its top. Raises Unsatisfiable for `false` and endless references."""
    flat = _as_mapping(schema)
    for _ in range(_MOST_REFERENCES):
        if "$ref" in flat:
            rest = {key: value for key, value in flat.items() if key != "$ref"}
            flat = merged(_as_mapping(resolved(flat["$ref"], root)), rest)
        elif flat.get("allOf"):
            rest = {key: value for key, value in flat.items() if key != "allOf"}
            for part in flat["allOf"]:
                rest = merged(rest, _as_mapping(part))
            flat = rest
        else:
            return flat
    raise Unsatisfiable("references without an end")


def resolved(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a local reference (`#`, `#/$defs/name`) points at; `{}` for one that points elsewhere or nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return {}
    found: Any = root
    for token in filter(None, reference[1:].split("/")):
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            return {}
    return found


def merged(one: Schema, other: Schema) -> Schema:
    """A schema that asks for both. Raises Unsatisfiable when no type is allowed by both."""
    both = dict(one)
    for key, value in other.items():
        if key not in both or both[key] == value:
            both[key] = value
        else:
            _combine(both, key, value)
    return both


def _combine(both: Schema, key: str, value: Any) -> None:
    if key in _STRICTEST and not isinstance(value, bool):
        both[key] = _STRICTEST[key](both[key], value)
    elif key == "required":
        both[key] = [*both[key], *(name for name in value if name not in both[key])]
    elif key == "type":
        both[key] = _common_types(both[key], value)
    elif key == "enum":
        both[key] = [member for member in both[key] if member in value]
        if not both[key]:
            raise Unsatisfiable("no value is in both enumerations")
    elif key in ("properties", "patternProperties", "$defs", "definitions"):
        shared = {name: {"allOf": [both[key][name], value[name]]} for name in both[key] if name in value}
        both[key] = {**both[key], **value, **shared}
    elif key in ("items", "additionalProperties", "contains", "propertyNames"):
        both[key] = {"allOf": [both[key], value]} if value is not False and both[key] is not False else False
    elif key in ("anyOf", "oneOf"):
        both[key] = [{"allOf": [first, second]} for first in both[key] for second in value]
    elif key == "allOf":
        both[key] = [*both[key], *value]
    elif key not in _FIRST_COUNTS:
        both[key] = value


def _common_types(one: Any, other: Any) -> list[str]:
    first, second = types_of({"type": one}), types_of({"type": other})
    common = [kind for kind in first if kind in second]
    if "integer" not in common and (
        ("integer" in first and "number" in second) or ("number" in first and "integer" in second)
    ):
        common.append("integer")
    if not common:
        raise Unsatisfiable(f"no type is both {one} and {other}")
    return common


def types_of(schema: Mapping[str, Any]) -> list[str]:
    """The types a plain schema allows; guessed from other keywords where it names none, else empty."""
    named = schema.get("type")
    if isinstance(named, str):
        return [named]
    if isinstance(named, list):
        return [kind for kind in named if isinstance(kind, str)]
    return next(([kind] for kind, hints in _TYPE_HINTS.items() if any(hint in schema for hint in hints)), [])


def type_of(value: Any) -> str:
    """The JSON type of a value."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, Mapping):
        return "object"
    if isinstance(value, list | tuple):
        return "array"
    return "integer" if isinstance(value, int) else "number"


def accepts_type(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether a plain schema's types leave room for `value`; true when it names none."""
    kinds, kind = types_of(schema), type_of(value)
    return not kinds or kind in kinds or (kind == "integer" and "number" in kinds)


def _as_mapping(schema: Any) -> Schema:
    if schema is False:
        raise Unsatisfiable("the schema false allows no value")
    return dict(schema) if isinstance(schema, Mapping) else {}
