"""Merges recorded settings with today's overrides, which take precedence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf, open_dict

from aeon.config.compose.literal import RecordedSettings, escape_interpolations
from aeon.config.compose.recorded import FILLED_FROM, Key, leaves, put, remove
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject

_PROVIDER = "provider"
_WHICH_PROVIDER = {(_PROVIDER, "kind"), (_PROVIDER, "name")}


def take_over(
    cfg: DictConfig,
    recorded: RecordedSettings,
    overrides: Sequence[Override],
    groups: Collection[str],
    compose_without: Callable[[Sequence[str]], DictConfig],
) -> DictConfig:
    """Merge the composition of today's `overrides` with the recorded settings. A value of today
    takes precedence for its key. An option of today takes precedence for its whole group, and for
    its changes elsewhere: the differences from the configuration that `compose_without` returns for
    the other overrides. Raises ConfigError for settings that have to be given again."""
    today = _plain(cfg)
    given = [one for one in overrides if recorded.is_before(one.key_or_group)]
    choices = [one for one in given if _is_choice(one, groups)]
    changed = _find_changed(overrides, choices, today, compose_without)
    replaced = {one.key_or_group for one in choices}
    # An option's changes in other groups count by the key, except another provider: that is another
    # server.
    if changed & _WHICH_PROVIDER:
        replaced.add(_PROVIDER)
    merged = _escape(recorded.settings)
    if _PROVIDER in replaced and recorded.is_provider(today[_PROVIDER]):
        replaced.remove(_PROVIDER)
        changed = _take_same_provider(merged.setdefault(_PROVIDER, {}), today[_PROVIDER], changed)
    for key in changed | _find_given(given, choices):
        _take_today(merged, key, today)
    _require_missing(recorded, merged, today, replaced)
    for group in replaced:
        merged.pop(group, None)
    with open_dict(cfg):
        cfg.update(merged)
    return cfg


def _find_changed(
    overrides: Sequence[Override],
    choices: Collection[Override],
    today: JsonObject,
    compose_without: Callable[[Sequence[str]], DictConfig],
) -> set[Key]:
    """Return the keys that the options `choices` change: the differences from the composition
    without them."""
    if not choices:
        return set()
    lines = [one.input_line or "" for one in overrides if one not in choices]
    return _find_differing(_plain(compose_without(lines)), today)


def _find_given(overrides: Iterable[Override], choices: Collection[Override]) -> set[Key]:
    """Return the keys that overrides of values set, and those filled from the files that these
    name."""
    ours = (one for one in overrides if one not in choices and not one.is_hydra_override())
    given = {key for one in ours for key in list_keys(one)}
    return given | {filled for key, filled in FILLED_FROM.items() if key in given}


def _take_same_provider(recorded: JsonObject, today: JsonMapping, changed: set[Key]) -> set[Key]:
    """Return the changed keys where today's option names the recorded provider."""
    if recorded.get("kind") == today["kind"]:
        return {key for key in changed if key[0] != _PROVIDER}
    # `provider=auto` has keys that the settled provider does not have.
    for name in recorded.keys() - today.keys():
        del recorded[name]
    return changed


def _is_choice(override: Override, groups: Collection[str]) -> bool:
    if override.is_hydra_override() or isinstance(override.value(), dict):
        return False
    return override.key_or_group in groups


def list_keys(override: Override) -> Iterator[Key]:
    """Yield the keys that an override of a value sets."""
    above = tuple(override.key_or_group.split("."))
    value = override.value()
    if isinstance(value, dict) and value:
        yield from (key for key, _ in leaves(value, above))
    else:
        yield above


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
    """Raise ConfigError where a setting that was not recorded has no value today, from an override
    or a file."""
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
    absent = object()  # None is a value
    return {
        key for key in one.keys() | other.keys() if one.get(key, absent) != other.get(key, absent)
    }


def _plain(cfg: DictConfig) -> JsonObject:
    names = [str(name) for name in cfg if name != "hydra"]
    values: Any = OmegaConf.to_container(OmegaConf.masked_copy(cfg, names), resolve=False)
    return dict(values)


def _escape(value: object) -> Any:
    """Return a value with its recorded meaning: interpolations in it are plain text."""
    if isinstance(value, str):
        return escape_interpolations(value)
    if isinstance(value, Mapping):
        return {name: _escape(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_escape(item) for item in value]
    return value
