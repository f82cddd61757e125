"""What is changed in a schema before it goes to a model, or before an answer is checked by it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from aeon.domain.errors import SchemaFileError
from aeon.schema.json_schema import pointer, rebuild, resolve
from aeon.schema.validators import check_schema

_DEFINITIONS = ("$defs", "definitions")


def change_at(
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
            return descend(resolve(schema, part["$ref"]), rest)
        if "anyOf" in part:
            return {**part, "anyOf": [descend(option, rest) for option in part["anyOf"]]}
        return {**part, rest[0]: descend(part[rest[0]], rest[1:])} if rest[0] in part else part

    result: dict[str, Any] = descend(schema, path)
    return result


def strip_header(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema without what only names the document (`$schema`, `$id`, `$comment`), its references made local."""
    local = _redirect(dict(schema), lambda reference: reference) if "$id" in schema else schema
    return {key: value for key, value in local.items() if key not in ("$schema", "$id", "$comment")}


def drop_absent(schema: dict[str, Any], absent: Collection[str]) -> dict[str, Any]:
    """The schema without properties that are there only with something absent (`"$comment": "only with NAME"`), without
    texts of an enum that are absent themselves, and without comments on properties."""

    def change(part: dict[str, Any]) -> dict[str, Any]:
        changed = dict(part)
        if isinstance(part.get("enum"), list):
            changed["enum"] = [value for value in part["enum"] if not (isinstance(value, str) and value in absent)]
        if isinstance(part.get("properties"), dict):
            needless = _only_with(part, absent)
            forms = {name: form for name, form in part["properties"].items() if name not in needless}
            changed["properties"] = {name: _drop_comment(form) for name, form in forms.items()}
            changed["required"] = [name for name in part.get("required", ()) if name not in needless]
        return changed

    result: dict[str, Any] = rebuild(schema, change)
    return result


def _drop_comment(form: Any) -> Any:
    return {key: value for key, value in form.items() if key != "$comment"} if isinstance(form, dict) else form


def relax_absent(schema: dict[str, Any], absent: Collection[str]) -> dict[str, Any]:
    """The schema in which properties that are there only with something absent may be missing."""

    def change(part: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(part.get("properties"), dict) or "required" not in part:
            return part
        needless = _only_with(part, absent)
        return {**part, "required": [name for name in part["required"] if name not in needless]}

    result: dict[str, Any] = rebuild(schema, change)
    return result


def _only_with(part: Mapping[str, Any], absent: Collection[str]) -> set[str]:
    """The properties of an object that are there only with something absent."""
    comments = {f"only with {name}" for name in absent}
    return {
        name for name, form in part["properties"].items() if isinstance(form, dict) and form.get("$comment") in comments
    }


def _redirect(schema: dict[str, Any], change: Callable[[str], str]) -> dict[str, Any]:
    """The schema with every reference, made local, changed."""

    def redirect(part: dict[str, Any]) -> dict[str, Any]:
        return {**part, "$ref": change(_local_reference(part["$ref"], schema))} if "$ref" in part else part

    result: dict[str, Any] = rebuild(schema, redirect)
    return result


def embed_schema(schema: dict[str, Any], name: str, inner: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with its root property `name` replaced by another schema, whose definitions move up, renamed.

    Null stays allowed where the property allowed it. Raises SchemaFileError when either is not fit for that.
    """
    check_schema(inner := dict(inner), "the answer's schema")
    if name not in schema.get("properties", {}):
        raise SchemaFileError(f"this schema has no property {name!r} that an answer's schema could take the place of")
    nullable = _is_nullable(schema["properties"][name])
    base = f"#/properties/{name}" + ("/anyOf/0" if nullable else "")
    moved = _rename_definitions(inner, set(schema.get("$defs", {})))
    body = strip_header(_redirect(inner, lambda reference: _relocate(reference, base, moved)))
    definitions = {new: body[kind][old] for (kind, old), new in moved.items()}
    body = {key: value for key, value in body.items() if key not in _DEFINITIONS}
    placed = {"anyOf": [body, {"type": "null"}]} if nullable else body
    result = {**schema, "properties": {**schema["properties"], name: placed}}
    return {**result, "$defs": {**schema.get("$defs", {}), **definitions}} if definitions else result


def _rename_definitions(schema: Mapping[str, Any], taken: set[str]) -> dict[tuple[str, str], str]:
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


def _relocate(reference: str, base: str, moved: Mapping[tuple[str, str], str]) -> str:
    parts = reference.removeprefix("#").split("/")
    if len(parts) > 2 and parts[1] in _DEFINITIONS:
        return "#" + pointer(["$defs", moved[parts[1], _unescaped(parts[2])]]) + "".join(f"/{p}" for p in parts[3:])
    return base + reference.removeprefix("#")


def _is_nullable(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = schema.get("type")
    kinds = kinds if isinstance(kinds, list) else [kinds]
    return "null" in kinds or any(map(_is_nullable, schema.get("anyOf", ())))


def _local_reference(reference: str, schema: Mapping[str, Any]) -> str:
    """A reference within its document: `ID#/...` as `#/...`."""
    own = schema.get("$id", "")
    return reference.removeprefix(own) or "#" if own and reference.startswith(own) else reference


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
