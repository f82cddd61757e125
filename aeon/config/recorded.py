"""Which overrides of a cassette's head are taken: a cassette may be anybody's, and replaying it must only replay it.

Each field of the settings says itself whether it may come from a recording (`aeon.domain.values.FromRecording`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic.fields import FieldInfo

from aeon.config.compose.compose import parse
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import key_of
from aeon.domain.errors import ConfigError
from aeon.domain.values import TAKEN, UNNEEDED, FromRecording
from aeon.files.explain import models_in

NAME = re.compile(r"\w[\w-]*", re.ASCII)
"""What can only be a file's name, without a folder."""

_HELD = FromRecording("held")
_NO_SETTINGS = {"experiment": TAKEN, "hydra": UNNEEDED, "sweep": UNNEEDED}
"""The groups that set other groups' keys, or Hydra's own."""

_ABOVE_THE_GROUPS = ("task=null", "task_file=null", "~inputs", "~input_files")


def make_portable(
    overrides: Iterable[str], holds_secret: Callable[[str], bool]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The overrides that go into a cassette: none with a secret or the address of a server; and the keys of those left
    out that a replay would miss."""
    portable = {text: not holds_secret(text) and "base_url" not in text for text in overrides}
    missed = [key_of(text) for text, kept in portable.items() if not kept and _verdict(text, None) != "unneeded"]
    return tuple(text for text, kept in portable.items() if kept), tuple(key for key in missed if not holds_secret(key))


def select_overrides(overrides: Iterable[str], folder: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The overrides that are taken, and the keys of those that are held back.

    `folder` is the configuration of the person who replays, None without one.
    """
    verdicts = [(text, _verdict(text, folder)) for text in overrides]
    held = dict.fromkeys(key_of(text) or text for text, verdict in verdicts if verdict == "held")
    return tuple(text for text, verdict in verdicts if verdict == "taken"), tuple(held)


def _verdict(text: str, folder: Path | None) -> str:
    key = key_of(text)
    if text in _ABOVE_THE_GROUPS:
        return "taken"
    if re.split(r"[./]", key)[0] == "hydra":
        return "held" if key == "hydra.searchpath" else "unneeded"
    try:
        override = parse(text)
    except ConfigError:
        return "held"
    if override.package is not None or override.is_sweep_override() or "${" in text:
        return "held"
    value = None if override.is_delete() else override.value()
    if "." in key or isinstance(value, dict) or override.is_delete():
        verdicts = {_mark_at(leaf).rule for leaf in _leaves(key, value)}
        return verdicts.pop() if len(verdicts) == 1 else "held"
    names = {str(name) for name in (value if isinstance(value, list) else [value])}
    mark = _mark_at(key)
    if mark.options is not None and not (mark.options and names <= mark.options):
        return mark.rule
    # An option that comes neither with Aeon nor with the person's own folder is held back.
    places = [packaged_config_dir() / key, *([folder / key] if folder else [])]
    known = all(NAME.fullmatch(name) and any((place / f"{name}.yaml").is_file() for place in places) for name in names)
    return "taken" if known else "held"


def _mark_at(key: str) -> FromRecording:
    """The mark of a dotted key: its own, else that of what is around it."""
    from aeon.config.settings import Settings  # slow to load, and only for a cassette's overrides

    group, *_ = names = key.split(".")
    if group in _NO_SETTINGS:
        return _NO_SETTINGS[group]
    models: list[Any] = [Settings]
    mark = _HELD
    for name in names:
        named = ((field.alias or key, key, field) for model in models for key, field in model.model_fields.items())
        fields = [field for alias, key, field in named if name in (alias, key)]
        # Several kinds of one group may have a key; where they differ, it is held back.
        marks = {_mark(field, mark) for field in fields} or {mark}
        mark = marks.pop() if len(marks) == 1 else _HELD
        models = [model for field in fields for model, _ in models_in(field.annotation)]
    return mark


def _mark(field: FieldInfo, around: FromRecording) -> FromRecording:
    own = next((mark for mark in field.metadata if isinstance(mark, FromRecording)), None)
    if own is None and around.rule == "taken" and Path in (field.annotation, *get_args(field.annotation)):
        return _HELD
    return own or around


def _leaves(key: str, value: Any) -> Iterator[str]:
    """The dotted keys of a value: those of a mapping, and of mappings in it."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(f"{key}.{name}", item)
    else:
        yield key
