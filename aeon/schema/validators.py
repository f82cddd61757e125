"""Checked schemas and their validators, each of its own draft, and the errors they find; nothing is
downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

import jsonschema_rs

from aeon.domain.errors import SchemaFileError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import once_per_schema, pointer, resolve, walk
from aeon.schema.visits import (
    MOST_IN_ALL,
    MOST_VISITS,
    VISITS_A_VALUE,
    TooManyVisits,
    Visits,
    count_visits,
    limit_visits,
    refuse_many_schemas,
)

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# A call's schema is embedded into another one, where only `#/...` can be followed.
_NOT_MOVABLE = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$id")
# Patterns take time linear in the text or, with lookaround or backreferences, at most this many
# steps.
_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=10_000)
ErrorKind = Literal["form", "range", "content"]
_MAX_MESSAGE = 400
_MOST_FOUND = 1_000
_TOO_MANY_VISITS = (
    f"cannot be checked by its schema in {MOST_VISITS:,} steps and {VISITS_A_VALUE} for each value,"
    f" {MOST_IN_ALL:,} at most: its alternatives multiply, or it is too large"
)
# Keywords that constrained decoding often ignores while it enforces types, names and enums.
_RANGES = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "pattern", "format"),
    ]
)


class SchemaValidator:
    """Validates values by one schema; created once, used from any thread. Raises ValueError for an
    invalid schema. jsonschema-rs decides, quickly for every pattern; jsonschema describes the
    errors of a value."""

    def __init__(self, schema: JsonMapping) -> None:
        self.schema = schema
        self._engine = jsonschema_rs.validator_for(
            dict(schema), pattern_options=_PATTERNS, offline=True, validate_formats=False
        )
        self._visits = Visits(schema)

    def is_valid(self, value: object) -> bool:
        """Whether the schema accepts a value; also False if finding out would take too many
        visits."""
        if self._visits.are_too_many(value):
            return False
        try:
            return self._engine.is_valid(value)
        except ValueError:  # half a surrogate pair
            return next(self.iter_errors(value), None) is None

    def iter_errors(self, value: Any) -> Iterator[ValidationError]:
        """Yield the schema's errors in jsonschema's words. Raises re.error for a pattern of names
        that Python does not support, and TooManyVisits if finding the rest would take too many
        visits."""
        if self._visits.are_too_many(value):
            raise TooManyVisits
        with limit_visits(value):
            yield from self._detailed_validator.iter_errors(value)

    @cached_property
    def _detailed_validator(self) -> Validator:
        from jsonschema.validators import Draft202012Validator, extend, validator_for
        from referencing import Registry

        kind = validator_for(self.schema, default=Draft202012Validator)
        checks: JsonObject = {
            **kind.VALIDATORS,
            "pattern": _pattern,
            "uniqueItems": _unique_items,
        }
        bounded = extend(  # type: ignore[no-untyped-call]
            kind, validators={name: count_visits(check) for name, check in checks.items()}
        )
        made: Validator = bounded(self.schema, registry=Registry())
        return made


def _pattern(validator: Any, pattern: str, instance: Any, _: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if validator.is_type(instance, "string"):
        text = instance.encode("utf-8", "replace").decode()
        if not validator_of({"pattern": pattern}).is_valid(text):
            yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _unique_items(validator: Any, keyword: Any, instance: Any, _: Any) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    # jsonschema compares every item with every other.
    is_list = keyword and validator.is_type(instance, "array")
    if is_list and not validator_of({"uniqueItems": True}).is_valid(instance):
        yield ValidationError(f"{instance!r} has non-unique elements")


def is_valid(schema: JsonMapping, value: object) -> bool:
    """Whether `value` matches `schema`; also False for an invalid schema."""
    try:
        return validator_of(schema).is_valid(value)
    except (ValueError, RecursionError):
        return False


def validator_of(schema: JsonMapping) -> SchemaValidator:
    """Return the validator of a schema, created once per process. Raises ValueError for an invalid
    schema."""
    return _validator_of(_text_of(schema))


@once_per_schema
def _text_of(schema: JsonMapping) -> str:
    return json.dumps(schema, default=str)


@lru_cache(maxsize=1024)
def _validator_of(text: str) -> SchemaValidator:
    return SchemaValidator(json.loads(text))


def compile_schema(schema: object, name: str) -> SchemaValidator:
    """Return a validator for a schema from any source, of the draft in its `$schema`, else of
    2020-12. `name` identifies the schema in messages. Raises SchemaFileError with the JSON pointer
    of the error."""
    if not isinstance(schema, Mapping):
        raise SchemaFileError(f"{name}: a schema is a JSON object, not {type(schema).__name__}")
    try:
        refuse_many_schemas(schema)
        return validator_of(schema)
    except jsonschema_rs.ValidationError as error:
        place = pointer(error.instance_path) or _find_loose_reference(dict(schema))
        raise SchemaFileError(f"{name}#{place}: {error.message}") from None
    except (ValueError, RecursionError) as error:
        raise SchemaFileError(f"{name}: {error}") from None


def _find_loose_reference(schema: JsonObject) -> str:
    """Return the place of the first reference that leads nowhere, because jsonschema-rs does not
    report it; empty if there is none."""
    places = (
        f"{place}/$ref"
        for place, part in walk(schema)
        if "$ref" in part and resolve(schema, part["$ref"]) is None
    )
    return next(places, "")


def check_schema(schema: Any, name: str) -> None:
    """Raise SchemaFileError, with the JSON pointer, unless this is a self-contained Draft 2020-12
    schema."""
    compile_schema(schema, name)
    compile_schema({**schema, "$schema": _DIALECT}, name)
    for place, part in walk(dict(schema)):
        for keyword in part.keys() & _NOT_MOVABLE:
            if place or keyword != "$id":
                raise SchemaFileError(
                    f"{name}#{place}/{keyword}: is not supported here; use #/$defs/NAME"
                )
        if not str(part.get("$ref", "#")).startswith("#"):
            raise SchemaFileError(f"{name}#{place}/$ref: {part['$ref']!r} must begin with #")


def is_draft_2020(schema: JsonMapping) -> bool:
    """Whether a schema has the form of Draft 2020-12, whatever its `$schema` says."""
    return jsonschema_rs.meta.is_valid({**schema, "$schema": _DIALECT})


@dataclass(frozen=True, slots=True)
class FieldError:
    """An error at one place of an answer. `pointer` is a JSON pointer (RFC 6901), empty for the
    whole answer. `kind`: "form" if it is not JSON with the schema's types and names, "range" if a
    value is outside the schema's bounds, "content" if the schema has no objection."""

    pointer: str
    message: str
    kind: ErrorKind = field(default="content", compare=False)

    def __str__(self) -> str:
        return f"{self.pointer or '(whole answer)'}: {self.message}"


