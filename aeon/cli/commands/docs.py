"""`aeon docs [WORD ...]`: a page of the documentation, the meaning of a configuration key, or the
places where words occur."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

import yaml

from aeon.cli.syntax.help import find_config_folders
from aeon.cli.terminal.output import show_markdown
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.width import fit_rows
from aeon.config.compose.reference import KeyEntry, entries_of, groups, top_entries
from aeon.config.json_schema import describe_types, settings_schema
from aeon.domain.errors import ConfigError
from aeon.files.resources import list_pages
from aeon.report.words import count_noun

_MOST_PLACES = 30
_HEADING = re.compile(r"#{1,6} +(?P<title>.+)")


def docs(given: Namespace) -> int:
    """Print a page, a key, the places where words occur, or the list of pages. Raises ConfigError
    for words that name neither a page nor a key, and occur nowhere."""
    words: list[str] = given.word
    own = find_config_folders(given.words)
    if not words:
        _put_list()
    elif given.search:
        _put_places(words, own)
    elif page := _find_page(words):
        show_markdown(page.read_text(encoding="utf-8"))
    elif described := _describe_setting(" ".join(words), own):
        put("\n".join(described))
    else:
        _put_places(words, own)
    return DONE


def _put_list() -> None:
    put("aeon docs PAGE  prints a page")
    put("aeon docs KEY   explains a key of the configuration")
    put("aeon docs WORD  finds the places where a word occurs\n")
    for name, path in list_pages().items():
        if not name.isdecimal():
            put(fit_rows(f"  {name:<14}  {_title(path)}", 18))


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")


def _find_page(words: Sequence[str]) -> Path | None:
    """Find a page by its name, also as messages and links write it:
    `docs/errors.md#every-error`."""
    name = Path(" ".join(words).partition("#")[0].lower()).name
    number = name[:4] if name[:4].isdecimal() else ""
    pages = list_pages()
    return pages.get(name.removesuffix(".md")) or pages.get(number)


def _describe_setting(named: str, own: Sequence[Path]) -> list[str]:
    """Return the lines on a group or a key, or on its nearest parent key; none for a name that is
    neither."""
    key = named.partition("=")[0]
    if key in (options := groups(own)):
        return [f"{key}={' | '.join(options[key])}", *_describe_group(key, own)]
    entries = _list_entries(key, own)
    while key:
        if found := [entry for entry in entries if entry.path == key]:
            return [*_describe_key(found)]
        key = key.rpartition(".")[0]
    return []


def _list_entries(key: str, own: Sequence[Path]) -> list[KeyEntry]:
    return [*entries_of(key.partition(".")[0], own), *top_entries(own)]


def _describe_group(group: str, own: Sequence[Path]) -> Iterator[str]:
    entries = {entry.path: entry for entry in reversed(_list_entries(group, own))}
    for path, entry in sorted(entries.items()):
        if path.startswith(f"{group}."):
            yield fit_rows(f"  {path}  {entry.comment}".rstrip(), 6)


def _describe_key(entries: Sequence[KeyEntry]) -> Iterator[str]:
    first = entries[0]
    is_basic = any(entry.is_basic for entry in entries)
    yield f"{first.path}{'  (basic)' if is_basic else ''}"
    yield fit_rows(f"  {first.comment}", 2)
    types = " or ".join(describe_types(settings_schema(), first.path))
    yield fit_rows(f"  type: {types or 'any'}", 4)
    yield fit_rows(f"  default: {_write_default(first)}  ({_place_of(first)})", 4)
    for entry in entries[1:]:
        if entry.default != first.default:
            comment = f"  {entry.comment}" if entry.comment != first.comment else ""
            yield fit_rows(f"  {_place_of(entry)}: {_write_default(entry)}{comment}", 4)


def _write_default(entry: KeyEntry) -> str:
    text: str = yaml.safe_dump(entry.default, default_flow_style=True, width=10**6)
    return text.partition("\n")[0]


def _place_of(entry: KeyEntry) -> str:
    group = entry.file.parent.name
    return entry.file.name if group == "conf" else f"{group}={entry.file.stem}"


@dataclass(frozen=True, slots=True)
class _Section:
    """The text of a page below a heading, up to the next one."""

    page: str
    heading: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """A place where words occur: the line with most of them, empty where the heading has them all.
    Those with the lowest `rank` fit best."""

    section: _Section
    line: str
    rank: int


def _put_places(words: Sequence[str], own: Sequence[Path]) -> None:
    """Print the places where words occur, headings first. Raises ConfigError when there is none."""
    sought = [word.lower() for text in words for word in text.split()]
    found = (_find_place(section, sought) for section in _read_sections())
    places = sorted(filter(None, found), key=lambda place: place.rank)
    if not places:
        raise ConfigError(
            f"{' '.join(words)}: there is no such page and no such key, and no page mentions it",
            hint=_suggest(" ".join(words), own),
        )
    for place in places[:_MOST_PLACES]:
        put(fit_rows(f"{place.section.page:<14}  {place.section.heading}", 16))
        if place.line:
            put(fit_rows(f"{'':<16}{place.line}", 16))
    shown = min(len(places), _MOST_PLACES)
    more = f" of {len(places)}, add a word to find fewer" if shown < len(places) else ""
    say(f"{count_noun(shown, 'place')}{more}. `aeon docs PAGE` prints a page.")


def _find_place(section: _Section, words: Sequence[str]) -> _Place | None:
    """Find the words, in lower case, in a section; None unless it has all of them."""

    def count_missing(text: str) -> int:
        return sum(word not in text.lower() for word in words)

    if not count_missing(section.heading):
        return _Place(section, "", rank=0)
    if count_missing("\n".join((section.heading, *section.lines))):
        return None
    line = min(section.lines, key=count_missing)
    return _Place(section, line.strip(), rank=1 + count_missing(line))


def _read_sections() -> Iterator[_Section]:
    for page, path in list_pages().items():
        heading = ""
        is_code = False
        lines: list[str] = []
        for line in path.read_text(encoding="utf-8").splitlines():
            # In code, a line that begins with # is a comment.
            is_code ^= line.startswith("```")
            begins = None if is_code else _HEADING.fullmatch(line)
            if begins is None:
                lines.append(line)
                continue
            yield _Section(page, heading, tuple(lines))
            heading = begins["title"]
            lines = []
        yield _Section(page, heading, tuple(lines))


def _suggest(named: str, own: Sequence[Path]) -> str:
    keys = [entry.path for entry in _list_entries(named, own)]
    near = get_close_matches(named, [*list_pages(), *groups(own), *keys], n=3)
    if near:
        return f"Did you mean {', '.join(near)}?"
    return "`aeon docs` lists the pages, `aeon --cfg job` the keys."
