"""JSON Schemas as values: walking, checking and rebuilding them. Pure functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import urljoin

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.protocols import Validator
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from aeon.domain.errors import SchemaFileError

_DEFINITIONS = ("$defs", "definitions")
_MAPS = ("properties", "patternProperties", "dependentSchemas", *_DEFINITIONS)
_LISTS = ("anyOf", "allOf", "oneOf", "prefixItems")
_SINGLE = (
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
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


def check_schema(schema: Any, name: str) -> None:
    """Raise SchemaFileError, naming the JSON pointer, unless this is a self-contained Draft 2020-12 schema."""
    if not isinstance(schema, dict):
        raise SchemaFileError(f"{name}: a schema is a JSON object, not {type(schema).__name__}")
    try:
        if not flat_meta_schema().is_valid(schema):
            Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise SchemaFileError(f"{name}#{pointer(error.absolute_path)}: {error.message}") from error
    for place, part in walk(schema):
        reference = part.get("$ref")
        if reference is not None and resolved(schema, _own(reference, schema)) is None:
            raise SchemaFileError(f"{name}#{place}/$ref: {reference!r} does not lead to a schema in this file")
        for keyword in {"$dynamicRef", "$anchor", "$dynamicAnchor", *(("$id",) if place else ())} & set(part):
            raise SchemaFileError(f"{name}#{place}/{keyword}: {keyword} is not supported here; use #/$defs/NAME")


@cache
def flat_meta_schema() -> Validator:
    """The Draft 2020-12 meta-schema with its vocabularies put into one: the same verdict in a fifth of the time."""
    meta: Any = Draft202012Validator.META_SCHEMA
    parts: list[Any] = [meta, *(REGISTRY.contents(urljoin(meta["$id"], part["$ref"])) for part in meta["allOf"])]
    flat = {
        "type": meta["type"],
        "properties": {name: form for part in parts for name, form in part["properties"].items()},
        "$defs": {name: form for part in parts for name, form in part.get("$defs", {}).items()},
    }
    return Draft202012Validator(_of_one_document(flat), format_checker=Draft202012Validator.FORMAT_CHECKER)


def _of_one_document(part: Any) -> Any:
    if isinstance(part, list):
        return [_of_one_document(item) for item in part]
    if not isinstance(part, dict):
        return part
    if part.get("$dynamicRef") == "#meta":
        return {"$ref": "#"}
    if isinstance(part.get("$ref"), str):
        return {**part, "$ref": part["$ref"][part["$ref"].index("#") :]}
    return {name: _of_one_document(inner) for name, inner in part.items()}


def walk(schema: Any, place: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema in a schema with its JSON pointer, outermost first. Data (enum, const, default) is not entered."""
    if not isinstance(schema, dict):
        return
    yield place, schema
    for path, inner in _inner(schema):
        yield from walk(inner, place + pointer(path))


