"""The given settings of a run: those that differ from the defaults."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator

from aeon.config.compose.reference import entries_of
from aeon.config.settings import Settings
from aeon.domain.result import RunResult
from aeon.domain.values import flatten
from aeon.report.words import shorten

_NOT_COMPARED = {"provider.models"}  # a table in its file, and empty without it


def name_defaults(result: RunResult, keys: Collection[str]) -> str:
    """Name the defaults of those of these settings that were given; empty without any."""
    sentences = []
    for key, value, default in list_changed_settings(result):
        if key in keys:
            known = f"its default is {default}" if default != "null" else "by default there is none"
            sentences.append(f"`{key}` was set to {value}; {known}.")
    return " ".join(sentences)


def list_changed_settings(result: RunResult) -> Iterator[tuple[str, str, str]]:
    """Return the configuration keys that differ from the defaults, with their values and the
    defaults."""
    kind = result.configuration["provider"]["kind"]
    default = Settings.model_validate({"provider": {"kind": kind}}).model_dump(
        mode="json", by_alias=True
    )
    known = dict(flatten(default)) | {
        one.path: one.default for one in reversed(entries_of("reasoning"))
    }
    for key, value in flatten(
        {name: part for name, part in result.configuration.items() if name in default}
    ):
        if known.get(key) != value and key not in _NOT_COMPARED:
            yield key, _show(value), _show(known.get(key, ""))


def _show(value: object) -> str:
    """Return a value as it is typed: a text unchanged, anything else as JSON, which YAML reads."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten(text, 400)
