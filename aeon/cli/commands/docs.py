"""`aeon docs [TOPIC | KEY]`: the pages of the documentation, and the meaning of a configuration key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from aeon.cli.job.syntax import config_folders
from aeon.cli.terminal.status import DONE
from aeon.config.compose.reference import Entry, entries_of, groups, top_entries
from aeon.config.json_schema import describe_types, settings_schema
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root

_README = "readme"


def main(arguments: Sequence[str]) -> int:
    """Print a page, a key, or the list of pages. Raises ConfigError for what is neither a page nor a key."""
    named = next((text for text in arguments if not text.startswith("-")), "")
    print((_find(named, config_folders(arguments)) if named else _list_topics()).rstrip())
    return DONE


def topics() -> dict[str, Path]:
    """The pages by name, decisions by their numbers too."""
    root = resource_root()
    pages = {path.stem: path for path in sorted((root / "docs").glob("*.md"))}
    decisions = {path.name[:4]: path for path in sorted((root / "docs" / "decisions").glob("*.md"))}
    return {_README: root / "README.md", **pages, **decisions}


def _list_topics() -> str:
    pages = {name: path for name, path in topics().items() if not name.isdecimal()}
    width = max(map(len, pages))
    lines = [f"  {name:<{width}}  {_title(path)}" for name, path in pages.items()]
    return "\n".join(
        ["aeon docs TOPIC prints a page, aeon docs KEY what a key of the configuration means.", "", *lines]
    )


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as page:
        return page.readline().lstrip("# ").strip()


def _find(named: str, own: Sequence[Path]) -> str:
    page = topics().get(_topic(named))
    if page is not None:
        return page.read_text(encoding="utf-8")
    key = named.partition("=")[0]
    if "." not in key and key in groups(own):
        return "\n".join(_describe_group(key, own))
    entries = _entries(key, own)
    if entries:
        return "\n".join(_describe_key(entries))
    raise _unknown_topic(named, own)


def _topic(named: str) -> str:
    """A page's name, also as messages and links write it: `docs/errors.md#every-error`."""
    name = named.partition("#")[0].removesuffix(".md").removeprefix("docs/").removeprefix("decisions/").lower()
    return name[:4] if name[:4].isdecimal() else name


def _entries(key: str, own: Sequence[Path]) -> list[Entry]:
    """The entries of a key in the configuration files; of the nearest key above it where it has none."""
    while key:
        group = key.partition(".")[0]
        found = [entry for entry in (*entries_of(group, own), *top_entries(own)) if entry.path == key]
        if found:
            return found
        key = key.rpartition(".")[0]
    return []


def _describe_key(entries: Sequence[Entry]) -> Iterator[str]:
    first = entries[0]
    yield first.path
    yield f"  {first.comment}"
    yield f"  type: {' or '.join(describe_types(settings_schema(), first.path)) or 'any'}"
    yield f"  default: {_as_yaml(first.default)}  ({_place(first)})"
    for entry in entries[1:]:
        if entry.default != first.default:
            comment = f"  {entry.comment}" if entry.comment != first.comment else ""
            yield f"  {_place(entry)}: {_as_yaml(entry.default)}{comment}"


def _describe_group(group: str, own: Sequence[Path]) -> Iterator[str]:
    entries = entries_of(group, own)
    yield f"{group}={' | '.join(groups(own)[group])}"
    shown: set[str] = set()
    for entry in entries:
        if entry.path.startswith(f"{group}.") and entry.path not in shown:
            shown.add(entry.path)
            yield f"  {entry.path}  {entry.comment}".rstrip()


def _place(entry: Entry) -> str:
    group = entry.file.parent.name
    return entry.file.name if group == "conf" else f"{group}={entry.file.stem}"


def _as_yaml(value: Any) -> str:
    """A value in YAML, on one line."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=10**6)).removesuffix("\n").removesuffix("\n...")


def _unknown_topic(named: str, own: Sequence[Path]) -> ConfigError:
    keys = {entry.path for group in groups(own) for entry in entries_of(group, own)}
    known = [*topics(), *groups(own), *keys, *(entry.path for entry in top_entries(own))]
    near = get_close_matches(named, known, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "`aeon docs` lists the pages, `aeon --cfg job` the keys."
    return ConfigError(f"{named}: there is no such page and no such key", hint=hint)
