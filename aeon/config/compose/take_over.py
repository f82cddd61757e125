"""Recorded settings with today's overrides after them, so that of two values for a key today's
counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict

from aeon.config.compose.literal import RecordedSettings
from aeon.config.compose.recorded import FILLED_FROM, Key, leaves, put, remove
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject

_INTERPOLATION = re.compile(r"(\\*)\$\{")
_PROVIDER = "provider"
_WHICH_PROVIDER = {(_PROVIDER, "kind"), (_PROVIDER, "name")}


def take_over(
    cfg: DictConfig,
    recorded: RecordedSettings,
    overrides: Sequence[Override],
    groups: Collection[str],
    compose_without: Callable[[Sequence[str]], DictConfig],
) -> DictConfig:
    """What today's `overrides` composed to, on the recorded settings. A value of today counts for
    its key. An option of today counts for its whole group, and for what it changes elsewhere: what
    differs from the configuration that `compose_without` gives for the other overrides. Raises
    ConfigError for what is to be given again."""
    today = _plain(cfg)
    given = [one for one in overrides if recorded.is_before(one.key_or_group)]
    choices = [one for one in given if _is_choice(one, groups)]
    changed: set[Key] = set()
    if choices:
        lines = [one.input_line or "" for one in overrides if one not in choices]
        changed = _find_differing(_plain(compose_without(lines)), today)
    replaced = {one.key_or_group for one in choices}
    # What an option changes in other groups counts by the key, but for another provider: it is
    # another server.
    replaced |= {_PROVIDER} if changed & _WHICH_PROVIDER else set()
    merged = _escape(recorded.settings)
    if _PROVIDER in replaced and recorded.is_provider(today[_PROVIDER]):
        replaced.remove(_PROVIDER)
        changed = _take_same_provider(merged.setdefault(_PROVIDER, {}), today[_PROVIDER], changed)
    _take_all_today(merged, changed | _find_given(given, choices), today)
    _require_missing(recorded, merged, today, replaced)
    with open_dict(cfg):
        cfg.update({name: part for name, part in merged.items() if name not in replaced})
    return cfg


def _find_given(overrides: Iterable[Override], choices: Collection[Override]) -> set[Key]:
    """The keys that overrides of values set, and those that are filled from the files that these
    name."""
    ours = (one for one in overrides if one not in choices and not one.is_hydra_override())
    given = {key for one in ours for key in _list_keys(one)}
    return given | {filled for key, filled in FILLED_FROM.items() if key in given}


def _take_same_provider(recorded: JsonObject, today: JsonMapping, changed: set[Key]) -> set[Key]:
    """Where today's option is of the recorded provider: what is changed nevertheless."""
    if recorded.get("kind") == today["kind"]:
        return {key for key in changed if key[0] != _PROVIDER}
    # `provider=auto` has keys that the provider it was settled to does not have.
    for name in recorded.keys() - today.keys():
        del recorded[name]
    return changed


def _is_choice(override: Override, groups: Collection[str]) -> bool:
    if override.is_hydra_override() or isinstance(override.value(), dict):
        return False
    return override.key_or_group in groups


def _list_keys(override: Override) -> Iterator[Key]:
    above = tuple(override.key_or_group.split("."))
    value = override.value()
    if isinstance(value, dict) and value:
        yield from (key for key, _ in leaves(value, above))
    else:
        yield above


def _take_all_today(merged: JsonObject, keys: Iterable[Key], today: JsonObject) -> None:
    for key in keys:
        _take_today(merged, key, today)


def _take_today(merged: JsonObject, key: Key, today: JsonObject) -> None:
    value: Any = today
    for name in key:
        if not isinstance(value, Mapping) or name not in value:
            remove(merged, key)
            return
        value = value[name]
    put(merged, key, value)


def _require_missing(
    recorded: RecordedSettings,
    merged: JsonObject,
    today: JsonObject,
    replaced: Collection[str],
) -> None:
    """What was not recorded must have a value today, from an override or from a file."""
    for name in recorded.missing:
        key = tuple(name.split("."))
        if key[0] in replaced:
            continue
        _take_today(merged, key, today)
        if not dict(leaves(merged)).get(key):
            raise ConfigError(
                f"{recorded.named}: {name} held a secret, and is not recorded",
                hint=f"Give it again: {name}=...",
            )


def _find_differing(before: JsonObject, now: JsonObject) -> set[Key]:
    one = dict(leaves(before))
    other = dict(leaves(now))
    return {
        key for key in one.keys() | other.keys() if one.get(key, _plain) != other.get(key, _plain)
    }


def _plain(cfg: DictConfig) -> JsonObject:
    names = [str(name) for name in cfg if name != "hydra"]
    values: Any = OmegaConf.to_container(OmegaConf.masked_copy(cfg, names), resolve=False)
    return dict(values)


def _escape(value: object) -> Any:
    """A value as it was recorded: what looks like an interpolation in it is text."""
    if isinstance(value, str):
        return _INTERPOLATION.sub(r"\1\1\\${", value)
    if isinstance(value, Mapping):
        return {name: _escape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    return value
