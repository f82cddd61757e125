"""Loads settings, task and inputs from a composed configuration."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel
from pydantic import ValidationError as PydanticError

from aeon.config import recording
from aeon.config.compose import compose as config_compose
from aeon.config.compose.composed import Composed
from aeon.config.compose.literal import Composition, quote_override
from aeon.config.compose.problems import settings_error
from aeon.config.origin import Origin
from aeon.config.settings import Settings
from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.errors import ConfigError, SchemaFileError, TaskTextError
from aeon.domain.request import InputFile
from aeon.domain.values import JsonObject
from aeon.files.explain import first_mistake
from aeon.files.located_yaml import LocatedYaml
from aeon.files.pinned import read_named
from aeon.files.text import decode_utf8, load_json, require_unicode
from aeon.memory.settings import MemorySettings
from aeon.store.settings import CASSETTE_SUFFIX


def compose(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Settings:
    """Compose the packaged configuration with overrides, written as on the command line, and
    validate it whole.

    `config_dir`, the user's own folder, takes precedence. Raises ConfigError, with every problem
    found.
    """
    return compose_settings(composition(overrides, config_dir))


def composition(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Composition:
    """Return the composition that `compose` uses: the overrides, after those of a run that they
    name. Raises ConfigError."""
    folder = Path(config_dir).expanduser().resolve() if config_dir else None
    return recording.composition(
        Composition(overrides=tuple(map(quote_override, overrides)), config_dir=folder)
    )


def compose_settings(of: Composition) -> Settings:
    """Return the settings of a composition. Raises ConfigError."""
    return settings_from(config_compose.compose(of))


def settings_from(composed: Composed, groups: Sequence[str] = ()) -> Settings:
    """Validate a composed configuration whole, or these groups of it; files of criteria, of memory
    and of the answer's schema are read. Raises ConfigError with every problem found, or
    SchemaFileError."""
    try:
        # Each group by itself: Hydra's own part refers to a job that may not run.
        cfg = composed.values
        names = groups or [str(name) for name in cfg if name != "hydra"]
        values = {name: _plain(cfg[name]) for name in names}
    except OmegaConfBaseException as error:
        raise ConfigError(
            f"{error.full_key or 'configuration'}: {str(error.msg or error).splitlines()[0]}"
        ) from None
    try:
        settings = Settings.model_validate(values)
    except PydanticError as error:
        raise settings_error(error, Settings, values) from None
    # pydantic takes true for 1.
    if mistaken := list(_truths_as_numbers(values, settings.model_dump(by_alias=True))):
        raise ConfigError(f"{', '.join(mistaken)}: must be a number, not true or false")
    return _read_named_files(settings)


def _read_named_files(settings: Settings) -> Settings:
    """Return the settings with the content of their files of criteria, of memory and of the
    answer's schema."""
    convergence = settings.convergence
    answer = settings.answer
    memory = settings.memory
    if convergence.criteria_file is not None:
        read = _read_values(
            convergence.criteria_file, ConvergenceSettings, "criteria", "convergence.criteria_file"
        )
        convergence = convergence.model_copy(update={"criteria": {**read, **convergence.criteria}})
    if answer.schema_file is not None:
        answer = answer.model_copy(update={"json_schema": _read_json_schema(answer.schema_file)})
    if memory.entries_file is not None:
        read = _read_values(memory.entries_file, MemorySettings, "entries", "memory.entries_file")
        memory = memory.model_copy(update={"entries": {**read, **memory.entries}})
    return settings.model_copy(
        update={"convergence": convergence, "answer": answer, "memory": memory}
    )


def _truths_as_numbers(given: object, taken: object, *names: str) -> Iterator[str]:
    if isinstance(given, dict) and isinstance(taken, dict):
        for name in given:
            yield from _truths_as_numbers(given[name], taken.get(name), *names, str(name))
    elif isinstance(given, bool) and type(taken) in (int, float):
        yield ".".join(names)


def _plain(value: object) -> Any:
    return (
        OmegaConf.to_container(value, resolve=True, throw_on_missing=True)
        if OmegaConf.is_config(value)
        else value
    )


def _read_values(path: Path, model: type[BaseModel], field: str, key: str) -> JsonObject:
    try:
        return dict(getattr(model.model_validate({field: LocatedYaml(path).value}), field))
    except PydanticError as error:
        raise ConfigError(f"{key} {path}: {first_mistake(error)}") from None


def _read_json_schema(path: Path) -> JsonObject:
    from aeon.schema.validators import check_schema  # takes time, and few runs have a schema

    try:
        schema = load_json(_read_text(path, "answer.schema"))
    except json.JSONDecodeError as error:
        raise SchemaFileError(
            f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}"
        ) from None
    except ValueError as error:
        raise SchemaFileError(f"{path}: {error}") from None
    if not isinstance(schema, dict):
        raise SchemaFileError(
            f"{path}: a JSON Schema for an answer is an object, this is {type(schema).__name__}"
        )
    check_schema(schema, str(path))
    return schema


