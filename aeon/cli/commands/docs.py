"""`aeon docs [TOPIC | KEY]`: the pages of the documentation, and the meaning of a configuration key."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from aeon.cli.job.syntax import config_folders
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.compose.reference import Entry, entries_of, groups, top_entries
from aeon.config.json_schema import describe_types, settings_schema
from aeon.domain.errors import ConfigError
from aeon.files.resources import resource_root


def main(arguments: Sequence[str]) -> int:
    """Print a page, a key, or the list of pages. Raises ConfigError for what is neither a page nor a key."""
    named = next((text for text in arguments if not text.startswith("-")), "")
    put(_find(named, config_folders(arguments)) if named else _list_topics())
    return DONE


def topics() -> dict[str, Path]:
    """The pages by name, decisions by their numbers too."""
    root = resource_root()
    pages = {path.stem: path for path in sorted((root / "docs").glob("*.md"))}
    decisions = {path.name[:4]: path for path in sorted((root / "docs" / "decisions").glob("*.md"))}
    return {"readme": root / "README.md", **pages, **decisions}


def _list_topics() -> str:
    lines = ["aeon docs TOPIC prints a page, aeon docs KEY what a key of the configuration means.", ""]
    for name, path in topics().items():
        if not name.isdecimal():
            title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
            lines.append(f"  {name:<14}  {title}")
    return "\n".join(lines)


def _find(named: str, own: Sequence[Path]) -> str:
    # A page's name also as messages and links write it: `docs/errors.md#every-error`.
    page = Path(named.partition("#")[0].lower()).name.removesuffix(".md")
    pages, options = topics(), groups(own)
    if path := pages.get(page) or pages.get(page[:4] if page[:4].isdecimal() else ""):
        return path.read_text(encoding="utf-8")
    key = named.partition("=")[0]
    group = key.partition(".")[0]
    entries = [*entries_of(group, own), *top_entries(own)]
    if key in options:
        comments: dict[str, str] = {}
        for entry in entries:
            comments.setdefault(entry.path, entry.comment)
        lines = [f"  {path}  {text}".rstrip() for path, text in comments.items() if path.startswith(f"{key}.")]
        return "\n".join((f"{key}={' | '.join(options[key])}", *lines))
    nearest = key
    while nearest:
        if found := [entry for entry in entries if entry.path == nearest]:
            return "\n".join(_describe_key(found))
        nearest = nearest.rpartition(".")[0]
    near = get_close_matches(named, [*pages, *options, *{entry.path for entry in entries}], n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "`aeon docs` lists the pages, `aeon --cfg job` the keys."
    raise ConfigError(f"{named}: there is no such page and no such key", hint=hint)


def _describe_key(entries: Sequence[Entry]) -> Iterator[str]:
    """A key's comment, types and default; then the files that set another value."""
    first = entries[0]
    yield f"{first.path}\n  {first.comment}"
    yield f"  type: {' or '.join(describe_types(settings_schema(), first.path)) or 'any'}"
    yield f"  default: {_as_yaml(first.default)}  ({_place(first)})"
    for entry in entries[1:]:
        if entry.default != first.default:
            comment = f"  {entry.comment}" if entry.comment != first.comment else ""
            yield f"  {_place(entry)}: {_as_yaml(entry.default)}{comment}"


def _place(entry: Entry) -> str:
    group = entry.file.parent.name
    return entry.file.name if group == "conf" else f"{group}={entry.file.stem}"


def _as_yaml(value: Any) -> str:
    """A value in YAML, on one line."""
    return str(yaml.safe_dump(value, default_flow_style=True, width=10**6)).removesuffix("\n").removesuffix("\n...")
