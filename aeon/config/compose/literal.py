"""Overrides, and free text as overrides: quoted so that Hydra returns it byte for byte.

Hydra's grammar interprets commas, quotes, brackets and `${...}` in a bare value. For keys that hold
plain words the text is literal: `task`, `inputs.NAME`, `convergence.criteria.NAME`,
`memory.entries.NAME`. The patterns of `tools.approval` are not keys in that grammar either, but may
be keys of a mapping that is a value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.files.text import require_unicode

if TYPE_CHECKING:
    from aeon.domain.values import JsonMapping  # with pydantic: `aeon --help` needs none

_LITERAL = re.compile(
    r"(?P<add>\+{0,2})(?P<key>task|(inputs|convergence\.criteria|memory\.entries)\.[^=]+)=(?P<text>.*)",
    re.DOTALL,
)
_APPROVAL = re.compile(
    r"\+{0,2}tools\.approval\.(?P<pattern>[\w.*?-]+)=(?P<policies>[A-Za-z]+(,[A-Za-z]+)*)", re.ASCII
)
_STORE_URL = re.compile(r"(?P<key>\+{0,2}store\.path)=(?P<url>[a-z][a-z0-9+.-]*://.*)", re.DOTALL)
_NAMED_ENTRY = re.compile(
    r"\+{0,2}(input_files|input_as|tools\.functions|arms|serve\.models)\.[^=]+="
)


CONFIG_NAME = "config"
"""The usual primary file, without its suffix."""


def escape_interpolations(text: str) -> str:
    """Return the text with its interpolations as plain text."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def quote(text: str, *, interpolated: bool = False) -> str:
    """Return the text as one single-quoted value of Hydra's grammar; with `interpolated` its
    interpolations stay in force.

    Backslashes before a quote, an interpolation or the end are doubled; quote and interpolation get
    one more.
    """
    escaped = re.sub(r"(\\*)'", r"\1\1\\'", text)
    if not interpolated:
        escaped = escape_interpolations(escaped)
    return "'" + re.sub(r"(\\+)\Z", r"\1\1", escaped) + "'"


def format_value(value: object, *, interpolated: bool = False) -> str:
    """Return a plain value in Hydra's grammar, its texts quoted; with `interpolated` their
    interpolations stay in force."""
    inner = partial(format_value, interpolated=interpolated)
    if isinstance(value, dict):
        items = (f"{name}: {inner(item)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(inner, value))}]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return quote(str(value), interpolated=interpolated)


def is_literal(key: str) -> bool:
    """Check whether the texts of a key are literal, without interpolations."""
    return _LITERAL.fullmatch(f"{key}=") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSettings:
    """The settings of a run that is resumed or replayed, as data. `named` is the override that
    names the run, `missing` are keys that were set but not recorded, `unknown` those that this
    version does not have and ignores. `provider` is the kind of the settled provider, and its name.
    `today` are the keys of the overrides that come after these settings, None for all of them."""

    named: str
    settings: JsonMapping
    missing: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    provider: tuple[str, str | None] = ("", None)
    today: frozenset[str] | None = None

    def is_before(self, key: str) -> bool:
        """Check whether an override of this key comes after these settings."""
        return self.today is None or key in self.today

    def is_provider(self, given: JsonMapping) -> bool:
        """Check whether a provider's settings are those of the recorded provider: settings of
        another one, its address above all, must not apply to this one and its key."""
        kind, name = self.provider
        before = self.settings.get("provider") or {}
        if given.get("kind") not in (kind, before.get("kind")):
            return False
        return name is None or given.get("name", name) == name


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """The sources of a configuration: overrides, free text quoted, the user's own folder, a primary
    file; and the settings of a run, which the overrides come after. `of_project` are the first of
    the overrides, which the project file sets, None where that is not known. `jobs` are those of a
    resumed multirun: the overrides that only each of them has, and its settings. `replayed` are
    settings to replay a recording with, in place of the recorded ones."""

    overrides: tuple[str, ...] = ()
    config_dir: Path | None = None
    config_name: str = CONFIG_NAME
    of_project: tuple[str, ...] | None = ()
    recorded: RecordedSettings | None = None
    replayed: JsonMapping | None = None
    jobs: tuple[tuple[tuple[str, ...], RecordedSettings], ...] = ()

    def with_overrides(self, overrides: Iterable[str]) -> Composition:
        """Return a copy with other overrides."""
        return replace(self, overrides=tuple(overrides))

    def find_recorded(self, number: int) -> RecordedSettings | None:
        """Return the recorded settings that the job of this number starts from, if there are
        any."""
        return self.jobs[number][1] if self.jobs else self.recorded


def key_of(override: str) -> str:
    """Return the key or group of an override, without prefixes and packages."""
    return override.lstrip("+~").partition("=")[0].partition("@")[0]


def quote_override(argument: str, read: Callable[[str, str], str] = lambda _key, text: text) -> str:
    """Return an override with its free text, as `read` returns it for a key and a text, quoted;
    another argument unchanged. A named entry and a pattern of `tools.approval` are added or
    replaced (`++`), whether or not they exist. The URL of a store is quoted too, since Hydra's
    grammar may misread it."""
    if approval := _APPROVAL.fullmatch(argument):
        pattern = approval["pattern"]
        policies = approval["policies"].split(",")
        return "++tools.approval=" + ",".join(f"{{{pattern}: {policy}}}" for policy in policies)
    if address := _STORE_URL.fullmatch(argument):
        return f"{address['key']}={quote(address['url'], interpolated=True)}"
    match = _LITERAL.fullmatch(argument)
    if match is None:
        return f"++{argument.lstrip('+')}" if _NAMED_ENTRY.match(argument) else argument
    key = match["key"]
    text = require_unicode(read(key, match["text"]), key)
    return f"{match['add'] if key == 'task' else '++'}{key}={quote(text)}"
