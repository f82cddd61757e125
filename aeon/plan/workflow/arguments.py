"""Checks the arguments of a step against the input schema of its tool, before references are resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from aeon.files.located_yaml import Place
from aeon.plan.workflow.references import Reference, references
from aeon.schema.validators import compile_schema

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError


def argument_problems(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Yield the place and the message of each violation; values with unresolved references are skipped."""
    validator = compile_schema(schema, "input_schema")
    try:
        errors = [] if validator.is_valid(arguments) else list(validator.iter_errors(arguments))
    except re.error as reason:
        yield (), f"it cannot be checked: {reason}"
        return
    for error in sorted(errors, key=lambda error: [str(part) for part in error.absolute_path]):
        if not _waits(error.instance, error):
            yield tuple(str(p) if isinstance(p, str) else p for p in error.absolute_path), error.message


def _waits(value: Any, error: ValidationError) -> bool:
    """Whether an error may go away once references in the value are filled in."""
    if error.validator in ("required", "additionalProperties", "dependentRequired", "minProperties", "maxProperties"):
        return False
    if isinstance(value, list) and error.validator in ("type", "minItems", "maxItems"):
        return False
    if isinstance(value, Mapping) and error.validator == "type":
        return False
    return any(isinstance(found.reference, Reference) for found in references(value))
