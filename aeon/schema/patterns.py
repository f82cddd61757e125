"""Patterns of schemas that strangers wrote, matched in bounded time, whatever the pattern and the text.

Python's own engine may take for ever and holds all threads meanwhile. Here a pattern is matched in time linear in the
text; one that looks around or back, which no linear engine can, has a limited number of steps.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import jsonschema_rs

# The most there is to match, so that one pattern takes two seconds at the very worst, with milliseconds the rule.
MAX_CHARACTERS = 200_000
MAX_CHARACTERSLOOKING_AROUND = 20_000
# How long a value may be checked.
CHECK_SECONDS = 2.0
_MAX_PROGRAM_BYTES = 1 << 20
_MAX_STEPS = 10_000
_LINEAR = jsonschema_rs.RegexOptions(size_limit=_MAX_PROGRAM_BYTES, dfa_size_limit=_MAX_PROGRAM_BYTES)
LOOKING_AROUND = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=_MAX_STEPS, size_limit=_MAX_PROGRAM_BYTES, dfa_size_limit=_MAX_PROGRAM_BYTES
)


class CheckTookTooLong(ValueError):
    """Whether a value is as its schema says cannot be found out in the time there is."""


class _Matcher(NamedTuple):
    engine: jsonschema_rs.Draft202012Validator
    longest: int


def is_usable(pattern: str) -> bool:
    """Whether it is a regular expression of JSON Schema, and not too large a one."""
    try:
        _matcher(pattern)
    except ValueError:
        return False
    return True


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern is found anywhere in the text.

    Raises CheckTookTooLong when the text is too long for that or the pattern needs too many steps, and ValueError for
    a pattern that is not `is_usable`.
    """
    matcher = _matcher(pattern)
    if len(text) > matcher.longest:
        raise CheckTookTooLong(f"{len(text)} characters are too many to be matched with {shorten_pattern(pattern)}")
    # Half a surrogate pair is no character that a pattern could name.
    error = next(matcher.engine.iter_errors(text.encode("utf-8", "replace").decode()), None)
    if error is not None and isinstance(error.kind, jsonschema_rs.ValidationErrorKind.BacktrackLimitExceeded):
        raise CheckTookTooLong(f"it takes too many steps to be matched with {shorten_pattern(pattern)}")
    return error is None


def shorten_pattern(pattern: str) -> str:
    """A pattern as a message quotes it: its beginning, where it is long."""
    return repr(pattern if len(pattern) <= 100 else pattern[:100] + "...")


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> _Matcher:
    try:
        return _Matcher(_engine(pattern, _LINEAR), MAX_CHARACTERS)
    except ValueError:
        return _Matcher(_engine(pattern, LOOKING_AROUND), MAX_CHARACTERSLOOKING_AROUND)


def _engine(
    pattern: str, options: jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions
) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
