"""Equality of answers: numbers as numbers, JSON as JSON, everything else as trimmed text."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from decimal import Decimal, InvalidOperation

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,6})?", re.ASCII)
_FENCED = re.compile(r"```[\w-]*+(?P<text>.*?)```", re.DOTALL)


def canonical(answer: str) -> Hashable:
    """Return a value that is equal for equal answers. A number becomes its value, `15.0` like `15`;
    a JSON object or list, bare or alone in a code block, its values, whatever its spacing and order
    of names; everything else the trimmed text."""
    text = answer.strip()
    if _NUMBER.fullmatch(text):
        return _freeze(Decimal(text))
    fenced = _FENCED.fullmatch(text)
    bare = fenced["text"].strip() if fenced else text
    if bare[:1] in ("{", "["):
        try:
            return _freeze(json.loads(bare, parse_int=Decimal, parse_float=Decimal))
        except (ValueError, RecursionError, InvalidOperation):  # an exponent beyond all numbers
            return text
    return text


def is_same(answer: str, other: str) -> bool:
    """Whether two answers are the same."""
    return canonical(answer) == canonical(other)


def _freeze(value: object) -> Hashable:
    """Return a hashable form of a JSON value in which, unlike in Python, `true` is not 1."""
    if isinstance(value, dict):
        return ("object", frozenset((name, _freeze(item)) for name, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(_freeze(item) for item in value))
    return (type(value).__name__, value)
