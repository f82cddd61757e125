"""Checked schemas and the validators made of them: each of its own draft, in bounded time, and never fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import jsonschema_rs
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, specification_with

from aeon.domain.errors import SchemaFileError
from aeon.domain.tool_result import SchemaViolation, Undecided
from aeon.files.nesting import TOO_DEEP, is_too_deep
from aeon.schema.json_schema import inner_schemas, pointer, rebuild, walk
from aeon.schema.patterns import CHECK_SECONDS, LOOKING_AROUND, CheckTookTooLong, is_usable, shorten_pattern

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DYNAMIC = frozenset({"$dynamicRef", "$recursiveRef"})
# A schema of a call is put into another one, where only `#/...` can be followed.
_NOT_MOVABLE = _DYNAMIC | {"$anchor", "$dynamicAnchor", "$id"}
# Keywords by which a small schema may ask for much work.
_NOT_LINEAR = frozenset({"$ref", "uniqueItems", "unevaluatedProperties", "unevaluatedItems"})


class SchemaValidator:
    """Checks values by one schema; made once, used from any thread.

    Every check of jsonschema's takes at most `CHECK_SECONDS`, else it raises CheckTookTooLong. A `fast` schema is tried
    with jsonschema-rs first, which is a thousand times faster and has no deadline.
    """

    def __init__(self, schema: Mapping[str, Any], *, fast: bool = True) -> None:
        self.schema = schema
        self._fast = _compile_fast(schema) if fast else None

    def accepts_at_once(self, value: Any) -> bool:
        """Whether jsonschema-rs accepts a value; False decides nothing."""
        return bool(self._judge_fast(value))

    def is_valid(self, value: Any) -> bool:
        """Whether the schema accepts a value."""
        verdict = self._judge_fast(value)
        return next(self.iter_errors(value), None) is None if verdict is None else verdict

    def _judge_fast(self, value: Any) -> bool | None:
        try:
            return None if self._fast is None else self._fast.is_valid(value)
        except ValueError:  # a value that JSON does not have
            return None

    def iter_errors(self, value: Any) -> Iterator[ValidationError]:
        """What the schema refuses, in jsonschema's words."""
        return self._detailed.iter_errors(value)

    @cached_property
    def _detailed(self) -> Validator:
        from aeon.schema.bounded import bound_draft

        # An empty registry: nothing that a schema refers to outside itself is fetched.
        return bound_draft(_draft_of(self.schema))(_without_dialect(self.schema), registry=Registry())


def find_violations(
    validator: SchemaValidator, value: Any, seconds: float = CHECK_SECONDS
) -> tuple[SchemaViolation, ...]:
    """Everything that is wrong with a value, in the order of its places; empty when it is as the schema says.

    One that cannot be checked, or not in so many seconds, has the one violation that says so, an Undecided.
    """
    if validator.accepts_at_once(value):
        return ()
    from aeon.schema.bounded import within

    try:
        with within(seconds):
            errors = validator.iter_errors(value)
            return tuple(sorted(SchemaViolation(pointer(error.absolute_path), error.message) for error in errors))
    except RecursionError:
        return (Undecided("", "nested too deeply to be checked"),)
    except (CheckTookTooLong, Unresolvable) as error:
        return (Undecided("", f"cannot be checked: {error}"),)


def is_valid(schema: Mapping[str, Any], value: Any) -> bool:
    """Whether `value` is of `schema`; false, too, for a schema that cannot be applied."""
    try:
        return validator_of(schema).is_valid(value)
    except Exception:  # a schema that is none breaks the libraries in ways of their own
        return False


def validator_of(schema: Mapping[str, Any]) -> SchemaValidator:
    """The validator of a schema of Aeon's own or a person's, stored by the process."""
    return _validator_of(json.dumps(schema, default=str))


@lru_cache(maxsize=128)
def _validator_of(text: str) -> SchemaValidator:
    return SchemaValidator(json.loads(text))


def check_schema(schema: Any, name: str) -> None:
    """Raise SchemaFileError, naming the JSON pointer, unless this is a self-contained Draft 2020-12 schema."""
    if isinstance(schema, Mapping):
        schema = {**schema, "$schema": _DIALECT}
    _Check(name, _NOT_MOVABLE).run(schema)


def compile_schema(schema: Any, name: str) -> SchemaValidator:
    """A validator of a schema that anybody wrote, of the draft that its `$schema` names, else of 2020-12.

    Compiled once in a process. `name` says whose schema it is. Raises SchemaFileError with the JSON pointer of what is
    wrong: not a schema, a pattern that cannot be used, a reference that leads to nothing within it, or one that only a
    running check could follow.
    """
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):
        return _compile(schema, name)
    return _compile_text(text, name)


@lru_cache(maxsize=1024)
def _compile_text(text: str, name: str) -> SchemaValidator:
    return _compile(json.loads(text), name)


def _compile(schema: Any, name: str) -> SchemaValidator:
    _Check(name, _DYNAMIC).run(schema)
    return SchemaValidator(dict(schema), fast=_is_linear(schema))


def _is_linear(schema: Mapping[str, Any]) -> bool:
    """Whether checking a value takes time in proportion to it, so that no deadline is needed."""
    return schema.get("$schema", _DIALECT) == _DIALECT and all(_NOT_LINEAR.isdisjoint(part) for _, part in walk(schema))


