"""The files that a configuration names: task, inputs, criteria, and the answer's schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError as PydanticError

from aeon.domain.assessment import criterion_problem
from aeon.domain.errors import ConfigError, SchemaFileError, TaskTextError
from aeon.files.explain import first_mistake
from aeon.files.located_yaml import LocatedYaml
from aeon.files.text import decode_utf8, require_unicode
from aeon.memory.settings import MemorySettings


def read_task_text(task: str | None, task_file: Path | None) -> str:
    """The task, literally.

    Raises TaskTextError when it is blank or not valid UTF-8, ConfigError for neither, both, or an unreadable file.
    """
    if task is not None and task_file is not None:
        raise ConfigError("task and task_file are both given", hint="Give one of them.")
    if task is not None:
        text = require_unicode(task, "task")
    elif task_file is not None:
        text = _text(task_file, "task_file")
    else:
        hint = 'Say what to do: python -m aeon task="..." (or task_file=..., or task=-)'
        raise ConfigError("no task is given", hint=hint)
    if not text.strip():
        raise TaskTextError("the task is empty", hint="Say in plain words what you want done.")
    return text


def read_input_texts(inputs: Mapping[str, str], input_files: Mapping[str, Path]) -> dict[str, str]:
    """The inputs by name.

    Raises ConfigError for a name in both or an unreadable file, TaskTextError for text that is not valid UTF-8.
    """
    if both := sorted(inputs.keys() & input_files.keys()):
        raise ConfigError(f"given both as inputs and as input_files: {', '.join(both)}")
    texts = {name: require_unicode(text, f"inputs.{name}") for name, text in inputs.items()}
    return texts | {name: _text(path, f"input_files.{name}") for name, path in input_files.items()}


def read_criteria(path: Path) -> dict[str, str]:
    """A YAML or JSON mapping of criterion names to plain words. Raises ConfigError when it is anything else."""
    read = LocatedYaml(path).value
    if not isinstance(read, dict) or not all(isinstance(i, str) and i for pair in read.items() for i in pair):
        raise ConfigError(f"convergence.criteria_file {path}: must map each criterion's name to a text in plain words")
    for name, words in read.items():
        if problem := criterion_problem(name, words):
            raise ConfigError(f"convergence.criteria_file {path}: {problem}")
    return read


def read_entries(settings: MemorySettings) -> MemorySettings:
    """The settings with the entries of their file, a YAML or JSON mapping of keys to JSON values.

    Raises ConfigError when it is anything else.
    """
    if (path := settings.entries_file) is None:
        return settings
    try:
        read = MemorySettings(entries=LocatedYaml(path).value).entries
    except PydanticError as error:
        raise ConfigError(f"memory.entries_file {path}: {first_mistake(error)}") from None
    return settings.model_copy(update={"entries": {**read, **settings.entries}})


def read_json_schema(path: Path) -> dict[str, Any]:
    """The JSON Schema in a file. Raises SchemaFileError naming the line, or the pointer, of what is wrong with it."""
    from aeon.schema.validators import check_schema  # takes time, and few runs have a schema

    try:
        schema = json.loads(_text(path, "answer.schema"))
    except json.JSONDecodeError as error:
        raise SchemaFileError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    if not isinstance(schema, dict):
        raise SchemaFileError(f"{path}: a JSON Schema for an answer is an object, this is {type(schema).__name__}")
    check_schema(schema, str(path))
    return schema


def read_dotenv(path: Path) -> str:
    """The text of a `.env` file. ConfigError names the line that is not UTF-8; never what is in it: it holds keys."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8 text", hint="Convert it to UTF-8.") from None


def _text(path: Path, key: str) -> str:
    try:
        return decode_utf8(path.expanduser().read_bytes(), f"{key} {path}")
    except OSError as error:
        raise ConfigError(f"{key}={path}: cannot be read: {error.strerror or error}") from None
