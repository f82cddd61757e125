"""What the model must return for each call: the schema files, their form as sent, their validators.

Properties that only your file asks for are requested from the model and dropped before the answer
is read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from aeon.domain.errors import SchemaFileError
from aeon.domain.request import CallName
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.pinned import read_file
from aeon.files.resources import digest_of_files, find_meant, resource_root
from aeon.files.shortage import raise_shortage
from aeon.schema.fit import drop_extras, misfits, relax_extras
from aeon.schema.json_schema import (
    change_at,
    drop_absent,
    embed_schema,
    enum_of,
    rebuild,
    relax_absent,
    strip_header,
)
from aeon.schema.strict import strict_violations
from aeon.schema.validators import SchemaValidator, check_schema, compile_schema, is_draft_2020

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Schema = JsonMapping

# The calls with their own file: a repair uses the schema of the call it repairs, a tool's arguments
# the tool's schema.
CALLS: tuple[CallName, ...] = tuple(
    call for call in get_args(CallName) if call not in ("repair", "tool_arguments")
)
SchemaName = CallName | Literal["tool_choice", "tool_round"]
NAMES: tuple[SchemaName, ...] = (*CALLS, "tool_choice", "tool_round")
ANSWERS: Mapping[SchemaName, str] = {"step": "step_output", "direct": "answer"}
"""The property of a call's answer that your answer schema replaces."""
_TOOLS_SCHEMA = "the tool's input schema"
_CRITERION = ("properties", "criteria", "items", "properties", "name")
_CALL = ("properties", "tool_calls", "items")


_PASSED_ON: Mapping[SchemaName, Sequence[tuple[str, ...]]] = {
    "convergence": (
        ("properties", "consistency_status", "items", "properties", "artifacts"),
        ("properties", "issues", "items", "properties", "kind"),
    )
}
"""Enums whose values the program only passes on: your schema may add values."""


@dataclass(frozen=True, slots=True)
class WireSchema:
    """A schema as sent to the provider, and whether it is in the strict subset. Must not be
    changed."""

    schema: JsonObject
    strict: bool


