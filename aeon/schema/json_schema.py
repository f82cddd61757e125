"""JSON Schemas as documents: their parts, references and types, and the changes before one is sent.
Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

from aeon.domain.errors import SchemaFileError
from aeon.domain.values import JsonMapping, JsonObject

if TYPE_CHECKING:
    from referencing._core import Resolver

# Keywords that contain schemas: by name, in a list, or alone (including keywords of older drafts).
_MAPS = (
    "properties",
    "patternProperties",
    "dependentSchemas",
    "dependencies",
    "$defs",
    "definitions",
)
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems", "items")
_SINGLE = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "not", "if", "then", "else"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
)
_TYPES: JsonMapping = {
    "null": type(None),
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
    "array": (list, tuple),
    "object": Mapping,
}
DEFINITIONS = ("$defs", "definitions")
_MOST_REMEMBERED = 256
_T = TypeVar("_T")


def once_per_schema(work: Callable[[Any], _T]) -> Callable[[Any], _T]:
    """Cache a function's result by the identity of its schema, which must not be changed
    afterwards."""
    remembered: dict[int, tuple[Any, _T]] = {}

    @wraps(work)
    def recall(schema: object) -> _T:
        known = remembered.get(id(schema))
        if known is None:
            if len(remembered) >= _MOST_REMEMBERED:
                remembered.clear()
            # Stored with the schema, so that no other object gets its identity.
            known = remembered[id(schema)] = schema, work(schema)
        return known[1]

    return recall


def pointer(path: Iterable[str | int]) -> str:
    """Build a JSON pointer (RFC 6901) from its parts; empty for the whole document."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def is_type(value: object, kind: str) -> bool:
    """Whether a value has a JSON Schema type; False for an unknown type name. 1.0 is an integer,
    true is not."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, ()))


def type_of(value: object) -> str:
    """Return the narrowest JSON Schema type of a JSON value."""
    return next(kind for kind in _TYPES if is_type(value, kind))


def walk(schema: object, place: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Yield every schema in a schema with its JSON pointer, outermost first. Data (enum, const,
    default) is not entered."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for path, part in list_inner_schemas(schema):
        yield from walk(part, place + pointer(path))


def list_inner_schemas(schema: JsonMapping) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Yield the schemas directly in a schema, definitions too, with their paths."""
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, dict):
            for name, part in value.items():
                yield (keyword, name), part
        elif keyword in _LISTS and isinstance(value, list):
            for index, part in enumerate(value):
                yield (keyword, index), part
        elif keyword in _SINGLE:
            yield (keyword,), value


def rebuild(schema: object, change: Callable[[JsonObject], JsonObject]) -> Any:
    """Return a copy of the schema with `change` applied to every schema in it, innermost first."""
    if not isinstance(schema, dict):
        return schema
    result: JsonObject = {}
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, dict):
            result[keyword] = {name: rebuild(part, change) for name, part in value.items()}
        elif keyword in _LISTS and isinstance(value, list):
            result[keyword] = [rebuild(part, change) for part in value]
        else:
            result[keyword] = rebuild(value, change) if keyword in _SINGLE else value
    return change(result)


def resolve(schema: JsonMapping, reference: str) -> Any:
    """Return the schema that a reference leads to within this schema, by a pointer, an anchor or
    its `$id`; None if there is none. Nothing is downloaded."""
    find = _follow_pointer if reference.startswith("#/") else _look_up
    found = find(schema, reference)
    return found if isinstance(found, Mapping | bool) else None


def _follow_pointer(schema: Any, reference: str) -> Any:
    """Resolve the most common kind of reference without `referencing`, which takes time to load."""
    found = schema
    for part in unquote(reference).split("/")[1:]:
        try:
            found = found[int(part)] if isinstance(found, list) else found[_unescape(part)]
        except (KeyError, IndexError, ValueError, TypeError):
            return None
    return found


