"""Which overrides of a cassette's head are taken: a cassette may be anybody's, and replaying it must only replay it.

Each field of the settings says itself whether it may come from a recording (`aeon.domain.values.FromRecording`). What
is held back is used only once the person who replays gives it; what a replay has no use for is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from pydantic.fields import FieldInfo

from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import format_value
from aeon.config.compose.problems import models_in
from aeon.domain.values import TAKEN, UNNEEDED, FromRecording

_Verdict = Literal["taken", "held", "unneeded"]
_HELD = FromRecording("held")
_NO_SETTINGS: Mapping[str, FromRecording] = {"experiment": TAKEN, "hydra": UNNEEDED, "sweep": UNNEEDED}
"""The groups that set other groups' keys, or Hydra's own."""

_ABOVE_THE_GROUPS = frozenset({"task=null", "task_file=null", "~inputs", "~input_files"})
_NAME = re.compile(r"\w[\w-]*", re.ASCII)
_INTERPOLATION = re.compile(r"(?<!\\)(?:\\\\)*\$\{")


def select_overrides(overrides: Iterable[str], folder: Path | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The overrides that are taken, and the keys of those that are held back.

    `folder` is the configuration of the person who replays, None without one.
    """
    taken: list[str] = []
    held: dict[str, None] = {}
    for text in overrides:
        verdict = "taken" if text in _ABOVE_THE_GROUPS else _verdict(text, folder)
        if verdict == "taken":
            taken.append(text)
        elif verdict == "held":
            held[key_of(text) or text] = None
    return tuple(taken), tuple(held)


def key_of(override: str) -> str:
    """The key or group of an override, without what adds, deletes or moves it."""
    return override.lstrip("+~").partition("=")[0].partition("@")[0]


def is_name(text: str) -> bool:
    """Whether a text can only be a file's name, without a folder."""
    return bool(_NAME.fullmatch(text))


def _verdict(text: str, folder: Path | None) -> _Verdict:
    if key_of(text).replace("/", ".").partition(".")[0] == "hydra":
        return "held" if key_of(text) == "hydra.searchpath" else "unneeded"
    try:
        override = OverridesParser.create().parse_override(text)
    except HydraException:
        return "held"
    if override.package is not None or override.is_sweep_override():
        return "held"
    key, value = override.key_or_group, override.value()
    if override.is_delete():
        return _mark_at(key).rule
    if any(_INTERPOLATION.search(part) for part in _texts(value)):
        return "held"
    if "." not in key and not isinstance(value, dict):
        return _verdict_on_choice(key, value, folder)
    verdicts = {_mark_at(leaf).rule for leaf in _leaves(key, value)}
    return verdicts.pop() if len(verdicts) == 1 else "held"


def _verdict_on_choice(group: str, value: Any, folder: Path | None) -> _Verdict:
    """A group's options; one that comes neither with Aeon nor with the person's own folder is held back."""
    mark = _mark_at(group)
    names = {str(name) for name in (value if isinstance(value, list) else [value])}
    if mark.options is not None and not (mark.options and mark.options.issuperset(names)):
        return mark.rule
    return "taken" if all(_exists(group, name, folder) for name in names) else "held"


def _exists(group: str, name: str, folder: Path | None) -> bool:
    places = [packaged_config_dir(), *([folder] if folder else [])]
    return is_name(name) and any((place / group / f"{name}.yaml").is_file() for place in places)


def _mark_at(key: str) -> FromRecording:
    """The mark of a dotted key: its own, else that of what is around it."""
    group, *names = key.split(".")
    if group in _NO_SETTINGS:
        return _NO_SETTINGS[group]
    from aeon.config.settings import Settings  # slow to load, and only for a cassette's overrides

    fields = _fields([Settings], group)
    mark = _combined(fields, _HELD)
    for name in names:
        fields = _fields([model for field in fields for model, _ in models_in(field.annotation)], name)
        mark = _combined(fields, mark)
    return mark


def _fields(models: Iterable[Any], name: str) -> list[FieldInfo]:
    named = ((field.alias or key, key, field) for model in models for key, field in model.model_fields.items())
    return [field for alias, key, field in named if name in (alias, key)]


def _combined(fields: Iterable[FieldInfo], around: FromRecording) -> FromRecording:
    """The mark of a key that several kinds of one group may have; where they differ, it is held back."""
    marks = {_mark(field, around) for field in fields} or {around}
    return marks.pop() if len(marks) == 1 else _HELD


def _mark(field: FieldInfo, around: FromRecording) -> FromRecording:
    own = next((mark for mark in field.metadata if isinstance(mark, FromRecording)), None)
    if own is None and around.rule == "taken" and Path in (field.annotation, *get_args(field.annotation)):
        return _HELD
    return own or around


def _leaves(key: str, value: Any, *, through_lists: bool = False) -> Iterator[str]:
    """The dotted keys of a value: those of a mapping, and of mappings in it; of those in lists too, if asked for."""
    if isinstance(value, dict) and value:
        inner = [(f"{key}.{name}", item) for name, item in value.items()]
    elif isinstance(value, list) and value and through_lists:
        inner = [(key, item) for item in value]
    else:
        yield key
        return
    for place, item in inner:
        yield from _leaves(place, item, through_lists=through_lists)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from (*_texts(name), *_texts(item))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    else:
        yield str(value)


class Portable(NamedTuple):
    """The overrides that go into a cassette, and the keys of those that do not although a replay would miss them."""

    kept: tuple[str, ...]
    left_out: tuple[str, ...]


def make_portable(overrides: Iterable[str], holds: Callable[[str], bool], replaced: Callable[[str], str]) -> Portable:
    """Overrides without a secret and without the address of a server, each with the same effect on requests.

    `holds` says whether a text has a secret in it, `replaced` gives the text without. A value with one is quoted anew;
    an override that cannot be, and one that holds an address, is left out.
    """
    kept: list[str] = []
    left_out: dict[str, None] = {}
    for text in overrides:
        safe = _without_secrets(text, holds, replaced)
        if safe is not None:
            kept.append(safe)
        elif _verdict(text, None) != "unneeded":
            left_out[replaced(key_of(text))] = None
    return Portable(tuple(kept), tuple(left_out))


def _without_secrets(text: str, holds: Callable[[str], bool], replaced: Callable[[str], str]) -> str | None:
    """The override, its secrets replaced; None when it cannot be written without them, or holds an address."""
    try:
        override = OverridesParser.create().parse_override(text)
        value = None if override.is_delete() or override.is_sweep_override() else override.value()
    except HydraException:
        return None if holds(text) else text
    if any(key.rpartition(".")[2] == "base_url" for key in _leaves(override.key_or_group, value, through_lists=True)):
        return None
    if not holds(text) and not any(holds(part) for part in _texts(value)):
        return text
    head, equals, _ = text.partition("=")
    if not equals or value is None or holds(head) or any("${" in part for part in _texts(value)):
        return None
    try:
        return f"{head}={format_value(value, replaced)}"
    except ValueError:
        return None
