"""The long texts of requests; each part is stored once, however many requests contain it.

A long text is cut into chunks at places that its content determines, and is stored as the list of
their names; a long list is stored as a list of lists. Growing prompts share all unchanged chunks,
so each adds little. A row is JSON text as it is, `=` and a chunk of JSON text, or `*` and the names
of consecutive rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from hashlib import sha256
from typing import Any
from zlib import crc32

from aeon.domain.values import JsonObject
from aeon.files.text import load_json
from aeon.schema.json_schema import once_per_schema
from aeon.store.models import canonical

MAX_REQUEST_CHARACTERS = 50_000_000
"""Most characters of one stored request's texts, including the names of their parts."""
MAX_STORE_CHARACTERS = 200_000_000
"""Most characters of all requests of a store that are read together, or `MAX_RATIO` times its size
if that is more."""
# Each of a thousand calls may show the same long input, which is stored once.
MAX_RATIO = 500
SHORTEST = 256
"""Characters: storing a shorter text in place costs less than the name of a row."""
_MOST_OF_A_CHARACTER = 6  # \u0000
_MEAN_CHUNK = 1024
_LONGEST_CHUNK = 8192
_LONGEST_LINE = 4096
_NAME_LENGTH = 32
_MEAN_GROUP = "0"  # the last of 16 digits: a list has about 16 names
_LONGEST_REMEMBERED = 32_768

Rows = dict[str, str]
Places = list[tuple[list[str | int], str]]


def condense(request: JsonObject) -> tuple[JsonObject, Places, Rows]:
    """Return the request with null for each long text, the paths of those places with the names of
    their rows, and the rows."""
    places: Places = []
    rows: Rows = {}
    short = {name: _take_texts(value, [name], places, rows) for name, value in request.items()}
    return short, places, rows


# A recursive function inside `condense` would keep the rows alive until the next full garbage
# collection.
def _take_texts(value: object, path: list[str | int], places: Places, rows: Rows) -> Any:
    """Return the value with null for each long text; adds their places to `places` and their rows
    to `rows`."""
    is_long = isinstance(value, str) and _MOST_OF_A_CHARACTER * len(value) + 2 >= SHORTEST
    if is_long or (isinstance(value, dict) and len(path) == 1):
        text = _schema_text(value) if path == ["schema"] else json_text(value)
        if len(text) >= SHORTEST:
            name, added = cut_text(text)
            rows.update(added)
            places.append((path, name))
            return None
    if isinstance(value, dict):
        return {
            name: _take_texts(inner, [*path, name], places, rows) for name, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [
            _take_texts(inner, [*path, index], places, rows) for index, inner in enumerate(value)
        ]
    return value


def restore(request: JsonObject, places: Places, row: Callable[[str], str]) -> JsonObject:
    """Restore the complete request; `row` returns a row by name. Changes `request`. Raises
    ValueError for texts longer than a request may have: rows that contain each other twice double
    each time."""
    budget = CharacterBudget(MAX_REQUEST_CHARACTERS, "a request is")

    def read(name: str) -> str:
        text = row(name)
        budget.spend(text)
        return (
            "".join(map(read, text[1:].split(" ")))
            if text.startswith("*")
            else text.removeprefix("=")
        )

    for (*way, last), name in places:
        target: Any = request
        for part in way:
            target = target[part]
        target[last] = load_json(read(name))
    return request


class CharacterBudget:
    """The characters that rows may still unpack to; `subject` is what is too long without them."""

    def __init__(self, most: int, subject: str) -> None:
        self._most = most
        self._left = most
        self._subject = subject

    def spend(self, row: str) -> None:
        """Count a row and its name. Raises ValueError if too few characters are left."""
        self._left -= len(row) + _NAME_LENGTH
        if self._left < 0:
            raise ValueError(f"{self._subject} longer than the allowed {self._most:,} characters")


def cut_text(text: str) -> tuple[str, Rows]:
    """Return the name of the row for the whole text, and all its rows, which must not be
    changed."""
    # Repeated system prompts and schemas are short; a long prompt occurs once and would stay in
    # memory.
    return _cut_again(text) if len(text) <= _LONGEST_REMEMBERED else _cut(text)


def _cut(text: str) -> tuple[str, Rows]:
    rows: Rows = {}

    def add(row: str) -> str:
        name = sha256(row.encode()).hexdigest()[:_NAME_LENGTH]
        rows[name] = row
        return name

    # Most prompts of a run are no longer than a chunk may be: to cut them takes longer than to store
    # them.
    if len(text) <= _LONGEST_CHUNK:
        return add(text), rows
    names = [add(f"={chunk}") for chunk in _chunks(text)]
    while len(names) > 1:
        names = [add(f"*{' '.join(group)}") for group in _groups(names)]
    return names[0], rows


def _chunks(text: str) -> Iterator[str]:
    chunk: list[str] = []
    size = 0
    for line in _lines(text):
        chunk.append(line)
        length = len(line)
        size += length
        # A line's own content decides whether it ends a chunk.
        if size >= _LONGEST_CHUNK or crc32(line.encode()) % _MEAN_CHUNK < length:
            yield "".join(chunk)
            chunk = []
            size = 0
    if chunk:
        yield "".join(chunk)


def _groups(names: Iterable[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for name in names:
        if len(groups[-1]) > 1 and groups[-1][-1].endswith(_MEAN_GROUP):
            groups.append([])
        groups[-1].append(name)
    return groups


_cut_again = lru_cache(maxsize=64)(_cut)


def json_text(value: object) -> str:
    """Encode a value as canonical JSON that UTF-8 can hold: half a surrogate pair, which a model
    may write, becomes its escape."""
    text = canonical(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text


_schema_text = once_per_schema(json_text)


def _lines(text: str) -> list[str]:
    *lines, last = text.split("\\n")
    whole = [line + "\\n" for line in lines]
    if last:
        whole.append(last)
    parts: list[str] = []
    for line in whole:
        if len(line) <= _LONGEST_LINE:
            parts.append(line)
            continue
        parts += [
            line[start : start + _LONGEST_LINE] for start in range(0, len(line), _LONGEST_LINE)
        ]
    return parts