class SchemaLibrary:
    """The schema files with their sent forms and validators, each created once; thread-safe.

    `directory` is `schemas.dir`; `levels` are the allowed values of properties of the task's
    profile; `dimensions` are schemas of properties that the profile has in addition to its file's.
    Raises SchemaFileError with the place of an invalid schema.
    """

    def __init__(
        self,
        directory: Path | None = None,
        levels: Mapping[str, Collection[str]] | None = None,
        dimensions: Mapping[str, Schema] | None = None,
    ) -> None:
        self._own = {} if directory is None else _find_own_schemas(directory)
        self._levels = levels or {}
        self._dimensions = dimensions or {}
        self._documents: dict[SchemaName, JsonObject] = {}
        self._wires: dict[tuple[object, ...], WireSchema] = {}
        self._validators: dict[tuple[object, ...], SchemaValidator] = {}

    def wire(
        self,
        call: SchemaName,
        *,
        tools: Sequence[str] | None = None,
        criteria: Sequence[str] = (),
        answer_schema: Schema | None = None,
        absent: Collection[str] = (),
    ) -> WireSchema:
        """Return the schema as sent.

        `tools` are the only names that a property `tool` may have besides null (None: any);
        `criteria` the names in `convergence`'s `criteria`. `answer_schema` replaces
        `ANSWERS[call]`, or is the whole schema for `tool_arguments`. Names in `absent` are left out
        of enums, along with properties described as "only with NAME".
        """
        key = (
            call,
            None if tools is None else tuple(tools),
            tuple(criteria),
            _key(answer_schema),
            frozenset(absent),
        )
        if key not in self._wires:
            if call == "tool_arguments" and answer_schema is not None:
                compile_schema(answer_schema, _TOOLS_SCHEMA)
                # A schema of an older draft keeps its `$schema` and is never strict.
                is_current = is_draft_2020(answer_schema)
                schema = strip_header(answer_schema) if is_current else dict(answer_schema)
            else:
                schema = drop_absent(self._document(call), absent)
                if tools is not None:
                    schema = rebuild(schema, partial(_with_tools, tools=tools))
                schema = strip_header(self._with_answer(call, schema, answer_schema))
                if criteria:
                    schema = change_at(schema, _CRITERION, partial(_one_of, names=criteria))
            self._wires[key] = WireSchema(
                schema, "$schema" not in schema and not strict_violations(schema)
            )
        return self._wires[key]

    def local(
        self, call: SchemaName, answer_schema: Schema | None = None, absent: Collection[str] = ()
    ) -> SchemaValidator:
        """Return the validator of the file's own form, with `answer_schema` as in `wire()`. A
        property that only your file asks for may be missing or have any value; a property that
        needs something absent may be missing."""
        if call == "tool_arguments" and answer_schema is not None:
            return compile_schema(answer_schema, _TOOLS_SCHEMA)
        key = (call, _key(answer_schema), frozenset(absent))
        if key not in self._validators:
            schema = self._document(call)
            if call in self._own:
                schema = relax_extras(schema, self._load_packaged(call))
            schema = relax_absent(self._with_answer(call, schema, answer_schema), absent)
            self._validators[key] = SchemaValidator(schema)
        return self._validators[key]

    def wire_round(self, answer: WireSchema, tools: Sequence[str]) -> WireSchema:
        """Return the schema of a round in a step that may use `tools`: calls of them, or the
        `answer`."""
        key = ("round", tuple(tools), _key(answer.schema))
        if key not in self._wires:
            schema = embed_schema(self.wire("tool_round").schema, "answer", answer.schema)
            schema = change_at(
                schema, (*_CALL, "properties", "tool"), partial(_one_of, names=tools)
            )
            self._wires[key] = WireSchema(schema, not strict_violations(schema))
        return self._wires[key]

    def local_round(
        self, answer_schema: Schema | None = None, absent: Collection[str] = ()
    ) -> RoundValidator:
        """Return the validator of such a round, and of an answer without a round around it. A call
        may have more properties than requested, and its arguments may be an object."""
        answer = self.local("step", answer_schema, absent)
        key = ("round", _key(answer_schema), frozenset(absent))
        if key not in self._validators:
            schema = embed_schema(self._document("tool_round"), "answer", answer.schema)
            schema = change_at(schema, ("properties", "tool_calls"), _relax_calls)
            self._validators[key] = SchemaValidator(
                # Servers add fields to messages with calls and expect them back.
                {**schema, "required": ["tool_calls"], "additionalProperties": True}
            )
        return RoundValidator(self._validators[key], answer)

    def readable(self, call: SchemaName, answer: object) -> Any:
        """Return a valid answer without the properties that only your file asks for."""
        return drop_extras(answer, self._load_packaged(call)) if call in self._own else answer

    def files(self, call: SchemaName) -> dict[str, Path]:
        """Return the schema file of a call, as `schema`; empty for `repair` and
        `tool_arguments`."""
        if call not in NAMES:
            return {}
        return {"schema": self._own.get(call) or _find_packaged_schema(call)}

    def digest(self) -> str:
        """Return the SHA-256 (hex) over the schema files in use."""
        return digest_of_files({call: self.files(call)["schema"] for call in NAMES})

    def digest_call(self, call: CallName) -> str:
        """Return the SHA-256 (hex) over the schema file of one call."""
        return digest_of_files(self.files(call))

    def check(self) -> None:
        """Load every file of your folder. Raises SchemaFileError for the first that is outside the
        strict subset or lacks properties of the packaged file in the same types, with each place.
        """
        for call, path in self._own.items():
            self._check_own(call, path)
            # Made for nothing else than to fail here instead of in a run.
            self.local(call)
            self.wire(call, tools=())

    def _check_own(self, call: SchemaName, path: Path) -> None:
        schema = strip_header(self._document(call))
        packaged = self._load_packaged(call)
        if schema == packaged:
            return
        for place in _PASSED_ON.get(call, ()):
            own = enum_of(schema, place[-1])
            packaged = change_at(packaged, place, partial(_allow, values=own))
        problems = strict_violations(drop_absent(schema, ())) or misfits(schema, packaged)
        if problems:
            raise SchemaFileError(
                "\n".join(f"{path}#{problem.removeprefix('(root)')}" for problem in problems),
                hint="It may allow less than the packaged file, may have other pairs of artefacts "
                "and kinds of issues, and may ask for more; but it must ask for all that "
                f"{_find_packaged_schema(call)} asks for, within OpenAI's strict subset.",
            )

    def _with_answer(
        self, call: SchemaName, schema: JsonObject, answer_schema: Schema | None
    ) -> JsonObject:
        if answer_schema is None:
            return schema
        check_schema(answer_schema, "the answer's schema")
        return embed_schema(schema, ANSWERS[call], answer_schema)

    def _document(self, call: SchemaName) -> JsonObject:
        if call not in self._documents:
            own = self._own.get(call)
            document = read_schema(own) if own else self._read_packaged(call)
            self._documents[call] = self._with_dimensions(call, document)
        return self._documents[call]

    def _load_packaged(self, call: SchemaName) -> JsonObject:
        return strip_header(self._with_dimensions(call, self._read_packaged(call)))

    def _read_packaged(self, call: SchemaName) -> JsonObject:
        """Return a packaged schema, the profile's with every level that the TTL table has."""
        document = _read_packaged_schema(call)
        for name, levels in self._levels.items() if call == "task_profile" else ():
            document = change_at(document, ("properties", name), partial(_one_of, names=levels))
        return document

    def _with_dimensions(self, call: SchemaName, document: JsonObject) -> JsonObject:
        if call != "task_profile" or not self._dimensions:
            return document
        properties = {**document["properties"], **self._dimensions}
        required = [*document["required"], *self._dimensions]
        return {**document, "properties": properties, "required": required}


