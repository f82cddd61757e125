"""`run.json`: where a run comes from, written before its first call, so that the run can be composed again.

A leaf of values: reading it needs neither Hydra nor the settings.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Address, Value
from aeon.files.explain import first_mistake
from aeon.files.located_yaml import LocatedYaml

FORMAT: Literal["aeon.run/1"] = "aeon.run/1"
FILE = "run.json"


class Composition(Value):
    """What a configuration is composed from.

    `overrides` are Hydra's, free text quoted; `config_dir` is a folder of one's own configuration, None when there is
    none; `config_name` is the primary file without its suffix.
    """

    overrides: tuple[str, ...] = ()
    config_dir: Path | None = None
    config_name: str = "config"


class ProviderOrigin(Value):
    """The provider as it was resolved: `auto` is never one. `api_key_env` names the variable that held its key,
    `adapter` the class of an adapter of one's own."""

    kind: str
    model: str = ""
    base_url: Address | None = None
    api_key_env: str | None = None
    adapter: str | None = None


class ParentOrigin(Value):
    """What a run was resumed from: its directory, absolute, and the id of the run in it."""

    path: str
    run_id: str


class FileOrigin(Value):
    """A file that the configuration named: where it was, absolute, and the SHA-256, hex, of what was in it."""

    path: str
    sha256: str


class Origin(Value):
    """Where a run comes from; what `run.json` holds.

    `directory` is the run's own, absolute; `parent` the run that it resumes, and `ancestors` those that the parent
    stands on in turn, nearest first.
    `task`, `inputs` and `context` are what the run was given, as text and JSON, whatever file or stream they came
    from; `task_in_plan` says that the task stood in the plan file. `overrides` are Hydra's, without those and without
    Hydra's own but the search path; None when the settings were made in a program, and cannot be composed again.
    `paths` are the relative paths among the settings, by key, made absolute. `files` are, by key, the files that
    decide what is asked; `hashes` those of prompts, schemas and configuration. `started` is ISO 8601, UTC.
    """

    format: Literal["aeon.run/1"] = FORMAT
    run_id: str
    directory: str | None = None
    parent: ParentOrigin | None = None
    ancestors: tuple[ParentOrigin, ...] = ()
    overrides: tuple[str, ...] | None
    config_dir: str | None = None
    config_name: str = "config"
    task: str
    task_in_plan: bool = False
    inputs: dict[str, str] = Field(default_factory=dict)
    context: dict[str, Any] | None = None
    provider: ProviderOrigin
    synthetic: bool
    store_mode: str
    working_directory: str
    paths: dict[str, str] = Field(default_factory=dict)
    files: dict[str, FileOrigin] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    started: str

    def changed_files(self) -> tuple[str, ...]:
        """The keys of the files that are gone or no longer hold what they held."""
        return tuple(key for key, file in self.files.items() if digest_of(Path(file.path)) != file.sha256)


def digest_of(path: Path) -> str | None:
    """SHA-256, hex, of a file's bytes; None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def read(directory: Path, key: str = "resume") -> Origin:
    """The origin of the run in a directory; `key` is what named the directory, for the message.

    Raises ConfigError that says what the directory is, when it is no run's, and what to do.
    """
    named = f"{key}={directory}"
    if not directory.is_dir():
        raise ConfigError(f"{named}: {_no_directory(directory)}", hint=f"Give a run's directory: {key}=outputs/...")
    path = directory / FILE
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise _no_run(directory, named, key) from None
    except OSError as error:
        raise ConfigError(f"{named}: {FILE} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{named}: {FILE} is not JSON: {error}") from None
    return parse(values, f"{named}: {FILE}")


def parse(values: Any, where: str) -> Origin:
    """The origin in JSON values; `where` they stand, for the message. Raises ConfigError for another format."""
    found = values.get("format") if isinstance(values, dict) else None
    if found != FORMAT:
        raise ConfigError(
            f"{where} is of the format {found!r}, this version of Aeon reads {FORMAT!r}", hint=_version_hint(values)
        )
    try:
        return Origin.model_validate(values)
    except pydantic.ValidationError as error:
        raise ConfigError(f"{where}: {first_mistake(error)}", hint=_version_hint(values)) from None


def _version_hint(values: Any) -> str:
    versions = values.get("versions") if isinstance(values, dict) else None
    wrote = versions.get("aeon-engine") if isinstance(versions, dict) else None
    return f"It was written by aeon-engine {wrote}: resume it with that version." if wrote else ""


def _start_again(directory: Path) -> str:
    """What to do with a job that was killed before it began; Hydra has written what it was to be."""
    try:
        overrides = LocatedYaml(directory / ".hydra" / "overrides.yaml").value
    except ConfigError:
        overrides = None
    texts = map(str, overrides) if isinstance(overrides, list) else ()
    resumed = [text for text in texts if text.startswith("resume=")]
    return f"Nothing had been asked; start it again{f' with {resumed[-1]}' if resumed else ''}."


def _no_directory(path: Path) -> str:
    return "this is a file, not a run's directory" if path.exists() else "there is no such directory"


def _no_run(directory: Path, named: str, key: str) -> ConfigError:
    """What a directory without `run.json` is, and what to do."""
    if (directory / "multirun.yaml").exists():
        jobs = sorted(str(found.parent) for found in directory.glob(f"*/{FILE}"))
        which = f"Take one of its jobs: {key}={jobs[0]}" if jobs else "None of its jobs has begun: start it again."
        return ConfigError(f"{named}: this is a multirun, and each of its jobs is a run", hint=which)
    if (directory / "result.json").exists():
        return ConfigError(f"{named}: this run has no {FILE}, which runs of older versions did not write")
    if (directory / ".hydra").is_dir():
        return ConfigError(
            f"{named}: this run ended before it had begun: there is no {FILE} in it", hint=_start_again(directory)
        )
    runs = sorted((found.parent for found in directory.glob(f"*/{FILE}")), key=str)
    hint = f"Did you mean {key}={runs[-1]}?" if runs else f"A run's directory holds {FILE}; runs are under outputs/."
    return ConfigError(f"{named}: this is no run's directory", hint=hint)
