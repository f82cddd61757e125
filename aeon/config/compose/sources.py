"""Finds the source of a key's value: every file and override that sets it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from aeon.config.compose.compose import compose, parse
from aeon.config.compose.hydra_private import ConfigPart, hydra_in, load_parts
from aeon.config.compose.literal import Composition, key_of
from aeon.domain.errors import ConfigError
from aeon.files.located_yaml import LocatedYaml


@dataclass(frozen=True, slots=True)
class Source:
    """A source that sets a key: a file and its line, the recorded settings of a run, or an
    override, as `place`; its `value` as JSON, unresolved; and the override that chose the file."""

    place: str
    value: str
    chosen_by: str = ""


def find_sources(of: Composition, key: str) -> tuple[str, list[Source]]:
    """Return the value of a key in a composition, as JSON, and its sources, in the order in which
    they are merged: the last is in force. Raises ConfigError for an unknown key, and for a
    composition that fails."""
    values = compose(of).values
    names = key.split(".")
    value = _select(OmegaConf.to_container(values, resolve=False), names)
    if value is _ABSENT:
        raise ConfigError(
            f"{key}: there is no such key in this configuration",
            hint="`aeon docs` finds keys; `--cfg job` shows the whole configuration.",
        )
    with hydra_in(of.config_dir) as initialised:
        parts = load_parts(of, initialised.config_loader)
        groups = set(initialised.config_loader.list_groups(""))
    sources = [
        *_find_in_files(parts, names, of.overrides),
        *_find_in_recording(of, names),
        *_find_in_overrides(of.overrides, names, groups),
    ]
    return _show(_resolve(values, key)), sources


_ABSENT = object()


def _select(values: object, names: Sequence[str]) -> Any:
    for name in names:
        if not isinstance(values, Mapping) or name not in values:
            return _ABSENT
        values = values[name]
    return values


def _resolve(values: DictConfig, key: str) -> object:
    found = OmegaConf.select(values, key)
    return OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found


def _find_in_files(
    parts: Sequence[ConfigPart], names: Sequence[str], overrides: Sequence[str]
) -> Iterator[Source]:
    choices = {key_of(text): text for text in overrides}
    for part in parts:
        value = _select(OmegaConf.to_container(part.values, resolve=False), names)
        if value is not _ABSENT:
            chosen_by = choices.get(part.group, "")
            yield Source(_find_place(part.path, names), _show(value), chosen_by)


def _find_place(path: Path, names: Sequence[str]) -> str:
    """Return the file, with the line of the key, whatever package its values belong to."""
    located = LocatedYaml(path)
    for start in range(len(names)):
        if _select(located.value, names[start:]) is not _ABSENT:
            return f"{path}:{located.key_position(tuple(names[start:])).line}"
    return str(path)


def _find_in_recording(of: Composition, names: Sequence[str]) -> Iterator[Source]:
    if of.recorded is None:
        return
    value = _select(of.recorded.settings, names)
    if value is not _ABSENT:
        yield Source(f"the settings of the run that {of.recorded.named} names", _show(value))


def _find_in_overrides(
    overrides: Sequence[str], names: Sequence[str], groups: set[str]
) -> Iterator[Source]:
    for text in overrides:
        override = parse(text)
        path = override.key_or_group.split(".")
        is_choice = override.key_or_group in groups and not isinstance(override.value(), dict)
        if is_choice or override.is_delete():
            continue
        value: Any = _ABSENT
        if path == list(names[: len(path)]):
            value = _select(override.value(), names[len(path) :])
        elif path[: len(names)] == list(names):
            value = {".".join(path[len(names) :]): override.value()}
        if value is not _ABSENT:
            yield Source(text, _show(value))


def _show(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
