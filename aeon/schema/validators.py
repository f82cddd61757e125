"""JSON Schemas of tools: each of its own draft, checked once, compiled once, and never fetched from anywhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jsonschema import FormatChecker
from jsonschema.exceptions import SchemaError
from jsonschema.exceptions import ValidationError as JSONSchemaError
from jsonschema.protocols import Validator
from jsonschema.validators import Draft3Validator, Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from aeon.domain.errors import ConfigError
from aeon.domain.tool_result import SchemaViolation, Undecided
from aeon.schema.bounded import CHECK_SECONDS, bounded, within
from aeon.schema.patterns import CheckTookTooLong, shown, usable

_DATA = frozenset({"const", "default", "enum", "example", "examples"})
_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_DYNAMIC = ("$dynamicRef", "$recursiveRef")


def compiled(schema: Mapping[str, Any], name: str) -> Validator:
    """A validator of the schema, of the draft that its `$schema` names, else of 2020-12.

    Its checks raise CheckTookTooLong once their time is up (`aeon.schema.bounded`). `name` says whose schema it is.
    Raises ConfigError with the path of what is wrong: not a schema, a pattern that cannot be used, a reference that
    leads to nothing within it, or one that only a running check could follow (Sprint 1, edge cases).
    """
    if not isinstance(schema, Mapping):
        raise ConfigError(f"{name}: a JSON Schema is an object, not {type(schema).__name__}")
    schema = dict(schema)
    kind = _kind(schema, name)
    try:
        _check_form(kind, schema, name)
        _check_parts(kind, schema, name)
        own: Any = _without_dialect(schema)
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply") from None
    # An empty registry: what a schema refers to outside itself must not make the program fetch anything.
    return bounded(kind)(own, registry=Registry())


def violations(validator: Validator, value: Any, seconds: float = CHECK_SECONDS) -> tuple[SchemaViolation, ...]:
    """Everything that is wrong with a value, in the order of its places; empty when it is as the schema says.

    One that cannot be checked, or not in so many seconds, has the one violation that says so, an Undecided.
    """
    try:
        with within(seconds):
            found = [SchemaViolation(_pointer(error), error.message) for error in validator.iter_errors(value)]
    except RecursionError:
        return (Undecided("", "nested too deeply to be checked"),)
    except (CheckTookTooLong, Unresolvable) as error:
        return (Undecided("", f"cannot be checked: {error}"),)
    return tuple(sorted(found))


def _pointer(error: JSONSchemaError) -> str:
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)


def _kind(schema: Mapping[str, Any], name: str) -> Any:
    dialect = schema.get("$schema", "")
    kind: Any = validator_for(schema, default=Draft202012Validator) if isinstance(dialect, str) else None
    if kind in (None, Draft3Validator):
        raise ConfigError(f"{name}.$schema: {dialect!r} is none of the drafts from 4 to 2020-12")
    return kind


def _check_form(kind: Any, schema: Any, name: str) -> None:
    # What is a regular expression is decided by the engine that is to match it.
    formats = FormatChecker(tuple(kind.FORMAT_CHECKER.checkers.keys() - {"regex"}))
    try:
        kind.check_schema(schema, format_checker=formats)
    except SchemaError as error:
        raise ConfigError(f"{name}{error.json_path[1:]}: {error.message}") from error


@dataclass(frozen=True, slots=True)
class _Part:
    """A schema within a schema: where it stands, and what its references are to be resolved by."""

    path: str
    schema: Mapping[str, Any]
    resolver: Any


@dataclass(slots=True)
class _Found:
    """What a walk through a schema has met: schemas, and those referred to, by identity, and certain keywords."""

    seen: set[int] = field(default_factory=set)
    targets: set[int] = field(default_factory=set)
    patterns: str | None = None
    unevaluated: bool = False


def _check_parts(kind: Any, schema: dict[str, Any], name: str) -> None:
    """ConfigError for a reference or a pattern that no check could use."""
    specification: Any = specification_with(str(schema.get("$schema", "")), default=DRAFT202012)
    resource = specification.create_resource(schema)
    root = _Part("", schema, Registry().with_resource("", resource).resolver_with_root(resource))
    waiting, found = [root], _Found(targets={id(schema)})
    while waiting:
        for part in _parts(waiting.pop(), specification):
            if id(part.schema) not in found.seen:
                found.seen.add(id(part.schema))
                waiting += _target(kind, part, name, found)
                _check_patterns(part, name, found)
    if found.unevaluated and found.patterns is not None:
        raise ConfigError(f"{name}{found.patterns}: patternProperties cannot be used with unevaluatedProperties here")


def _parts(part: _Part, specification: Any) -> Iterator[_Part]:
    """The schema itself and every schema in it. Data is not entered; properties may have any name."""
    # A reference is resolved within the innermost schema that has an `$id`.
    resolver = part.resolver.in_subresource(specification.create_resource(part.schema)) if part.path else part.resolver
    yield _Part(part.path, part.schema, resolver)
    for key, inner in part.schema.items():
        path = f"{part.path}.{key}"
        if key in _NAMED and isinstance(inner, Mapping):
            for name, each in inner.items():
                yield from _below(each, f"{path}.{name}", resolver, specification)
        elif key not in _DATA:
            yield from _below(inner, path, resolver, specification)


def _below(value: Any, path: str, resolver: Any, specification: Any) -> Iterator[_Part]:
    if isinstance(value, Mapping):
        yield from _parts(_Part(path, value, resolver), specification)
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from _below(each, f"{path}[{index}]", resolver, specification)


def _target(kind: Any, part: _Part, name: str, found: _Found) -> list[_Part]:
    """The schema that a part refers to, if it does and it is another."""
    for keyword in _DYNAMIC:
        if keyword in part.schema:
            raise ConfigError(f"{name}{part.path}.{keyword}: cannot be used here, for no model could be told; use $ref")
    reference = part.schema.get("$ref")
    if not isinstance(reference, str):
        return []
    try:
        resolved = part.resolver.lookup(reference)
    except Unresolvable:
        raise ConfigError(f"{name}{part.path}.$ref: {reference!r} leads to nothing in this schema") from None
    if isinstance(resolved.contents, bool) or id(resolved.contents) in found.targets:
        return []
    if not isinstance(resolved.contents, Mapping):
        raise ConfigError(f"{name}{part.path}.$ref: {reference!r} does not lead to a schema")
    found.targets.add(id(resolved.contents))
    # It may stand where the meta-schema expects anything at all.
    _check_form(kind, resolved.contents, f"{name}{part.path}.$ref({reference})")
    return [_Part(f"{part.path}.$ref({reference})", resolved.contents, resolved.resolver)]


def _check_patterns(part: _Part, name: str, found: _Found) -> None:
    schema = part.schema
    found.unevaluated = found.unevaluated or "unevaluatedProperties" in schema
    listed = schema.get("patternProperties")
    patterns = {f"patternProperties.{pattern}": pattern for pattern in listed} if isinstance(listed, Mapping) else {}
    if patterns:
        found.patterns = f"{part.path}.patternProperties"
    for key, pattern in {"pattern": schema.get("pattern"), **patterns}.items():
        if isinstance(pattern, str) and not usable(pattern):
            raise ConfigError(f"{name}{part.path}.{key}: {shown(pattern)} is no regular expression, or too large a one")


def _without_dialect(part: Any) -> Any:
    """A copy without the `$schema` that would make jsonschema go on with a class of its own."""
    if isinstance(part, list | tuple):
        return [_without_dialect(each) for each in part]
    if not isinstance(part, Mapping):
        return part
    kept = {key: value for key, value in part.items() if key != "$schema" or not isinstance(value, str)}
    return {key: value if key in _DATA else _without_dialect(value) for key, value in kept.items()}
