"""Where a value is not as its schema says: one `FieldError` for each place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal

from aeon.schema.json_schema import pointer

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

    from aeon.schema.validators import SchemaValidator

ErrorKind = Literal["form", "range", "content"]
_MAX_MESSAGE = 400
# Keywords that constrained decoding often leaves aside, where it holds to types, names and enums.
_RANGES = frozenset(
    [
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "minItems", "maxItems", "pattern", "format"),
    ]
)


@dataclass(frozen=True, slots=True)
class FieldError:
    """What is wrong with one place of an answer. `pointer` is a JSON pointer (RFC 6901), empty for the whole answer.
    `kind`: "form" where it is not JSON of the schema's types and names, "range" where a value is outside the schema's
    bounds, "content" where the schema has no objection."""

    pointer: str
    message: str
    kind: ErrorKind = field(default="content", compare=False)

    def __str__(self) -> str:
        return f"{self.pointer or '(whole answer)'}: {self.message}"


def kind_of(errors: Iterable[FieldError]) -> ErrorKind:
    """The kind that errors have as a whole: "form" where one is of the form, "range" where all are of ranges."""
    kinds = {error.kind for error in errors}
    return "form" if "form" in kinds else "range" if kinds == {"range"} else "content"


def find_errors(validator: SchemaValidator, value: Any) -> list[FieldError]:
    """What a schema refuses in a value, by place."""
    if validator.is_valid(value):
        return []
    try:
        found = [leaf for error in validator.iter_errors(value) for leaf in _leaves(error)]
    except re.error as problem:
        return [FieldError("", f"cannot be checked: {problem}")]
    errors = []
    for error in sorted(found, key=_order):
        kind: ErrorKind = "range" if error.validator in _RANGES else "form"
        errors.append(FieldError(pointer(error.absolute_path), shorten_message(error.message), kind))
    return list(dict.fromkeys(errors))


def _order(error: ValidationError) -> tuple[list[tuple[int, str]], str]:
    return [(part if isinstance(part, int) else -1, str(part)) for part in error.absolute_path], error.message


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    """The errors inside the one alternative that is of the value's type; else the error itself. For a wrong object
    where an object or null is allowed, these are the errors of the object."""
    alternatives = [list(branch) for _, branch in groupby(error.context or (), key=lambda inner: inner.schema_path[0])]
    meant = [branch for branch in alternatives if not any(e.validator == "type" and not e.path for e in branch)]
    if len(meant) == 1:
        for inner in meant[0]:
            yield from _leaves(inner)
    else:
        yield error


def shorten_message(message: str) -> str:
    """The message, its middle left out where a whole answer was quoted."""
    half = _MAX_MESSAGE // 2
    return message if len(message) <= _MAX_MESSAGE else f"{message[:half]} ... {message[-half:]}"