def is_draft_2020(schema: Mapping[str, Any]) -> bool:
    """Whether a schema has the form of Draft 2020-12, whatever its `$schema` says."""
    return jsonschema_rs.meta.is_valid({**schema, "$schema": _DIALECT})


@dataclass
class _Check:
    """Checks one schema document: its form, its references, its patterns."""

    name: str
    unsupported: frozenset[str]
    seen: set[int] = field(default_factory=set)
    patterns: str | None = None
    unevaluated: bool = False

    def run(self, schema: Any) -> None:
        """Raise SchemaFileError for the first thing that is wrong."""
        if not isinstance(schema, Mapping):
            raise SchemaFileError(f"{self.name}: a schema is a JSON object, not {type(schema).__name__}")
        if is_too_deep(schema):
            raise SchemaFileError(f"{self.name}: {TOO_DEEP}")
        self._check_form(schema, "", schema)
        specification: Any = specification_with(schema.get("$schema", _DIALECT), default=DRAFT202012)
        resource = specification.create_resource(dict(schema))
        resolver = Registry().with_resource("", resource).resolver_with_root(resource)
        self._document = schema
        self._check_part(schema, "", resolver, specification)
        if self.unevaluated and self.patterns is not None:
            raise self._error(self.patterns, "patternProperties cannot be used with unevaluatedProperties here")

    def _error(self, place: str, message: str) -> SchemaFileError:
        return SchemaFileError(f"{self.name}#{place}: {message}")

    def _check_form(self, schema: Mapping[str, Any], place: str, document: Mapping[str, Any]) -> None:
        """Hold a schema to the meta-schema of its document's dialect."""
        dialect = document.get("$schema", _DIALECT)
        if dialect == _DIALECT and is_draft_2020(schema):
            return
        kind = _draft_of(document)
        if kind is None:
            raise self._error("/$schema", f"{dialect!r} is none of the drafts from 4 to 2020-12")
        from jsonschema import FormatChecker
        from jsonschema.exceptions import SchemaError

        # What is a regular expression is decided by the engine that matches it.
        formats = FormatChecker(tuple(kind.FORMAT_CHECKER.checkers.keys() - {"regex"}))
        try:
            kind.check_schema(schema, format_checker=formats)
        except SchemaError as error:
            raise self._error(place + pointer(error.absolute_path), error.message) from error

    def _check_part(self, schema: Mapping[str, Any], place: str, resolver: Any, specification: Any) -> None:
        if id(schema) in self.seen:
            return
        self.seen.add(id(schema))
        for keyword in sorted(self.unsupported & schema.keys() - (set() if place else {"$id"})):
            raise self._error(f"{place}/{keyword}", f"{keyword} is not supported here; use #/$defs/NAME")
        self._check_patterns(schema, place)
        if isinstance(schema.get("$ref"), str):
            self._follow(schema["$ref"], place, resolver, specification)
        for path, inner in inner_schemas(schema):
            if isinstance(inner, Mapping):
                below = resolver.in_subresource(specification.create_resource(inner))
                self._check_part(inner, place + pointer(path), below, specification)

    def _follow(self, reference: str, place: str, resolver: Any, specification: Any) -> None:
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, TypeError):
            raise self._error(f"{place}/$ref", f"{reference!r} does not lead to a schema in this document") from None
        if isinstance(found.contents, Mapping):
            if id(found.contents) not in self.seen:
                # It may stand where the meta-schema expects anything at all.
                self._check_form(found.contents, reference.removeprefix("#"), self._document)
                self._check_part(found.contents, reference.removeprefix("#"), found.resolver, specification)
        elif not isinstance(found.contents, bool):
            raise self._error(f"{place}/$ref", f"{reference!r} does not lead to a schema in this document")

    def _check_patterns(self, schema: Mapping[str, Any], place: str) -> None:
        self.unevaluated = self.unevaluated or "unevaluatedProperties" in schema
        named = schema.get("patternProperties")
        patterns = [("patternProperties", pattern) for pattern in named] if isinstance(named, Mapping) else []
        if patterns:
            self.patterns = f"{place}/patternProperties"
        for where, pattern in (*((pointer(path), path[1]) for path in patterns), ("/pattern", schema.get("pattern"))):
            if isinstance(pattern, str) and not is_usable(pattern):
                message = f"{shorten_pattern(pattern)} is no regular expression, or too large a one"
                raise self._error(place + where, message)


def _compile_fast(schema: Mapping[str, Any]) -> jsonschema_rs.Draft202012Validator | None:
    """jsonschema-rs's validator; None for a schema that it cannot use."""
    try:
        return jsonschema_rs.Draft202012Validator(
            dict(schema), pattern_options=LOOKING_AROUND, offline=True, validate_formats=False
        )
    except (ValueError, TypeError):
        return None


def _draft_of(schema: Mapping[str, Any]) -> Any:
    """The jsonschema class of the draft that `$schema` names, else of 2020-12; None for a dialect it does not have."""
    from jsonschema.validators import Draft3Validator, Draft202012Validator, validator_for

    if not isinstance(schema.get("$schema", ""), str):
        return None
    kind: Any = validator_for(schema, default=Draft202012Validator)
    return None if kind is Draft3Validator else kind


def _without_dialect(schema: Mapping[str, Any]) -> Any:
    """A copy without the `$schema` that would make jsonschema go on with a class of its own."""
    return rebuild(dict(schema), lambda part: {key: value for key, value in part.items() if key != "$schema"})
