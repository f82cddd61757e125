"""`run.json`: the origin of a run, written before its first call, so that it can be resumed.

A leaf of values: reading it needs neither Hydra nor the settings.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import pydantic
from pydantic import Field, JsonValue

from aeon.config.own_runs import SEAL, is_own, make_seal
from aeon.domain.checks import OuterCheck
from aeon.domain.errors import ConfigError
from aeon.domain.request import FileForm, InputFile
from aeon.domain.values import Address, JsonObject, Value
from aeon.files.explain import first_mistake
from aeon.files.secret_forms import mask
from aeon.files.text import create_like_folder, encode_json, read_regular_file

FORMAT: Literal["aeon.run/2"] = "aeon.run/2"
EARLIER = "aeon.run/1"
"""The previous format, which had the overrides in place of the settings."""
FILE = "run.json"
_MOST_BYTES = 256 * 2**20


class ProviderOrigin(Value):
    """The provider after resolution, never `auto`. `api_key_env` names the variable that held its
    key."""

    kind: str
    model: str = ""
    base_url: Address | None = None
    api_key_env: str | None = None
    adapter: str | None = None


class ParentOrigin(Value):
    """The run that this one was resumed from: its directory, absolute, and its id."""

    path: str
    run_id: str


class FileOrigin(Value):
    """A file that the configuration named: its path, absolute, and the SHA-256, hex, of its
    content."""

    path: str
    sha256: str


class RecordedFile(Value):
    """A file that the model got as an input: its bytes are in the folder `files` of the run, under
    their SHA-256, hex."""

    name: str
    form: FileForm
    media_type: str = Field(pattern=r"^(image/(png|jpeg|webp)|application/pdf|audio/wav)$")
    size: int = Field(ge=0)
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")

    def as_input(self) -> InputFile:
        """Return the file without its content."""
        return InputFile(self.name, self.form, self.media_type, self.size, self.sha256)


class Origin(Value):
    """The origin of a run; docs/resume.md explains each key of `run.json`.

    `settings` are those that it was composed with, before its provider was settled, and `missing`
    names those that were set but are not among them, because they held a secret or, in a cassette,
    may not come from others. `overrides` are the typed ones, None for settings made in a program:
    they are only shown, except that those that read a secret from the environment are composed
    again. `choices` are those of them that no project file set, None where that is not known.
    `checks` are those of the dataset row that it ran for; `answer` is the answer that it only
    judged.
    """

    format: Literal["aeon.run/2"] = FORMAT
    run_id: str
    directory: str | None = None
    parent: ParentOrigin | None = None
    ancestors: tuple[ParentOrigin, ...] = ()
    overrides: tuple[str, ...] | None = None
    choices: tuple[str, ...] | None = None
    settings: JsonObject
    missing: tuple[str, ...] = ()
    config_dir: str | None = None
    config_name: str = "config"
    task: str
    task_in_plan: bool = False
    inputs: dict[str, str] = Field(default_factory=dict)
    input_files: dict[str, RecordedFile] = Field(default_factory=dict)
    context: JsonObject | None = None
    checks: dict[str, OuterCheck] = Field(default_factory=dict)
    answer: str | None = None
    provider: ProviderOrigin
    synthetic: bool
    store_mode: str
    working_directory: str
    files: dict[str, FileOrigin] = Field(default_factory=dict)
    components: dict[str, JsonValue] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    started: str
    seal: str | None = None

    def find_changed_files(self) -> tuple[str, ...]:
        """Return the keys of the files that are gone or have changed."""
        return tuple(
            key for key, file in self.files.items() if digest_of(Path(file.path)) != file.sha256
        )


def digest_of(path: Path) -> str | None:
    """Return SHA-256, hex, of a file's bytes; None when it cannot be read."""
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None


def read(directory: Path, key: str = "resume") -> Origin:
    """Read the origin of the run in a directory that `key` names, whoever made it: its content may
    only be used as data. Raises ConfigError."""
    return parse(read_bytes(directory, key), f"{key}={directory}: {FILE}")


def is_own_run(directory: Path) -> bool:
    """Check whether the person has made the run in a directory."""
    try:
        document = json.loads(read_bytes(directory, "run"))
    except (ConfigError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and is_own(document, document.get(SEAL))


def write_sealed(path: Path, recorded: Value) -> None:
    """Write the origin of a run or a multirun, sealed as the person's own if they have a state
    folder. Raises OSError."""
    content = seal_again(encode_json(recorded.model_dump(mode="json")))
    with open(path, "wb", opener=create_like_folder) as file:
        # Resuming needs it unmasked, with the values that other files mask.
        if mask(content) != content:
            path.chmod(0o600)
        file.write(content)


def seal_again(content: bytes) -> bytes:
    """Return the content of a `run.json`, sealed as the person's own on this machine."""
    document = json.loads(content)
    return encode_json({**document, SEAL: make_seal(document)}, indent=2) + b"\n"


def read_bytes(directory: Path, key: str) -> bytes:
    """Return the unchecked content of the `run.json` of a directory that `key` names. Raises
    ConfigError."""
    try:
        data = read_regular_file((directory / FILE).resolve(), _MOST_BYTES)
        if len(data) > _MOST_BYTES:
            raise OSError(None, f"it has more than {_MOST_BYTES // 2**20} MB")
        return data
    except OSError as error:
        runs = sorted(directory.glob(f"*/{FILE}"))
        hint = (
            f"Did you mean {key}={runs[-1].parent}?"
            if runs
            else "Runs are under outputs/, those of sweeps under multirun/; `aeon runs` lists them."
        )
        if key == "resume" and (directory / "multirun.yaml").is_file():
            hint = f"Resume a multirun with sweep.resume={directory}. {hint}"
        problem = (
            f"{key}={directory}: this is not a run's directory: {FILE} cannot be read: "
            f"{error.strerror or error}"
        )
        raise ConfigError(problem, hint=hint) from None


def parse(values: Any, where: str) -> Origin:
    """Parse the origin in JSON text or values; the error message names the place `where`. Raises
    ConfigError."""
    validate = Origin.model_validate_json if isinstance(values, bytes) else Origin.model_validate
    try:
        return validate(values)
    except pydantic.ValidationError as error:
        if any(one["loc"] == ("format",) and one["input"] == EARLIER for one in error.errors()):
            raise ConfigError(
                f"{where}: it has the format {EARLIER}, which has no settings to resume with",
                hint="Start the run again with its own arguments (`task` and "
                "`overrides` in run.json) and store.mode=cache store.path=COPY, a "
                "copy of its store.sqlite: its answers are reused, at no cost.",
            ) from None
        hint = "Another version of Aeon may have written it: see `versions` in it."
        raise ConfigError(f"{where}: {first_mistake(error)}", hint=hint) from None
