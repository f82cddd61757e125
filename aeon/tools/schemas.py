"""JSON Schemas of tools: checked once, compiled once, and never fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema.exceptions import SchemaError
from jsonschema.exceptions import ValidationError as JSONSchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from aeon.errors import ConfigError
from aeon.tools.models import SchemaViolation

_DATA = frozenset({"const", "default", "enum", "example", "examples"})


def compiled(schema: Mapping[str, Any], name: str) -> Validator:
    """A validator of the schema, of the draft that its `$schema` names, else of 2020-12.

    `name` says whose schema it is. Raises ConfigError with the path of what is wrong: not a schema, a pattern that
    cannot be used, a reference that leads to nothing within it (Sprint 1, edge cases).
    """
    if not isinstance(schema, Mapping):
        raise ConfigError(f"{name}: a JSON Schema is an object, not {type(schema).__name__}")
    schema = dict(schema)
    kind: Any = validator_for(schema, default=Draft202012Validator)
    try:
        kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
        _check_references(schema, name)
    except SchemaError as error:
        raise ConfigError(f"{name}{error.json_path[1:]}: {error.message}") from error
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply") from None
    # An empty registry: what a schema refers to outside itself must not make the program fetch anything.
    validator: Validator = kind(schema, registry=Registry())
    return validator


def violations(validator: Validator, value: Any) -> tuple[SchemaViolation, ...]:
    """Everything that is wrong with a value, in the order of its places; empty when it is as the schema says."""
    try:
        found = [SchemaViolation(_pointer(error), error.message) for error in validator.iter_errors(value)]
    except RecursionError:
        return (SchemaViolation("", "nested too deeply to be checked"),)
    return tuple(sorted(found))


def _pointer(error: JSONSchemaError) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)


def _check_references(schema: Mapping[str, Any], name: str) -> None:
    specification = specification_with(str(schema.get("$schema", "")), default=DRAFT202012)
    resource = specification.create_resource(schema)
    resolver = Registry().with_resource("", resource).resolver_with_root(resource)
    for path, reference in _references(schema):
        try:
            resolver.lookup(reference)
        except Unresolvable:
            raise ConfigError(f"{name}{path}.$ref: {reference!r} leads to nothing in this schema") from None


def _references(part: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield path, part["$ref"]
        for key, inner in part.items():
            if key not in _DATA:
                yield from _references(inner, f"{path}.{key}")
    elif isinstance(part, list | tuple):
        for index, inner in enumerate(part):
            yield from _references(inner, f"{path}[{index}]")
