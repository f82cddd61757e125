"""When two answers are the same: numbers as numbers, JSON as JSON, all else as trimmed text."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from decimal import Decimal

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,6})?", re.ASCII)
_FENCED = re.compile(r"```[\w-]*\n(?P<text>.*?)\n?```", re.DOTALL)


def canonical(answer: str) -> Hashable:
    """What is equal for equal answers. A number is its value, `15.0` as `15`; an object or a list
    of JSON, in a code block of its own or bare, is its values, whatever its blanks and the order of
    its names; everything else is the text without the blanks around it."""
    text = answer.strip()
    if _NUMBER.fullmatch(text):
        return _freeze(Decimal(text))
    fenced = _FENCED.fullmatch(text)
    bare = fenced["text"].strip() if fenced else text
    if bare[:1] in ("{", "["):
        try:
            return _freeze(json.loads(bare, parse_int=Decimal, parse_float=Decimal))
        except (ValueError, RecursionError):
            return text
    return text


def is_same(answer: str, other: str) -> bool:
    """Whether two answers are the same."""
    return canonical(answer) == canonical(other)


def _freeze(value: object) -> Hashable:
    """A value of JSON that can be compared and hashed; unlike Python's, its `true` is not 1."""
    if isinstance(value, dict):
        return ("object", frozenset((name, _freeze(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_freeze(item) for item in value))
    return (type(value).__name__, value)
