"""The marks of the settings' keys: whether a key may come from others, and whether it starts
code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from aeon.config.compose.recorded import leaves, put
from aeon.domain.values import TAKEN, UNNEEDED, CodeMark, FromOthers, JsonMapping, JsonObject
from aeon.files.explain import models_in

if TYPE_CHECKING:
    from aeon.config.settings import Settings

_HELD = FromOthers("held")
# The groups that set other groups' keys, or Hydra's own.
_NO_SETTINGS = {"experiment": TAKEN, "hydra": UNNEEDED, "sweep": UNNEEDED}


def mark_at(key: str) -> FromOthers:
    """Return whether the settings field at a key may come from others."""
    return _mark_in(key.split("."), {})


def _mark_in(names: Sequence[str], recorded: JsonMapping) -> FromOthers:
    """Return the mark of the field at these names; where it may have several types, that of the
    `recorded` type."""
    from aeon.config.settings import Settings  # slow to load, and few overrides need it

    if names[0] in _NO_SETTINGS:
        return _NO_SETTINGS[names[0]]
    models: list[type[BaseModel]] = [Settings]
    mark = _HELD
    given: Any = recorded
    is_chosen = False  # whether the user chose the next name, as below a mapping
    for name in names:
        given = _get_member(given, name)
        if is_chosen:
            is_chosen = False
            models = _select_models(models, given)
            continue
        fields = [field for model in models for field in _fields_named(model, name)]
        mark = _mark_of_all(fields, mark)
        found = [each for field in fields for each in models_in(field.annotation)]
        models = [model for model, _ in found]
        is_chosen = any(is_named for _, is_named in found)
    return mark


def _mark_of_all(fields: Sequence[FieldInfo], around: FromOthers) -> FromOthers:
    """Return the mark of a field that several kinds of one group may have; where they differ, it is
    held back."""
    marks = {_mark_of(field, around) for field in fields} or {around}
    return marks.pop() if len(marks) == 1 else _HELD


def _get_member(value: object, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _select_models(models: list[type[BaseModel]], given: object) -> list[type[BaseModel]]:
    """Return the models of a value's type; all of them where it gives none."""
    kind = _get_member(given, "type")
    of_type = [model for model in models if kind in _list_types(model)]
    return of_type or models


def _list_types(model: type[BaseModel]) -> tuple[Any, ...]:
    field = model.model_fields.get("type")
    return get_args(field.annotation) if field else ()


def take_from_others(
    recorded: JsonMapping, usual: JsonMapping
) -> tuple[JsonObject, tuple[str, ...]]:
    """Select the recorded settings that decide the requests, and list the keys of those held back,
    by the mark of each key: whoever made the recording, it causes nothing to be started, read or
    written. Values equal to the `usual` settings are not listed."""
    # Leaving out one of these changes nothing worth reporting.
    nothing: tuple[Any, ...] = (None, False, "", [], {})
    defaults = dict(leaves(usual))
    taken: JsonObject = {}
    held: list[str] = []
    for key, value in leaves(recorded):
        rule = _mark_in(key, recorded).rule
        if rule == "taken":
            put(taken, key, value)
        elif rule == "held" and value not in (*nothing, defaults.get(key)):
            held.append(".".join(key))
    return taken, tuple(held)


def find_code(settings: Settings) -> tuple[str, ...]:
    """Return the keys with which these settings start the user's own code: those not set to their
    default."""
    return tuple(_find_set_code(settings, ""))


def _fields_named(model: type[BaseModel], name: str) -> Iterator[FieldInfo]:
    for key, field in model.model_fields.items():
        if name in (field.alias, key):
            yield field


def _mark_of(field: FieldInfo, around: FromOthers) -> FromOthers:
    own = next((mark for mark in field.metadata if isinstance(mark, FromOthers)), None)
    mark = own or around
    # Whatever its own mark says: a recording or a row of a batch never starts code.
    if _starts_code(field):
        return replace(_HELD if mark.rule == "taken" else mark, row="")
    # A group's mark does not cover its paths: they would name files of this machine.
    if (
        own is None
        and mark.rule == "taken"
        and Path in (field.annotation, *get_args(field.annotation))
    ):
        return _HELD
    return mark


def _starts_code(field: FieldInfo) -> bool:
    return any(isinstance(mark, CodeMark) for mark in field.metadata)


def _find_set_code(values: BaseModel, prefix: str) -> Iterator[str]:
    for name, field in type(values).model_fields.items():
        key = f"{prefix}{field.alias or name}"
        value = getattr(values, name)
        if _starts_code(field):
            if value != field.get_default(call_default_factory=True):
                yield key
            continue
        for inner_key, inner in _items_of(key, value):
            if isinstance(inner, BaseModel):
                yield from _find_set_code(inner, f"{inner_key}.")


def _items_of(key: str, value: object) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield f"{key}.{name}", item
    elif isinstance(value, tuple):
        for item in value:
            yield key, item
    else:
        yield key, value