def _unescape(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def _look_up(schema: JsonMapping, reference: str) -> Any:
    from referencing.exceptions import Unresolvable

    try:
        return _resolver_of(schema).lookup(reference).contents
    except (Unresolvable, ValueError, LookupError, TypeError, AttributeError):
        # For an invalid schema, referencing raises whatever its contents cause.
        return None


@once_per_schema
def _resolver_of(schema: JsonMapping) -> Resolver[Any]:
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012, specification_with

    draft = specification_with(str(schema.get("$schema") or ""), default=DRAFT202012)
    registry: Registry[Any] = Registry().with_resource("", draft.create_resource(schema))
    return registry.resolver()


def enum_of(schema: JsonMapping, name: str) -> tuple[Any, ...]:
    """Return the values that a schema lists for the first property of that name, anywhere in it;
    empty if it lists none."""
    for _, part in walk(schema):
        found = part.get("properties", {}).get(name)
        if isinstance(found, Mapping) and "$ref" in found:
            found = resolve(schema, found["$ref"])
        if isinstance(found, Mapping) and "enum" in found:
            return tuple(found["enum"])
    return ()


def change_at(
    schema: JsonObject, path: Sequence[str], change: Callable[[JsonObject], JsonObject]
) -> JsonObject:
    """Return a copy with `change` applied to the schema at this path of keywords and property
    names.

    References on the path are inlined, so that other uses of a definition stay unchanged; of
    alternatives, all that have the path are changed. If the path does not exist, nothing changes.
    """

    def descend(part: object, rest: Sequence[str]) -> Any:
        if not isinstance(part, dict):
            return part
        if not rest:
            return change(part)
        if "$ref" in part:
            return descend(resolve(schema, part["$ref"]), rest)
        if "anyOf" in part:
            return {**part, "anyOf": [descend(option, rest) for option in part["anyOf"]]}
        return {**part, rest[0]: descend(part[rest[0]], rest[1:])} if rest[0] in part else part

    result: JsonObject = descend(schema, path)
    return result


def strip_header(schema: JsonMapping) -> JsonObject:
    """Return the schema without keywords that only name the document: `$schema`, `$id`,
    `$comment`."""
    return {
        key: value for key, value in schema.items() if key not in ("$schema", "$id", "$comment")
    }


def drop_absent(schema: JsonObject, absent: Collection[str]) -> JsonObject:
    """Return the schema without properties that need something absent (`"$comment": "only with
    NAME"`), without absent enum values, and without comments on properties."""

    def change(part: JsonObject) -> JsonObject:
        if "enum" in part:
            part["enum"] = [value for value in part["enum"] if not _is_one_of(value, absent)]
        if "properties" not in part:
            return part
        part["required"] = _still_required(part, absent)
        part["properties"] = {
            name: _without_comment(form)
            for name, form in part["properties"].items()
            if not _is_only_with(form, absent)
        }
        return part

    result: JsonObject = rebuild(schema, change)
    return result


def relax_absent(schema: JsonObject, absent: Collection[str]) -> JsonObject:
    """Return the schema with properties optional that need something absent, or that may be left
    out (`"$comment": "may be left out"`)."""

    def change(part: JsonObject) -> JsonObject:
        forms = part.get("properties", {})
        needed = [
            name for name in _still_required(part, absent) if not may_be_left_out(forms.get(name))
        ]
        return {**part, "required": needed} if needed != part.get("required", []) else part

    result: JsonObject = rebuild(schema, change)
    return result


def may_be_left_out(form: object) -> bool:
    """Whether a property is requested from the model but may be missing."""
    return "may be left out" in _comments(form)


def _still_required(part: JsonMapping, absent: Collection[str]) -> list[str]:
    """Return a part's required properties, except those that need something absent."""
    forms = part.get("properties", {})
    return [name for name in part.get("required", ()) if not _is_only_with(forms.get(name), absent)]


def _is_only_with(form: object, absent: Collection[str]) -> bool:
    return not _comments(form).isdisjoint(f"only with {name}" for name in absent)


def _comments(form: object) -> frozenset[str]:
    """Return the remarks in a property's comment, which are separated by semicolons."""
    comment = form.get("$comment") if isinstance(form, dict) else None
    return frozenset(comment.split("; ")) if isinstance(comment, str) else frozenset()


def _is_one_of(value: object, absent: Collection[str]) -> bool:
    return isinstance(value, str) and value in absent


def _without_comment(form: object) -> Any:
    if not isinstance(form, dict):
        return form
    return {keyword: value for keyword, value in form.items() if keyword != "$comment"}


def embed_schema(schema: JsonObject, name: str, inner: JsonMapping) -> JsonObject:
    """Return the schema with its root property `name` replaced by another checked schema, whose
    definitions move to the root under new names. Null stays allowed if the property allowed it.
    Raises SchemaFileError if there is no such property."""
    if name not in schema.get("properties", {}):
        raise SchemaFileError(
            f"this schema has no property {name!r} that an answer's schema could replace"
        )
    is_nullable = _is_nullable(schema["properties"][name])
    base = f"#/properties/{name}" + ("/anyOf/0" if is_nullable else "")
    own = dict(schema.get("$defs", {}))
    moved = _rename_definitions(inner, own)

    def relocate(part: JsonObject) -> JsonObject:
        if "$ref" not in part:
            return part
        definition = "/".join(part["$ref"].split("/")[:3])
        if definition in moved:
            place = "#" + pointer(("$defs", moved[definition]))
            place += part["$ref"].removeprefix(definition)
        else:
            place = base + part["$ref"][1:]
        return {**part, "$ref": place}

    parts = {key: value for key, value in strip_header(inner).items() if key not in DEFINITIONS}
    body = rebuild(parts, relocate)
    placed = {"anyOf": [body, {"type": "null"}]} if is_nullable else body
    result = {**schema, "properties": {**schema["properties"], name: placed}}
    definitions = {
        moved["#" + pointer((keyword, old))]: rebuild(definition, relocate)
        for keyword in DEFINITIONS
        for old, definition in inner.get(keyword, {}).items()
    }
    return {**result, "$defs": own | definitions} if own or definitions else result


def _rename_definitions(inner: JsonMapping, taken: Collection[str]) -> dict[str, str]:
    """Return a new name for each definition of a schema, by its reference."""
    names: dict[str, str] = {}
    for keyword in DEFINITIONS:
        for old in inner.get(keyword, {}):
            new = f"answer_{old}"
            while new in taken or new in names.values():
                new += "_"
            names["#" + pointer((keyword, old))] = new
    return names


def _is_nullable(schema: object) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    return (
        kinds == "null"
        or "null" in (kinds or ())
        or any(map(_is_nullable, schema.get("anyOf", ())))
    )
