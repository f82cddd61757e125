"""The validators of jsonschema with an end: patterns of linear time, no comparison of all with all, and a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from time import monotonic
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from aeon.schema.patterns import CHECK_SECONDS, CheckTookTooLong, matches

Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


class _Clock(threading.local):
    """When the check that runs in this thread must be done; None while there is none."""

    end: float | None = None


_clock = _Clock()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Give the checks in this block, in this thread, so many seconds instead of CHECK_SECONDS each."""
    before, _clock.end = _clock.end, monotonic() + seconds
    try:
        yield
    finally:
        _clock.end = before


@cache
def bound_draft(kind: type[Validator]) -> type[Validator]:
    """The validator class of the same draft whose checks raise CheckTookTooLong once their time is up."""
    keywords: dict[str, Keyword] = {**kind.VALIDATORS, **_own(kind)}
    timed = {name: _timed(keyword) for name, keyword in keywords.items()}
    made: type[Validator] = extend(kind, validators=timed)  # type: ignore[no-untyped-call]
    return made


def _timed(keyword: Keyword) -> Keyword:
    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        outermost = _clock.end is None
        if outermost:
            _clock.end = monotonic() + CHECK_SECONDS
        elif monotonic() > (_clock.end or 0):
            raise CheckTookTooLong("it takes too long to be checked by its schema")
        try:
            yield from keyword(validator, value, instance, schema) or ()
        finally:
            if outermost:
                _clock.end = None

    return checked


def _own(kind: type[Validator]) -> dict[str, Keyword]:
    return {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties(kind.VALIDATORS["additionalProperties"]),
        "uniqueItems": _unique_items,
    }


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: Mapping[str, Any], instance: Any, _: Any
) -> Iterator[ValidationError]:
    if not validator.is_type(instance, "object"):
        return
    for pattern, inner in patterns.items():
        for name, value in instance.items():
            if matches(pattern, name):
                yield from validator.descend(value, inner, path=name, schema_path=pattern)


def _additional_properties(of_draft: Keyword) -> Keyword:
    def checked(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        patterns = schema.get("patternProperties")
        if patterns and validator.is_type(instance, "object"):
            named = {name: True for name in instance if any(matches(pattern, name) for pattern in patterns)}
            rest = {key: value for key, value in schema.items() if key != "patternProperties"}
            schema = {**rest, "properties": {**schema.get("properties", {}), **named}}
        yield from of_draft(validator, allowed, instance, schema) or ()

    return checked


def _unique_items(validator: Any, wanted: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    if wanted and validator.is_type(instance, "array"):
        seen = set(map(_identity, instance))
        if len(seen) < len(instance):
            yield ValidationError(f"{instance!r} has non-unique elements")


def _identity(value: Any) -> Any:
    """Equal for values that are equal as JSON, where 1 is 1.0 and neither is true."""
    if isinstance(value, Mapping):
        return ("object", frozenset((name, _identity(inner)) for name, inner in value.items()))
    if isinstance(value, list | tuple):
        return ("array", tuple(map(_identity, value)))
    return ("boolean", value) if isinstance(value, bool) else value
