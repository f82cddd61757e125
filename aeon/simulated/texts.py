"""Texts that the simulated provider makes up: by a format, by a regular expression, or free ones; and excerpts."""

from __future__ import annotations

import importlib
import re
import unicodedata
from collections.abc import Callable
from random import Random
from typing import Any

# Python's own parser of regular expressions; its only public name is a deprecated module.
_parser: Any = importlib.import_module("re._parser")

MARK = "(simulated)"

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "larch", "maple", "river")
_FORMATS: dict[str, Callable[[Random], str]] = {
    "date": lambda rng: f"20{rng.randint(10, 39)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    "time": lambda rng: f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00Z",
    "date-time": lambda rng: f"{_FORMATS['date'](rng)}T{_FORMATS['time'](rng)}",
    "duration": lambda rng: f"P{rng.randint(1, 30)}D",
    "email": lambda rng: f"{rng.choice(_WORDS)}@example.org",
    "hostname": lambda rng: f"{rng.choice(_WORDS)}.example.org",
    "ipv4": lambda rng: f"192.0.2.{rng.randint(1, 254)}",
    "ipv6": lambda rng: f"2001:db8::{rng.randint(1, 9999)}",
    "uri": lambda rng: f"https://example.org/{rng.choice(_WORDS)}",
    "uri-reference": lambda rng: f"/{rng.choice(_WORDS)}",
    "uuid": lambda rng: f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}",
    "regex": lambda rng: f"^{rng.choice(_WORDS)}$",
}
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_PRINTABLE = [chr(code) for code in range(33, 127)]
_CATEGORIES = {"CATEGORY_DIGIT": _DIGITS, "CATEGORY_SPACE": " ", "CATEGORY_WORD": _LETTERS + _DIGITS}
_MOST_REPEATS = 12


def free_text(name: str, rng: Random) -> str:
    """A text that says that it is simulated and for what property it stands."""
    return " ".join(filter(None, (MARK, name.replace("_", " "), rng.choice(_WORDS), str(rng.randint(1, 999)))))


def formatted_text(form: str, rng: Random) -> str | None:
    """A text of a JSON Schema format; None for a format that is not known."""
    make = _FORMATS.get(form)
    return make(rng) if make else None


def resize_text(text: str, shortest: int, longest: int | None) -> str:
    """The text, filled up or cut to a length within the bounds, in characters."""
    filled = text + " ." * ((shortest - len(text) + 1) // 2)
    return filled[:longest] if len(text) >= shortest else filled[:shortest]


def matching_text(pattern: str, rng: Random, length: int = 0) -> str:
    """A text for a regular expression, about `length` characters long if that is more than it needs.

    Lookarounds and back references are ignored, so the text may not match. Empty for a pattern that Python cannot read.
    """
    try:
        return _sequence(_parser.parse(pattern), rng, length)
    except (re.error, OverflowError, RecursionError):
        return ""


def _sequence(parsed: Any, rng: Random, length: int) -> str:
    text = ""
    for operation, argument in parsed:
        text += _part(str(operation), argument, rng, max(0, length - len(text)))
    return text


def _part(operation: str, argument: Any, rng: Random, length: int) -> str:
    if operation == "LITERAL":
        return chr(argument)
    if operation == "ANY":
        return rng.choice(_LETTERS)
    if operation == "IN":
        return rng.choice(_characters(argument))
    if operation == "BRANCH":
        return _sequence(rng.choice(argument[1]), rng, 0)
    if operation == "SUBPATTERN":
        return _sequence(argument[-1], rng, length)
    if operation in ("MAX_REPEAT", "MIN_REPEAT"):
        least, most, body = argument
        times = max(least, length) if length else rng.randint(least, max(least, _MOST_REPEATS))
        return "".join(_sequence(body, rng, 0) for _ in range(min(int(most), times)))
    return ""


def _characters(members: Any) -> list[str]:
    """The characters that a set such as `[a-z_]` allows, as far as they are of ASCII."""
    listed: list[str] = []
    for operation, argument in members:
        if str(operation) == "LITERAL":
            listed.append(chr(argument))
        elif str(operation) == "RANGE":
            listed += [chr(code) for code in range(argument[0], min(argument[1], argument[0] + 500) + 1)]
        elif str(operation) == "CATEGORY":
            listed += _CATEGORIES.get(str(argument), "-")
    is_negated = any(str(operation) == "NEGATE" for operation, _ in members)
    return [text for text in _PRINTABLE if text not in listed] or ["\u00e9"] if is_negated else listed


def excerpt(text: str, longest: int = 60) -> str:
    """The beginning of a text on one line, at most `longest` characters and an ellipsis, never cut within a character.

    Control characters and lone surrogates are left out. A text with spaces is cut after a word.
    """
    plain = "".join(c if unicodedata.category(c) not in ("Cc", "Cs") else " " for c in text[: longest * 8])
    line = " ".join(plain.split())
    if len(line) <= longest:
        return line
    end = longest
    while end > 1 and _are_joined(line[end - 1], line[end]):
        end -= 1
    space = line.rfind(" ", longest // 2, end)
    return line[: space if space > 0 else end].rstrip() + "…"


def _are_joined(before: str, after: str) -> bool:
    """Whether a reader sees two code points as one character: combining marks, joiners, emoji modifiers, flags."""
    is_modifier = 0x1F3FB <= ord(after) <= 0x1F3FF
    is_flag = all(0x1F1E6 <= ord(c) <= 0x1F1FF for c in (before, after))
    return unicodedata.category(after)[0] == "M" or "\u200d" in (before, after) or is_modifier or is_flag