def _inner(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for keyword, value in schema.items():
        if keyword in _MAPS and isinstance(value, dict):
            yield from (((keyword, name), inner) for name, inner in value.items())
        elif keyword in _LISTS and isinstance(value, list):
            yield from (((keyword, index), inner) for index, inner in enumerate(value))
        elif keyword in _SINGLE:
            yield (keyword,), value


def rebuilt(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """A copy of the schema with `change` applied to every schema in it, innermost first."""
    if not isinstance(schema, dict):
        return schema
    result = dict(schema)
    for path, inner in _inner(schema):
        if len(path) == 1:
            result[str(path[0])] = rebuilt(inner, change)
            continue
        keyword, name = path
        if result[str(keyword)] is schema[str(keyword)]:
            result[str(keyword)] = schema[str(keyword)].copy()
        result[str(keyword)][name] = rebuilt(inner, change)
    return change(result)


def changed_at(
    schema: dict[str, Any], path: Sequence[str], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """A copy with `change` applied to the schema that this path of keywords and property names leads to.

    References on the way are followed and put in place, so that other uses of a definition stay as they are; of
    alternatives, all that have the path are changed. Nothing changes where the path leads nowhere.
    """

    def descend(part: Any, rest: Sequence[str]) -> Any:
        if not isinstance(part, dict):
            return part
        if not rest:
            return change(part)
        if "$ref" in part:
            return descend(resolved(schema, part["$ref"]), rest)
        if "anyOf" in part:
            return {**part, "anyOf": [descend(option, rest) for option in part["anyOf"]]}
        return {**part, rest[0]: descend(part[rest[0]], rest[1:])} if rest[0] in part else part

    result: dict[str, Any] = descend(schema, path)
    return result


def bare(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what only names the document (`$schema`, `$id`, `$comment`), its references made local."""
    local = _redirected(dict(schema), lambda reference: reference) if "$id" in schema else schema
    return {key: value for key, value in local.items() if key not in ("$schema", "$id", "$comment")}


def without(schema: dict[str, Any], absent: Collection[str]) -> dict[str, Any]:
    """The schema without properties that are there only with something absent (`"$comment": "only with NAME"`), without
    texts of an enum that are absent themselves, and without comments on properties."""

    def change(part: dict[str, Any]) -> dict[str, Any]:
        changed = dict(part)
        if isinstance(part.get("enum"), list):
            changed["enum"] = [value for value in part["enum"] if not (isinstance(value, str) and value in absent)]
        if isinstance(part.get("properties"), dict):
            needless = _only_with(part, absent)
            kept = {name: form for name, form in part["properties"].items() if name not in needless}
            changed["properties"] = {
                name: {key: value for key, value in form.items() if key != "$comment"}
                if isinstance(form, dict)
                else form
                for name, form in kept.items()
            }
            changed["required"] = [name for name in part.get("required", ()) if name not in needless]
        return changed

    result: dict[str, Any] = rebuilt(schema, change)
    return result


def not_required(schema: dict[str, Any], absent: Collection[str]) -> dict[str, Any]:
    """The schema in which properties that are there only with something absent may be missing."""

    def change(part: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(part.get("properties"), dict) or "required" not in part:
            return part
        needless = _only_with(part, absent)
        return {**part, "required": [name for name in part["required"] if name not in needless]}

    result: dict[str, Any] = rebuilt(schema, change)
    return result


def _only_with(part: Mapping[str, Any], absent: Collection[str]) -> set[str]:
    """The properties of an object that are there only with something absent."""
    comments = {f"only with {name}" for name in absent}
    return {
        name for name, form in part["properties"].items() if isinstance(form, dict) and form.get("$comment") in comments
    }


def _redirected(schema: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The schema with every reference, made local, changed."""

    def redirect(part: dict[str, Any]) -> dict[str, Any]:
        return {**part, "$ref": change(_own(part["$ref"], schema))} if "$ref" in part else part

    result: dict[str, Any] = rebuilt(schema, redirect)
    return result


def embedded(schema: dict[str, Any], name: str, inner: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its root property `name` replaced by another schema, whose definitions move up, renamed.

    Null stays allowed where the property allowed it. Raises SchemaFileError when either is not fit for that.
    """
    check_schema(inner := dict(inner), "the answer's schema")
    if name not in schema.get("properties", {}):
        raise SchemaFileError(f"this schema has no property {name!r} that an answer's schema could take the place of")
    nullable = _nullable(schema["properties"][name])
    base = f"#/properties/{name}" + ("/anyOf/0" if nullable else "")
    moved = _moved(inner, set(schema.get("$defs", {})))
    body = bare(_redirected(inner, lambda reference: _relocated(reference, base, moved)))
    definitions = {new: body[kind][old] for (kind, old), new in moved.items()}
    body = {key: value for key, value in body.items() if key not in _DEFINITIONS}
    placed = {"anyOf": [body, {"type": "null"}]} if nullable else body
    result = {**schema, "properties": {**schema["properties"], name: placed}}
    return {**result, "$defs": {**schema.get("$defs", {}), **definitions}} if definitions else result


def _moved(schema: Mapping[str, Any], taken: set[str]) -> dict[tuple[str, str], str]:
    """New names for a schema's definitions, none of them taken: (keyword, old name) to new name."""
    names: dict[tuple[str, str], str] = {}
    for keyword in _DEFINITIONS:
        for name in schema.get(keyword, {}):
            fresh = f"answer_{name}"
            while fresh in taken:
                fresh += "_"
            taken.add(fresh)
            names[keyword, name] = fresh
    return names


def _relocated(reference: str, base: str, moved: Mapping[tuple[str, str], str]) -> str:
    parts = reference.removeprefix("#").split("/")
    if len(parts) > 2 and parts[1] in _DEFINITIONS:
        return "#" + pointer(["$defs", moved[parts[1], _unescaped(parts[2])]]) + "".join(f"/{p}" for p in parts[3:])
    return base + reference.removeprefix("#")


def _nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return "null" in kinds or any(map(_nullable, schema.get("anyOf", ())))


def _own(reference: str, schema: Mapping[str, Any]) -> str:
    """A reference within its document: `ID#/...` as `#/...`."""
    own = schema.get("$id", "")
    return reference.removeprefix(own) or "#" if own and reference.startswith(own) else reference


def resolved(schema: Mapping[str, Any], reference: str) -> Any:
    """The schema that a reference within this schema leads to; None when it leads to none. Nothing is fetched."""
    resource = DRAFT202012.create_resource(schema)
    resolver = Registry().with_resource("", resource).resolver_with_root(resource)
    try:
        found = resolver.lookup(reference).contents
    except (Unresolvable, TypeError):
        return None
    return found if isinstance(found, Mapping | bool) else None


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
