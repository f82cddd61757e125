"""The JSON Schema of configuration files, made from the settings, for editors.

A file of configuration is partial, and any value in it may be an interpolation; what the keys mean is what the comments
in the packaged files say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from aeon.config.compose.reference import Entry, entries_of, groups, top_entries
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError

Schema = dict[str, Any]
_DIALECT = "http://json-schema.org/draft-07/schema#"  # which every editor knows
_NOTES = ("title", "description", "default")
_INTERPOLATION: Schema = {"type": "string", "pattern": r"\$\{"}
_NULL: Schema = {"type": "null"}
_DEFAULTS: Schema = {
    "type": "array",
    "items": {"type": ["string", "object"]},
    "description": "Hydra's defaults list: what this file is based on, and where its own keys stand (_self_).",
}
_HYDRA: Schema = {"type": "object", "description": "Hydra's own settings."}


def configuration_schema(group: str | None = None) -> Schema:
    """The schema of a primary configuration file (`config.yaml`), or of the files of one group.

    Raises ConfigError for a group that does not exist.
    """
    whole = Settings.model_json_schema(by_alias=True)
    definitions = whole.pop("$defs", {})
    if group is not None and group not in whole["properties"]:
        known = ", ".join(sorted(whole["properties"].keys() & groups().keys()))
        raise ConfigError(f"{group}: there is no such group of settings", hint=f"There are: {known}.")
    for part in (whole, *definitions.values()):
        _loosen(part)
    _describe(whole, definitions)
    for name in groups():
        for model in _models(whole["properties"].get(name, {}), definitions):
            model["properties"]["defaults"] = _DEFAULTS
    whole["properties"] |= {"defaults": _DEFAULTS, "hydra": _HYDRA}
    chosen = whole if group is None else whole["properties"][group]
    title = f"Aeon: {group or 'configuration'}"
    return {"$schema": _DIALECT, **chosen, "title": title, "$defs": definitions}


def _loosen(part: Schema) -> None:
    """Let a part of the schema be said in part, and each of its values be an interpolation."""
    part.pop("required", None)
    for name, value in part.get("properties", {}).items():
        part["properties"][name] = _value(value)


def _value(value: Schema) -> Schema:
    notes: Schema = {key: value[key] for key in _NOTES if key in value}
    asked = {key: item for key, item in value.items() if key not in (*notes, "discriminator")}
    # Of a file that says a part only, more than one kind of provider may be true.
    choices = asked.pop("oneOf", None) or asked.pop("anyOf", None) or [asked]
    # A part with keys of its own is said key by key, which is where an editor then reports what is wrong.
    return {**notes, **asked} if "$ref" in asked else {**notes, "anyOf": [*choices, _INTERPOLATION]}


def _describe(whole: Schema, definitions: dict[str, Schema]) -> None:
    """Say at each key what the packaged files say of it in a comment; one that is null there may be null."""
    for entry in _entries():
        *parents, name = entry.path.split(".")
        parts = [whole]
        for parent in parents:
            below = [part["properties"].get(parent, {}) for part in parts]
            parts = [model for value in below for model in _models(value, definitions)]
        for value in (part["properties"][name] for part in parts if name in part["properties"]):
            if entry.comment:
                value.setdefault("description", entry.comment)
            if entry.default is None and "anyOf" in value and _NULL not in value["anyOf"]:
                value["anyOf"].append(_NULL)


def _entries() -> Iterator[Entry]:
    yield from top_entries()
    for group in groups():
        # What an option changes in other groups is explained there.
        yield from (entry for entry in entries_of(group) if entry.path.startswith(f"{group}."))


def _models(value: Schema, definitions: dict[str, Schema]) -> list[Schema]:
    """The definitions of objects that a value may be."""
    references = [choice["$ref"] for choice in (value, *value.get("anyOf", [])) if "$ref" in choice]
    models = [definitions[reference.rpartition("/")[2]] for reference in references]
    return [model for model in models if "properties" in model]
