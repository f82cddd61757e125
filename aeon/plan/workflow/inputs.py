"""The inputs of a workflow file, each declared by a short description or by a JSON Schema with
type, default and description."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from aeon.domain.errors import ConfigError, SchemaFileError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.validators import FieldError, compile_schema, find_errors

Declared = JsonMapping
"""The content of `inputs:`: a description or a schema by name."""
_MOST_SHOWN = 200


def make_input_schema(declared: Declared) -> JsonObject:
    """Return one JSON Schema for all inputs together, as used by a tool that runs the plan."""
    properties = {name: _read_schema(each) for name, each in declared.items()}
    required = [name for name, schema in properties.items() if "default" not in schema]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def find_needed(declared: Declared) -> list[str]:
    """Return the inputs without a default."""
    return [name for name, each in declared.items() if "default" not in _read_schema(each)]


def complete_inputs(declared: Declared, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the given inputs, as texts, with the defaults of the others."""
    defaults = {}
    for name, each in declared.items():
        schema = _read_schema(each)
        if "default" in schema:
            defaults[name] = write_value(schema["default"])
    return {**defaults, **texts}


def read_inputs(declared: Declared, texts: Mapping[str, str]) -> JsonObject:
    """Parse the texts of inputs: as text if an input may be text, else as JSON. Raises ConfigError
    naming every input that violates its schema."""
    values = JsonObject(texts)
    problems: list[str] = []
    for name in texts.keys() & declared.keys():
        try:
            values[name] = _read_value(_read_schema(declared[name]), texts[name])
        except ValueError as error:
            problems.append(f"inputs.{name}: {error}")
    if problems:
        hint = "The plan file says under `inputs` what each must be; `aeon check` shows it."
        raise ConfigError("; ".join(sorted(problems)), hint=hint)
    return values


def find_value_problem(declared: str | JsonMapping, text: str) -> str:
    """Return why an input's text violates its schema; empty if it does not."""
    try:
        _read_value(_read_schema(declared), text)
    except ValueError as error:
        return str(error)
    return ""


def find_schema_problems(schema: JsonMapping) -> Iterator[str]:
    """Yield the problems of an input's schema, including its default."""
    try:
        validator = compile_schema(schema, "it")
    except SchemaFileError as error:
        yield f"this is no JSON Schema: {error.message}"
        return
    if "default" in schema:
        for wrong in find_errors(validator, schema["default"])[:1]:
            yield f"its default does not fit: {_describe_error(wrong)}"


def describe_input(name: str, declared: str | JsonMapping) -> str:
    """Describe an input for a reader: its name, type and default."""
    schema = _read_schema(declared)
    kinds = [] if isinstance(declared, str) else [" or ".join(list_types(schema))]
    if "default" in schema:
        kinds.append(f"by default {json.dumps(schema['default'], ensure_ascii=False)}")
    known = ", ".join(filter(None, kinds))
    return f"{name} ({known})" if known else name


def write_value(value: object) -> str:
    """Write a value as text that is read back as the same value: JSON, except for text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_schema(declared: str | JsonMapping) -> JsonObject:
    if isinstance(declared, str):
        return {"type": "string", "description": declared}
    return dict(declared)


def list_types(schema: JsonMapping) -> list[str]:
    """Return the types that a schema names; empty where it names none."""
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else [str(each) for each in types]


def _read_value(schema: JsonMapping, text: str) -> Any:
    """Parse the value of a text. Raises ValueError if it violates the schema."""
    types = list_types(schema)
    value: Any = text
    if types and "string" not in types:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            shown = json.dumps(text[:_MOST_SHOWN], ensure_ascii=False)
            raise ValueError(f"must be {' or '.join(types)}, as JSON, not {shown}") from None
    errors = find_errors(compile_schema(schema, "inputs"), value)
    if errors:
        raise ValueError(_describe_error(errors[0]))
    return value


def _describe_error(error: FieldError) -> str:
    return f"{error.pointer}: {error.message}" if error.pointer else error.message


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
