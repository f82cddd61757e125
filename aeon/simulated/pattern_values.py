"""Text that matches a regular expression: enough of the language for the patterns that schemas hold in practice."""

from __future__ import annotations

import importlib
import re
from random import Random
from typing import Any

# Python's own parser of regular expressions; it has a public face only as a deprecated module.
_parser: Any = importlib.import_module("re._parser")

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_DIGITS = "0123456789"
_PRINTABLE = [chr(code) for code in range(33, 127)]
_CATEGORIES = {
    "CATEGORY_DIGIT": _DIGITS,
    "CATEGORY_SPACE": " ",
    "CATEGORY_WORD": _LETTERS + _DIGITS,
    "CATEGORY_NOT_DIGIT": _LETTERS,
    "CATEGORY_NOT_SPACE": _LETTERS + _DIGITS,
    "CATEGORY_NOT_WORD": "-",
}
_MOST_REPEATS = 12


def matching(pattern: str, rng: Random, least: int = 0) -> str | None:
    """A text in which `pattern` is found (`re.search`), or None when none was made.

    `least` is the length to aim at, in characters; lookarounds and back references are ignored while the text is made,
    so a pattern that needs them may get None.
    """
    try:
        parsed = _parser.parse(pattern)
        compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None
    texts = (_sequence(parsed, rng, least + extra) for extra in (0, 0, 1, 2, 3, 5, 8, 13))
    return next((text for text in texts if compiled.search(text)), None)


def _sequence(parsed: Any, rng: Random, least: int) -> str:
    text = ""
    for operation, argument in parsed:
        text += _one(str(operation), argument, rng, max(0, least - len(text)))
    return text


def _one(operation: str, argument: Any, rng: Random, least: int) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "NOT_LITERAL":
        return "a" if argument != ord("a") else "b"
    if operation == "ANY":
        return rng.choice(_LETTERS)
    if operation == "IN":
        return _of_set(argument, rng)
    if operation == "BRANCH":
        return _sequence(rng.choice(argument[1]), rng, 0)
    if operation == "SUBPATTERN":
        return _sequence(argument[-1], rng, 0)
    if operation == "ATOMIC_GROUP":
        return _sequence(argument, rng, 0)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        return _repeat(argument, rng, least)
    return ""


def _repeat(argument: Any, rng: Random, least: int) -> str:
    low, high, body = argument
    most = min(int(high), max(low, least, 0) + 2, max(low, _MOST_REPEATS, least))
    wanted = min(int(high), max(low, least)) if least else rng.randint(low, max(low, most))
    return "".join(_sequence(body, rng, 0) for _ in range(wanted))


def _of_set(members: Any, rng: Random) -> str:
    negated = any(str(operation) == "NEGATE" for operation, _ in members)
    allowed = [text for member in members for text in _members(*member)]
    if negated:
        allowed = [text for text in _PRINTABLE if text not in set(allowed)]
    return rng.choice(allowed) if allowed else "\u00e9"


def _members(operation: Any, argument: Any) -> list[str]:
    if str(operation) == "LITERAL":
        return [chr(argument)]
    if str(operation) == "RANGE":
        low, high = argument
        return [chr(code) for code in range(low, min(high, low + 500) + 1)]
    if str(operation) == "CATEGORY":
        return list(_CATEGORIES.get(str(argument), _LETTERS))
    return []
