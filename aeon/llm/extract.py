"""JSON out of a model's text. The only such function in the project.

It finds JSON; it never mends it. What is not JSON goes to `aeon.supervisor.repair.Supervisor.repair_json()`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

MAX_DEPTH = 200

_REASONING = r"(?:think|thinking|reasoning)"
_OPENED = re.compile(rf"\s*<{_REASONING}>", re.IGNORECASE)
_CLOSED = re.compile(rf"</{_REASONING}>", re.IGNORECASE)
_FENCE = re.compile(r"^[ \t]*```([^\n`]*)$", re.MULTILINE)
# What cannot be the beginning of JSON is passed over, as braces in prose are.
_BEGINNING = re.compile(r"""\{(?=\s*["}])|\[(?=\s*[\[{"\d\-tfn\]])""")
_MARK = re.compile(r'["{}\[\]]')
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class ExtractError(ValueError):
    """There is no usable JSON in the text. `position` is the offset in characters where reading failed."""

    def __init__(self, message: str, position: int = 0) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class _Unusable(ValueError):
    """JSON by its grammar that is refused all the same."""


def extract_json(text: str) -> Any:
    """The JSON value in a model's text: the text itself, after `<think>...</think>`, in a code fence, or amid prose.

    Amid prose it is the first object that parses, or if there is none the first array. Duplicate keys, NaN, infinite
    numbers, lone surrogates and more than 200 levels of nesting are refused. Raises ExtractError with the position
    (FR-029).
    """
    try:
        return _usable(text.removeprefix("\ufeff"))
    except ExtractError as error:
        whole = error
    try:
        return _within(text, _begin(text))
    except ExtractError as error:
        raise whole if text.lstrip().startswith(("{", "[")) else error from None


def _begin(text: str) -> int:
    """Where the answer may begin: behind the reasoning. A mark in a bracketed stretch belongs to that stretch."""
    opened = _OPENED.match(text)
    if opened:
        closing = _CLOSED.search(text, opened.end())
        return closing.end() if closing else len(text)
    begin, position = 0, 0
    for start, end in (*_spans(text, 0), (len(text), len(text))):
        for mark in _CLOSED.finditer(text, position, start):
            begin = mark.end()
        position = end
    return begin


def _within(text: str, begin: int) -> Any:
    """The JSON in the text from `begin` on: all of it, a fenced block, an object, an array."""
    for start, end in ((begin, len(text)), *_fenced(text, begin)):
        try:
            return _usable(text[start:end])
        except ExtractError:
            continue
    return _amid(text, begin)


def _fenced(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """What stands in each code fence."""
    opened: int | None = None
    for mark in _FENCE.finditer(text, begin):
        if opened is None:
            opened = mark.end()
        elif not mark.group(1).strip():
            yield opened, mark.start()
            opened = None


def _amid(text: str, begin: int) -> Any:
    arrays: list[Any] = []
    failure: ExtractError | None = None
    for start, end in _spans(text, begin):
        try:
            value = _usable(text[start:end])
        except ExtractError as error:
            failure = failure or _moved(error, start, text)
            continue
        if isinstance(value, dict):
            return value
        arrays.append(value)
    if arrays:
        return arrays[0]
    raise failure or ExtractError("there is no JSON object in the answer", begin)


def _spans(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Bracketed stretches, outermost only: a part of a broken object must never pass for the answer."""
    beginning = _BEGINNING.search(text, start)
    while beginning:
        end = _balanced(text, beginning.start())
        yield beginning.start(), end
        beginning = _BEGINNING.search(text, end)


def _balanced(text: str, start: int) -> int:
    """The offset behind the bracket that closes the one at `start`; the end of the text if none does."""
    depth, mark = 0, _MARK.search(text, start)
    while mark:
        position = mark.end()
        if mark.group() == '"':
            string = _STRING.match(text, mark.start())
            if string is None:
                return len(text)
            position = string.end()
        else:
            depth += 1 if mark.group() in "{[" else -1
            if depth == 0:
                return position
        mark = _MARK.search(text, position)
    return len(text)


def _usable(text: str) -> Any:
    """The text as JSON; ExtractError with a position in it."""
    try:
        value = _DECODER.decode(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise ExtractError(f"not valid JSON: {error}", error.pos) from None
    except RecursionError:
        raise ExtractError(f"nested more than {MAX_DEPTH} levels deep") from None
    except UnicodeEncodeError:
        raise ExtractError("a \\u escape is half of a surrogate pair, which is no character") from None
    except ValueError as error:
        raise ExtractError(f"not usable JSON: {error}") from None
    _shallow(value)
    return value


def _shallow(value: Any) -> None:
    level, depth = [value], 0
    while level := [inner for outer in level if isinstance(outer, dict | list) for inner in _inner(outer)]:
        depth += 1
        if depth > MAX_DEPTH:
            raise ExtractError(f"nested more than {MAX_DEPTH} levels deep")


def _inner(value: dict[str, Any] | list[Any]) -> Iterator[Any]:
    return iter(value.values() if isinstance(value, dict) else value)


def _moved(error: ExtractError, offset: int, text: str) -> ExtractError:
    """The error of a stretch of the text, placed in the whole."""
    position = offset + error.position
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    message = re.sub(r": line \d+ column \d+ \(char \d+\)$", "", error.message)
    return ExtractError(f"{message}: line {line} column {column} (char {position})", position)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Unusable(f"the key {next(n for n in names if names.count(n) > 1)!r} appears twice in one object")
    return value


def _constant(name: str) -> Any:
    raise _Unusable(f"{name} is not a JSON number")


def _number(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise _Unusable(f"{digits} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
