"""Whether a value is of a JSON Schema, without ever following a reference out of the schema. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import UnknownType
from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

from aeon.schema.shapes import resolved
from aeon.schema.violations import FieldError, violations_of

_DATA = ("const", "enum", "default", "examples")


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether `value` is of `schema`; false, too, for a schema that cannot be applied."""
    try:
        return bool(validator(json.dumps(schema, sort_keys=True, default=str)).is_valid(value))
    except (UnknownType, RecursionError, TypeError, ValueError, re.error):
        return False


def violations(schema: Mapping[str, Any], value: Any) -> list[FieldError]:
    """What `schema` objects to in `value`; nothing, too, for a schema that cannot be applied."""
    try:
        return violations_of(validator(json.dumps(schema, sort_keys=True, default=str)), value)
    except (UnknownType, RecursionError, TypeError, ValueError, re.error):
        return []


@lru_cache(maxsize=128)
def validator(schema_text: str) -> Validator:
    """A kept validator of the schema that this JSON text is; building one costs more than using it."""
    schema = json.loads(schema_text)
    return validator_for(schema, default=Draft202012Validator)(_with_local_references_only(schema, schema))


def _with_local_references_only(schema: Any, root: Any) -> Any:
    """The schema without references that lead out of it: following one would open a connection."""
    if isinstance(schema, list):
        return [_with_local_references_only(member, root) for member in schema]
    if not isinstance(schema, dict):
        return schema
    lost = [
        key for key in ("$ref", "$dynamicRef") if isinstance(schema.get(key), str) and not _leads(schema[key], root)
    ]
    kept = {
        key: value for key, value in schema.items() if key not in lost and not (key == "$id" and isinstance(value, str))
    }
    return {k: v if k in _DATA else _with_local_references_only(v, root) for k, v in kept.items()}


def _leads(reference: str, root: Any) -> bool:
    return reference == "#" or resolved(reference, root) != {}


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: `true` is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)
