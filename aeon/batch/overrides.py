"""The settings that a row of a dataset may change: fewer than its user may, since a dataset may be
a stranger's. Each field of the settings declares whether a row may set it
(`aeon.domain.values.FromOthers`); without a mark of its own it may not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aeon.config.compose.compose import parse
from aeon.config.compose.literal import key_of
from aeon.config.marks import mark_at
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonObject, flatten
from aeon.files.resources import resource_root

_MAY = "a row may only set models, thresholds, modes, ttl.base, and lower limits"
_HINT = "Set everything else on the command line, for all rows."
_ABSENT = object()


def check_overrides(overrides: Sequence[str]) -> None:
    """Raise ConfigError for an override of a key that a row may not set, before anything is
    composed of it."""
    for text in overrides:
        key = key_of(text)
        if not _may_be_composed(text, key):
            raise ConfigError(f"overrides: a row may not set {key}: {_MAY}", hint=_HINT)


def _may_be_composed(text: str, key: str) -> bool:
    # Interpolations may read the environment; the others reach beyond the key that is checked.
    if "${" in text or "/" in key or text.startswith(("~", "+")):
        return False
    override = parse(text)
    if override.package is not None or override.is_sweep_override():
        return False
    value: Any = override.value()
    if "." in key or isinstance(value, dict):
        return all(mark_at(leaf).row for leaf, _ in flatten(value, key))
    # A packaged group file is checked by its changes; a user's own may change any other group.
    return (resource_root() / "conf" / key / f"{value}.yaml").is_file()


def modes_among(overrides: Sequence[str]) -> tuple[str, ...]:
    """Return the overrides that choose a mode: settings from a mode's file do not count as changes
    by the row."""
    return tuple(text for text in overrides if key_of(text) == "mode")


def check_changes(settings: Settings, configured: Settings) -> None:
    """Raise ConfigError when the settings of a row change a configured value, given its mode, that
    a row may not set, or raise a limit."""
    before, after = (
        dict(flatten(of.model_dump(mode="json", exclude={"resume"})))
        for of in (configured, settings)
    )
    for key in before.keys() | after.keys():
        given = after.get(key, _ABSENT)
        if given != before.get(key, _ABSENT):
            _check_value(key, given, before)


def _check_value(key: str, given: object, before: JsonObject) -> None:
    rule = mark_at(key).row
    if rule == "any":
        return
    if not rule:
        raise ConfigError(f"overrides: a row may not set {key}: {_MAY}", hint=_HINT)
    named = key if rule == "lower" else f"{key.rpartition('.')[0]}.{rule}"
    most = before.get(named)
    if most is not None and (given is None or given > most):
        value = json.dumps(given)
        problem = f"overrides: {key}={value}: a row may not go beyond {named}={most:g}"
        raise ConfigError(problem, hint=_HINT)