def kind_of(errors: Iterable[FieldError]) -> ErrorKind:
    """Return the kind of several errors: "form" if one is of form, "range" if all are of ranges,
    else "content"."""
    kinds = {error.kind for error in errors}
    return "form" if "form" in kinds else "range" if kinds == {"range"} else "content"


def find_errors(validator: SchemaValidator, value: object) -> list[FieldError]:
    """Return the errors of a value by a schema, sorted by place: about the first thousand."""
    if validator.is_valid(value):
        return []
    found: list[ValidationError] = []
    try:
        for error in validator.iter_errors(value):
            found += _leaves(error)
            if len(found) >= _MOST_FOUND:
                break
    except re.error as problem:
        return [FieldError("", f"cannot be checked: {problem}")]
    except TooManyVisits:
        if not found:
            return [FieldError("", _TOO_MANY_VISITS)]
    errors = []
    for error in sorted(found, key=_order):
        kind: ErrorKind = "range" if error.validator in _RANGES else "form"
        errors.append(
            FieldError(pointer(error.absolute_path), shorten_message(error.message), kind)
        )
    return list(dict.fromkeys(errors))


def _order(error: ValidationError) -> tuple[list[tuple[int, str]], str]:
    return [
        (part if isinstance(part, int) else -1, str(part)) for part in error.absolute_path
    ], error.message


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """Yield the errors inside the only alternative that has the value's type, else the error
    itself. For a wrong object where an object or null is allowed, these are the object's errors."""
    alternatives = [
        list(branch)
        for _, branch in groupby(error.context or (), key=lambda inner: inner.schema_path[0])
    ]
    meant = [
        branch
        for branch in alternatives
        if not any(e.validator == "type" and not e.path for e in branch)
    ]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from _leaves(inner)
    else:
        yield error


def shorten_message(message: str) -> str:
    """Cut the middle of a message that quotes a whole answer."""
    half = _MAX_MESSAGE // 2
    return message if len(message) <= _MAX_MESSAGE else f"{message[:half]} ... {message[-half:]}"
