"""What the model must return for each call: the schema files, their wire form, their validators.

The file is the contract. On the wire it goes without `$schema` and `$id`, with the names of the tools and of the custom
criteria as enums, and with a person's own schema in its place; locally it is validated as it is in the file. A person's
file must ask for all that the packaged one asks for (`aeon.schema.fit`); what it asks for beyond that is asked of the
model and dropped before the answer is read.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, get_args

from aeon.domain.errors import SchemaFileError
from aeon.domain.request import CallName
from aeon.files.resources import digest_of_files, find_meant, resource_root
from aeon.schema.edits import change_at, drop_absent, embed_schema, relax_absent, strip_header
from aeon.schema.fit import drop_extras, extras, misfits, relax_extras
from aeon.schema.json_schema import rebuild
from aeon.schema.strict import strict_violations
from aeon.schema.validators import SchemaValidator, check_schema, compile_schema, is_draft_2020

__all__ = ["ANSWER", "CALLS", "SchemaLibrary", "WireSchema", "packaged_schemas", "read_schema", "strict_violations"]

Schema = Mapping[str, Any]

# The calls that have a file: a repair has the schema of the call it repairs, a tool's arguments have the tool's own.
CALLS: tuple[CallName, ...] = tuple(call for call in get_args(CallName) if call not in ("repair", "tool_arguments"))
SchemaName = CallName | Literal["tool_choice"]
# A repaired step is asked for by a file of its own.
NAMES: tuple[SchemaName, ...] = (*CALLS, "tool_choice")
# The property of a step's answer whose place a person's schema takes.
ANSWER = "step_output"
_TOOLS_SCHEMA = "the tool's input schema"
# Where the answer to `convergence` names a custom criterion.
_CRITERION = ("properties", "criteria", "items", "properties", "name")


@dataclass(frozen=True, slots=True)
class WireSchema:
    """A schema as it goes to the provider, and whether it is within the strict subset. Not to be changed."""

    schema: dict[str, Any]
    strict: bool


class SchemaLibrary:
    """The schema files with their wire forms and validators, each read and made once, when it is needed; thread-safe.

    `directory` is a person's folder of `<call>.json` files, looked in before the packaged one (`schemas.dir`).
    `levels` are all that a property of the task's profile may be, where a person's file names levels of its own;
    `dimensions` the schemas of properties that the profile has beside those of its file.
    Raises SchemaFileError when it does not exist, and for a file that is missing, no JSON or no schema, with its place.
    """

    def __init__(
        self,
        directory: Path | None = None,
        levels: Mapping[str, Collection[str]] | None = None,
        dimensions: Mapping[str, Schema] | None = None,
    ) -> None:
        if directory is not None and not directory.is_dir():
            raise SchemaFileError(f"there is no schemas folder {directory}", hint="Set schemas.dir to one that exists.")
        if directory is not None and not _holds_schemas(directory):
            raise _no_schemas_error(directory)
        self._folders = tuple(f for f in (directory, resource_root() / "schemas") if f is not None)
        self._levels, self._dimensions = levels or {}, dimensions or {}
        self._documents: dict[SchemaName, dict[str, Any]] = {}
        self._wires: dict[tuple[object, ...], WireSchema] = {}
        self._validators: dict[tuple[object, ...], SchemaValidator] = {}
        self._extras: dict[SchemaName, dict[str, frozenset[str]]] = {}

    def wire(
        self,
        call: SchemaName,
        *,
        tools: Sequence[str] | None = None,
        criteria: Sequence[str] = (),
        answer_schema: Mapping[str, Any] | None = None,
        absent: Collection[str] = (),
    ) -> WireSchema:
        """The schema as sent. `tools`: the only names a property `tool` may take beside null; None leaves it open.
        `criteria`: the only names an entry of `convergence`'s `criteria` may have; without any, all are allowed.

        `answer_schema` takes the place of a step's `step_output`, where null stays allowed if the file allows it; for
        `tool_arguments` it is the tool's input schema, and the whole. `strict` is False for what is outside OpenAI's
        strict subset. `absent` is what the call has nothing of: a property with the comment "only with NAME" and a text
        NAME of an enum are left out.
        """
        names = None if tools is None else tuple(tools)
        key = (call, names, tuple(criteria), _key(answer_schema), frozenset(absent))
        if key not in self._wires:
            self._wires[key] = self._make_wire(call, tools, criteria, answer_schema, absent)
        return self._wires[key]

    def _make_wire(
        self,
        call: SchemaName,
        tools: Sequence[str] | None,
        criteria: Sequence[str],
        answer_schema: Schema | None,
        absent: Collection[str],
    ) -> WireSchema:
        if call == "tool_arguments" and answer_schema is not None:
            compile_schema(answer_schema, _TOOLS_SCHEMA)
            # One that is not of 2020-12 says which draft it is of, and never goes strict.
            if not is_draft_2020(answer_schema):
                return WireSchema(dict(answer_schema), strict=False)
            schema = strip_header(answer_schema)
        else:
            schema = strip_header(self._full(call, tools, answer_schema, absent))
        if criteria:
            schema = change_at(schema, _CRITERION, lambda name: _one_of(name, criteria))
        return WireSchema(schema, not strict_violations(schema))

    def local(
        self, call: SchemaName, answer_schema: Mapping[str, Any] | None = None, absent: Collection[str] = ()
    ) -> SchemaValidator:
        """The validator of the file's own form, made once, with `answer_schema` as in `wire()`.

        What only a person's file asks for may be missing, and may be anything; what is there only with something absent
        may be missing. For `tool_arguments` it is of the draft of the tool's schema (`aeon.schema.validators`).
        """
        key = (call, _key(answer_schema), frozenset(absent))
        if call == "tool_arguments" and answer_schema is not None and key not in self._validators:
            self._validators[key] = compile_schema(answer_schema, _TOOLS_SCHEMA)
        if key not in self._validators:
            schema, extra = relax_absent(self._full(call, None, answer_schema), absent), self._extra(call)
            self._validators[key] = SchemaValidator(relax_extras(schema, extra) if extra else schema)
        return self._validators[key]

    def readable(self, call: SchemaName, answer: Any) -> Any:
        """A valid answer without what only a person's file asks for."""
        return drop_extras(answer, self._with_dimensions(call, _packaged(call))) if self._extra(call) else answer

    def validator(self, schema: Mapping[str, Any]) -> SchemaValidator:
        """The validator of any schema, made once. Raises SchemaFileError when it is not one."""
        key = (_key(schema),)
        if key not in self._validators:
            check_schema(schema, "the schema")
            self._validators[key] = SchemaValidator(schema)
        return self._validators[key]

    def files(self, call: SchemaName) -> dict[str, Path]:
        """The file the schema of a call comes from, as `schema`; nothing for `repair` and `tool_arguments`."""
        return {} if call in ("repair", "tool_arguments") else {"schema": self._path(call)}

    def digest(self) -> str:
        """SHA-256, hex, over the schema files in force."""
        return digest_of_files({call: self._path(call) for call in NAMES})

    def check(self) -> None:
        """Load every file of the person's folder. Raises SchemaFileError for the first that cannot be used.

        A file that differs from the packaged one must be within the strict subset and have, at every place, all the
        properties of the packaged one in the same types; every place where it has not is named by its JSON pointer.
        """
        for call in NAMES:
            if self._path(call).parent != self._folders[-1]:
                self._check_fit(call)
                self.local(call)
                self.wire(call, tools=())

    def _check_fit(self, call: SchemaName) -> None:
        schema, packaged = strip_header(self._document(call)), self._with_dimensions(call, _packaged(call))
        if schema == packaged:
            return
        if call == "task_profile":
            packaged = self._with_levels(packaged)
        problems = strict_violations(drop_absent(schema, ())) or misfits(schema, packaged)
        if problems:
            path = self._path(call)
            raise SchemaFileError(
                "\n".join(f"{path}#{problem.removeprefix('(root)')}" for problem in problems),
                hint="It may allow less than the packaged file, and may ask for more, but it must ask for all that "
                f"{resource_root() / 'schemas' / path.name} asks for, within OpenAI's strict subset.",
            )

    def _with_dimensions(self, call: SchemaName, document: dict[str, Any]) -> dict[str, Any]:
        if call != "task_profile" or not self._dimensions:
            return document
        properties = {**document["properties"], **self._dimensions}
        return {**document, "properties": properties, "required": [*document["required"], *self._dimensions]}

    def _with_levels(self, profile: dict[str, Any]) -> dict[str, Any]:
        for name, levels in self._levels.items():
            profile = change_at(profile, ("properties", name), partial(_one_of, names=levels))
        return profile

    def _extra(self, call: SchemaName) -> dict[str, frozenset[str]]:
        if call not in NAMES:
            return {}
        if call not in self._extras:
            schema, packaged = strip_header(self._document(call)), self._with_dimensions(call, _packaged(call))
            self._extras[call] = {} if schema == packaged else extras(schema, packaged)
        return self._extras[call]

    def _full(
        self,
        call: SchemaName,
        tools: Sequence[str] | None,
        answer_schema: Mapping[str, Any] | None,
        absent: Collection[str] | None = None,
    ) -> dict[str, Any]:
        schema = self._document(call)
        if absent is not None:
            schema = drop_absent(schema, absent)
        if tools is not None:
            schema = _with_tools(schema, tuple(tools))
        return schema if answer_schema is None else embed_schema(schema, ANSWER, answer_schema)

    def _path(self, call: SchemaName) -> Path:
        if call not in NAMES:
            near = difflib.get_close_matches(call, NAMES, n=1)
            raise SchemaFileError(f"no schema belongs to {call!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        for folder in self._folders:
            if (folder / f"{call}.json").is_file():
                return folder / f"{call}.json"
        places = ", ".join(map(str, self._folders))
        raise SchemaFileError(f"there is no schema {call}.json: looked in {places}")

    def _document(self, call: SchemaName) -> dict[str, Any]:
        if call not in self._documents:
            path = self._path(call)
            packaged = self is not packaged_schemas() and path == packaged_schemas()._path(call)
            document = packaged_schemas()._document(call) if packaged else read_schema(path)
            document = self._with_dimensions(call, document)
            if document.get("type") != "object":
                raise SchemaFileError(f'{path}#/type: must be "object": the answer to a call is an object')
            self._documents[call] = document
        return self._documents[call]


@cache
def _packaged(call: SchemaName) -> dict[str, Any]:
    return strip_header(packaged_schemas()._document(call))


@cache
def packaged_schemas() -> SchemaLibrary:
    """The packaged schemas, made once per process."""
    return SchemaLibrary()


def _holds_schemas(folder: Path) -> bool:
    return any((folder / f"{call}.json").is_file() for call in CALLS)


def _no_schemas_error(directory: Path) -> SchemaFileError:
    meant = find_meant(directory, "schemas", _holds_schemas)
    return SchemaFileError(
        f"schemas.dir={directory}: it holds no schema of a call ({', '.join(f'{call}.json' for call in CALLS)})",
        hint=f"Did you mean schemas.dir={meant}?" if meant else "`aeon init DIR` copies the packaged schemas.",
    )


def read_schema(path: Path) -> dict[str, Any]:
    """A schema file, checked: JSON, a Draft 2020-12 schema, every reference within it; else SchemaFileError."""
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SchemaFileError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SchemaFileError(f"{path}: not valid UTF-8 at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise SchemaFileError(f"{path}:{error.lineno}:{error.colno}: not valid JSON: {error.msg}") from error
    check_schema(schema, str(path))
    return dict(schema)


def _with_tools(schema: dict[str, Any], tools: tuple[str, ...]) -> dict[str, Any]:
    null = {"type": "null"}
    form = {"anyOf": [{"type": "string", "enum": list(tools)}, null]} if tools else null

    def change(part: dict[str, Any]) -> dict[str, Any]:
        properties = part.get("properties")
        if isinstance(properties, dict) and "tool" in properties:
            described = {key: text for key, text in properties["tool"].items() if key == "description"}
            return {**part, "properties": {**properties, "tool": form | described if tools else form}}
        return part

    result: dict[str, Any] = rebuild(schema, change)
    return result


def _one_of(schema: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    described = {"description": schema["description"]} if "description" in schema else {}
    return {"type": "string", "enum": list(names), **described}


def _key(schema: Mapping[str, Any] | None) -> str | None:
    # The order of properties is the order a model writes them in, so it is part of what the schema is.
    return None if schema is None else json.dumps(schema)