def read_task(settings: Settings, recorded: Origin | None = None) -> str | None:
    """Return the task's text, byte for byte, from `task` or `task_file`, else that of the
    `recorded` run; None where none of them has it. Raises TaskTextError when it is empty or not
    valid UTF-8, else ConfigError."""
    task = settings.task
    file = settings.task_file
    if task is not None and file is not None:
        raise ConfigError("task and task_file are both given", hint="Give one of them.")
    if task is not None:
        text = require_unicode(task, "task")
    elif file is not None:
        text = _read_text(file, "task_file")
    elif recorded is not None and not _says_task_anew(settings.plan_file, recorded):
        return recorded.task
    else:
        return None
    if not text.strip():
        raise TaskTextError("the task is empty", hint="Say in plain words what you want done.")
    return text


def require_task(settings: Settings) -> None:
    """Raise ConfigError for settings that name no task, unless they name a `plan_file`."""
    if settings.plan_file is not None:
        return
    if settings.store.mode == "replay":
        from aeon.store.opening import check_store  # takes time, and only a replay needs it

        check_store(settings.store)  # the recording that should have the task is missing
    hint = 'Say what to do: task="..." (or task_file=..., or task=-)'
    raise ConfigError("no task is given", hint=hint)


def _says_task_anew(plan_file: Path | None, recorded: Origin) -> bool:
    before = recorded.files.get("plan_file")
    same = (
        before is not None
        and plan_file is not None
        and plan_file.expanduser().absolute() == Path(before.path)
    )
    return recorded.task_in_plan and plan_file is not None and not same


def read_inputs(settings: Settings, recorded: Origin | None = None) -> dict[str, str | InputFile]:
    """Return the inputs of `inputs` and `input_files`, by name, added to those of the `recorded`
    run: texts, and files for the model. Raises TaskTextError for text that is not valid UTF-8, else
    ConfigError."""
    if both := sorted(settings.inputs.keys() & settings.input_files.keys()):
        raise ConfigError(f"given both as inputs and as input_files: {', '.join(both)}")
    if unnamed := sorted(settings.input_as.keys() - settings.input_files.keys()):
        raise ConfigError(
            f"input_as.{unnamed[0]}={settings.input_as[unnamed[0]]}: there is no such file",
            hint=f"Give it too: input_files.{unnamed[0]}=path",
        )
    texts = {
        name: require_unicode(text, f"inputs.{name}") for name, text in settings.inputs.items()
    }
    given = {**texts, **_read_files(settings)}
    if recorded is None:
        return given
    return {**recorded.inputs, **_find_recorded_files(settings, recorded, given.keys()), **given}


def _read_files(settings: Settings) -> dict[str, str | InputFile]:
    if not settings.input_files:
        return {}
    from aeon.files.inputs.reading import ReadingLimits, read_input  # few runs have files

    limits = ReadingLimits(settings.input_max_bytes, settings.input_max_characters)
    return {
        name: read_input(name, path, limits, as_text=name in settings.input_as)
        for name, path in settings.input_files.items()
    }


def _find_recorded_files(
    settings: Settings, recorded: Origin, given: Collection[str]
) -> dict[str, InputFile]:
    """Return the recorded run's input files, except those whose names are given anew."""
    names = [name for name in recorded.input_files if name not in given]
    if not names:
        return {}
    from aeon.files.inputs.stored import find_stored

    replayed = settings.store.mode == "replay"
    place = settings.resume or settings.store.path
    recording = place.expanduser() if isinstance(place, Path) else None
    packed = _read_packed_files(recording)
    return {
        name: find_stored(
            recording, file.as_input(), packed=packed.get(file.sha256, ""), may_be_gone=replayed
        )
        for name in names
        if (file := recorded.input_files[name])
    }


def _read_packed_files(recording: Path | None) -> Mapping[str, str]:
    """Return the files inside a cassette, in base64, by their hashes."""
    if recording is None or recording.suffix != CASSETTE_SUFFIX:
        return {}
    from aeon.store.cassette import read

    return read(recording).files


def _read_text(path: Path, key: str) -> str:
    try:
        return decode_utf8(read_named(path), f"{key} {path}")
    except OSError as error:
        raise ConfigError(f"{key}={path}: cannot be read: {error.strerror or error}") from None


def find_recorded_origin(settings: Settings) -> Origin | None:
    """Return the origin of the run whose answers are reused, if there is one. Raises ConfigError,
    also for a run that this person has not made and does not trust."""
    if settings.resume:
        return recording.read_trusted(settings.resume, "resume", settings.trust, settings.env)
    store = settings.store
    if store.mode != "replay" or not isinstance(store.path, Path):
        return None
    return recording.read_recorded_origin(store.path, settings.trust, settings.env)