class RoundValidator(SchemaValidator):
    """Validates an answer of a step that may use tools: as a round if it has `tool_calls`, else as
    the answer itself."""

    def __init__(self, of_round: SchemaValidator, of_answer: SchemaValidator) -> None:
        self.schema = of_round.schema
        self._of_round = of_round
        self._of_answer = of_answer

    def is_valid(self, value: object) -> bool:
        """Whether the schema that applies to the value accepts it."""
        return self._choose(value).is_valid(value)

    def iter_errors(self, value: Any) -> Iterator[ValidationError]:
        """Yield the errors of that schema."""
        return self._choose(value).iter_errors(value)

    def _choose(self, value: object) -> SchemaValidator:
        is_round = isinstance(value, Mapping) and "tool_calls" in value
        return self._of_round if is_round else self._of_answer


def _relax_calls(schema: JsonObject) -> JsonObject:
    call = schema["items"]
    arguments = {"type": ["string", "object"]}
    properties = {**call["properties"], "arguments": arguments}
    relaxed = {**call, "properties": properties, "additionalProperties": True}
    return {"anyOf": [{**schema, "items": relaxed}, {"type": "null"}]}


def _find_own_schemas(directory: Path) -> dict[SchemaName, Path]:
    own = _own_schemas(directory)
    if own:
        return own
    meant = find_meant(directory, "schemas", lambda place: bool(_own_schemas(place)))
    copied = "`aeon init DIR` copies the packaged schemas to DIR/schemas."
    raise SchemaFileError(
        f"schemas.dir={directory}: it contains no schema of a call "
        f"({', '.join(f'{c}.json' for c in CALLS)})",
        hint=f"Did you mean schemas.dir={meant}?" if meant else copied,
    )


def _own_schemas(directory: Path) -> dict[SchemaName, Path]:
    paths = {call: directory / f"{call}.json" for call in NAMES}
    return {call: path for call, path in paths.items() if path.is_file()}


@cache
def load_packaged_schemas() -> SchemaLibrary:
    """Return the packaged schemas, created once per process."""
    return SchemaLibrary()


def read_schema(path: Path) -> JsonObject:
    """Read and check a file with the schema of an object: Draft 2020-12, each reference within the
    file. Raises SchemaFileError."""
    schema = _read_json(path)
    check_schema(schema, str(path))
    if schema.get("type") != "object":
        raise SchemaFileError(f'{path}#/type: must be "object": the answer to a call is an object')
    return dict(schema)


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_file(path).decode("utf-8"))
    except json.JSONDecodeError as error:
        raise SchemaFileError(
            f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        problem = f"{path}: cannot be read"
        raise_shortage(problem, error)
        raise SchemaFileError(f"{problem}: {error}") from error


@cache
def _read_packaged_schema(call: SchemaName) -> JsonObject:
    # Not checked as a person's own is: that is done before it is released.
    return dict(_read_json(_find_packaged_schema(call)))


def _find_packaged_schema(call: SchemaName) -> Path:
    if call not in NAMES:
        raise SchemaFileError(f"no schema belongs to {call!r}; there are: {', '.join(NAMES)}")
    return resource_root() / "schemas" / f"{call}.json"


def _with_tools(part: JsonObject, tools: Sequence[str]) -> JsonObject:
    properties = part.get("properties")
    if not isinstance(properties, dict) or "tool" not in properties:
        return part
    described = {key: text for key, text in properties["tool"].items() if key == "description"}
    tool = {"anyOf": [{"type": "string", "enum": list(tools)}, {"type": "null"}], **described}
    return {**part, "properties": {**properties, "tool": tool if tools else {"type": "null"}}}


def _one_of(schema: JsonObject, names: Iterable[str]) -> JsonObject:
    described = {key: text for key, text in schema.items() if key == "description"}
    return {"type": "string", "enum": list(names), **described}


def _allow(schema: JsonObject, values: Iterable[Any]) -> JsonObject:
    return {**schema, "enum": list(dict.fromkeys((*schema["enum"], *values)))}


def _key(schema: Schema | None) -> str | None:
    # A model writes properties in the schema's order, so the order is part of the key.
    return None if schema is None else json.dumps(schema)
