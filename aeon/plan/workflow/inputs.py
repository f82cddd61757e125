"""The inputs of a workflow file: each is declared by a few words, or by a JSON Schema with its
type, its default and what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from aeon.domain.errors import ConfigError, SchemaFileError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.validators import FieldError, compile_schema, find_errors

Declared = JsonMapping
"""What `inputs:` declares: by each name a text, or a schema."""
_MOST_SHOWN = 200


def make_input_schema(declared: Declared) -> JsonObject:
    """One JSON Schema for all inputs together, as a tool that runs the plan has it."""
    properties = {name: _read_schema(each) for name, each in declared.items()}
    required = [name for name, schema in properties.items() if "default" not in schema]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def find_needed(declared: Declared) -> list[str]:
    """The inputs that have no default."""
    return [name for name, each in declared.items() if "default" not in _read_schema(each)]


def complete_inputs(declared: Declared, texts: Mapping[str, str]) -> dict[str, str]:
    """The inputs that were given, as texts, with the defaults of the others."""
    schemas = {name: _read_schema(each) for name, each in declared.items()}
    defaults = {
        name: write_value(schema["default"])
        for name, schema in schemas.items()
        if "default" in schema
    }
    return {**defaults, **texts}


def read_inputs(declared: Declared, texts: Mapping[str, str]) -> JsonObject:
    """The values of inputs that are there as texts: text where an input may be text, else JSON.
    Raises ConfigError, which names every input that is not as its schema says."""
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
    """Why the text of an input is not as its schema says; empty where it is."""
    try:
        _read_value(_read_schema(declared), text)
    except ValueError as error:
        return str(error)
    return ""


def find_schema_problems(schema: JsonMapping) -> Iterator[str]:
    """What is wrong with the schema of an input, its default included."""
    try:
        validator = compile_schema(schema, "it")
    except SchemaFileError as error:
        yield f"this is no JSON Schema: {error.message}"
        return
    if "default" in schema:
        for wrong in find_errors(validator, schema["default"])[:1]:
            yield f"its default does not fit: {_describe_error(wrong)}"


def describe_input(name: str, declared: str | JsonMapping) -> str:
    """An input as a person reads it: its name, its type, its default."""
    schema = _read_schema(declared)
    kinds = [] if isinstance(declared, str) else [" or ".join(_list_types(schema))]
    if "default" in schema:
        kinds.append(f"by default {json.dumps(schema['default'], ensure_ascii=False)}")
    known = ", ".join(filter(None, kinds))
    return f"{name} ({known})" if known else name


def write_value(value: object) -> str:
    """A value as the text that is read back as it: JSON, but for text."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _read_schema(declared: str | JsonMapping) -> JsonObject:
    if isinstance(declared, str):
        return {"type": "string", "description": declared}
    return dict(declared)


def _list_types(schema: JsonMapping) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else [str(each) for each in types]


def _read_value(schema: JsonMapping, text: str) -> Any:
    """The value of a text. Raises ValueError for one that is not as the schema says."""
    types = _list_types(schema)
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
