"""`run.json`: where a run comes from, written before its first call, so that the run can be composed again.

A leaf of values: reading it needs neither Hydra nor the settings.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Address, Value
from aeon.files.explain import first_mistake

FORMAT: Literal["aeon.run/1"] = "aeon.run/1"
FILE = "run.json"


class ProviderOrigin(Value):
    """The provider as it was resolved: `auto` is never one. `api_key_env` names the variable that held its key."""

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
    """Where a run comes from; docs/resume.md says what each key of `run.json` is.

    `overrides` is None when the settings were made in a program, and cannot be composed again."""

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
        return tuple(
            key for key, file in self.files.items() if digest_of(Path(file.path)) != file.sha256
        )


def digest_of(path: Path) -> str | None:
    """SHA-256, hex, of a file's bytes; None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def read(directory: Path, key: str = "resume") -> Origin:
    """The origin of the run in a directory that `key` names. Raises ConfigError."""
    named = f"{key}={directory}"
    try:
        text = (directory / FILE).read_bytes()
    except OSError as error:
        runs = sorted(directory.glob(f"*/{FILE}"))
        hint = (
            f"Did you mean {key}={runs[-1].parent}?"
            if runs
            else "Runs are under outputs/, those of sweeps in jobs."
        )
        if key == "resume" and (directory / "multirun.yaml").is_file():
            hint = f"A multirun goes on with sweep.resume={directory}. {hint}"
        problem = (
            f"{named}: this is no run's directory: {FILE} cannot be read: {error.strerror or error}"
        )
        raise ConfigError(problem, hint=hint) from None
    return parse(text, f"{named}: {FILE}")


def parse(values: Any, where: str) -> Origin:
    """The origin in JSON text or values; `where` they stand, for the message. Raises ConfigError."""
    try:
        return (Origin.model_validate_json if isinstance(values, bytes) else Origin.model_validate)(
            values
        )
    except pydantic.ValidationError as error:
        hint = "Another version of Aeon may have written it: `versions` in it says which."
        raise ConfigError(f"{where}: {first_mistake(error)}", hint=hint) from None
