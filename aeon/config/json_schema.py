"""The JSON Schema of the settings: for editors of configuration files, and the allowed values of a
key, in words."""

from __future__ import annotations

from collections.abc import Iterator

from aeon.config.compose.reference import entries_of, groups, top_entries
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonObject
from aeon.schema.json_schema import resolve

Schema = JsonObject
_DIALECT = "http://json-schema.org/draft-07/schema#"  # which every editor knows
_INTERPOLATION: Schema = {"type": "string", "pattern": r"\$\{"}
_NULL: Schema = {"type": "null"}
_DEFAULTS: Schema = {
    "type": "array",
    "items": {"type": ["string", "object"]},
    "description": "Hydra's defaults list: what this file is based "
    "on, and where its own keys stand (_self_).",
}
_HYDRA: Schema = {"type": "object", "description": "Hydra's own settings."}
_WORDS = {"boolean": "true or false", "string": "text", "object": "mapping", "array": "list"}
_BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}


def configuration_schema(group: str | None = None) -> Schema:
    """Return the schema of `config.yaml`, or of the files of one group. Raises ConfigError for an
    unknown group."""
    whole = settings_schema()
    properties = whole["properties"]
    if group is not None and group not in properties:
        known = ", ".join(sorted(properties.keys() & groups().keys()))
        raise ConfigError(
            f"{group}: there is no such group of settings", hint=f"There are: {known}."
        )
    for part in (whole, *whole["$defs"].values()):
        # A file may set only some of the keys, and each value may be an interpolation.
        part.pop("required", None)
        for name, value in part.get("properties", {}).items():
            part["properties"][name] = _loosen_schema(value)
    _describe(whole)
    for name in groups():
        for model in _models(whole, properties.get(name, {})):
            model["properties"]["defaults"] = _DEFAULTS
    properties |= {"defaults": _DEFAULTS, "hydra": _HYDRA}
    chosen = whole if group is None else properties[group]
    return {
        "$schema": _DIALECT,
        **chosen,
        "title": f"Aeon: {group or 'configuration'}",
        "$defs": whole["$defs"],
    }


def settings_schema() -> Schema:
    """Return the JSON Schema of the settings, by the names of the keys."""
    from aeon.config.settings import Settings  # takes time to load

    return {"$defs": {}, **Settings.model_json_schema(by_alias=True)}


def _loosen_schema(value: Schema) -> Schema:
    if "$ref" in value:
        # A part with keys of its own is set key by key, so that an editor reports mistakes there.
        return value
    notes = {key: item for key, item in value.items() if key in ("title", "description", "default")}
    alone = {key: item for key, item in value.items() if key not in notes}
    # A file with only some keys may match more than one kind of provider.
    choices = value.get("oneOf") or value.get("anyOf") or [alone]
    return {**notes, "anyOf": [*choices, _INTERPOLATION]}


def _describe(whole: Schema) -> None:
    # An option's changes in other groups are explained in those.
    of_groups = (
        entry
        for group in groups()
        for entry in entries_of(group)
        if entry.path.startswith(f"{group}.")
    )
    for entry in (*top_entries(), *of_groups):
        for value in _find_values(whole, entry.path):
            if entry.comment:
                value.setdefault("description", entry.comment)
            if entry.default is None and "anyOf" in value and _NULL not in value["anyOf"]:
                value["anyOf"].append(_NULL)


def _find_values(whole: Schema, key: str) -> Iterator[Schema]:
    """Yield the schema of a key, in each kind of its group that has it."""
    *parents, name = key.split(".")
    parts = [whole]
    for parent in parents:
        below = [part["properties"].get(parent, {}) for part in parts]
        parts = [model for value in below for model in _models(whole, value)]
    for part in parts:
        if name in part["properties"]:
            yield part["properties"][name]


def _models(whole: Schema, value: Schema) -> list[Schema]:
    return [part for part in _unions(whole, value) if "properties" in part]


def describe_types(schema: Schema, key: str) -> list[str]:
    """Return the types that a JSON Schema allows at a dotted key, each once; empty for an unknown
    key."""
    nodes = [schema]
    for name in key.split("."):
        below = [
            node.get("properties", {}).get(name, node.get("additionalProperties")) for node in nodes
        ]
        nodes = [
            found for child in below if isinstance(child, dict) for found in _unions(schema, child)
        ]
    return list(dict.fromkeys(_describe_kind(schema, node) for node in nodes))


def _unions(root: Schema, node: Schema) -> Iterator[Schema]:
    if "$ref" in node:
        yield from _unions(root, resolve(root, node["$ref"]))
    elif parts := node.get("anyOf") or node.get("oneOf"):
        for part in parts:
            yield from _unions(root, part)
    else:
        yield node


def _describe_kind(root: Schema, node: Schema) -> str:
    if "enum" in node:
        return f"one of {', '.join(map(str, node['enum']))}"
    kind = str(node.get("format", node.get("const", node.get("type", "any"))))
    inner = node.get("items" if kind == "array" else "additionalProperties")
    kinds = (
        [_describe_kind(root, part) for part in _unions(root, inner)]
        if isinstance(inner, dict)
        else []
    )
    of_kinds = f" of {' or '.join(dict.fromkeys(kinds))}" if any(kinds) else ""
    bounds = [f"{words} {node[bound]:g}" for bound, words in _BOUNDS.items() if bound in node]
    return ", ".join([f"{_WORDS.get(kind, kind)}{of_kinds}", *bounds])
