"""Settings of memory, and opening the memory they describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from aeon.domain.errors import ConfigError
from aeon.domain.values import Taken, Value
from aeon.memory.interface import STEPS
from aeon.memory.run_memory import MAX_CHARACTERS, InMemory

if TYPE_CHECKING:
    from aeon.memory.sqlite import SqliteMemory


class MemorySettings(Value):
    """`memory`: where the memory of runs is stored. `in_memory` lasts as long as the run; `sqlite`
    is the file `path`, in which runs share the part `namespace`; None gives each run its own.
    `entries`, and those of `entries_file`, are written at the start of a run; prompts show
    `max_characters` of keys and values as JSON."""

    kind: Literal["in_memory", "sqlite"] = "in_memory"
    path: Path | None = None
    namespace: str | None = None
    entries: Taken[dict[str, JsonValue]] = Field(default_factory=dict)
    entries_file: Path | None = None
    max_characters: Taken[int] = Field(default=MAX_CHARACTERS, ge=0)

    @field_validator("entries")
    @classmethod
    def _check_keys(cls, entries: dict[str, JsonValue]) -> dict[str, JsonValue]:
        if problems := [problem for key in entries if (problem := key_problem(key))]:
            raise ValueError(problems[0])
        return entries

    @model_validator(mode="after")
    def _check_path(self) -> MemorySettings:
        if self.kind == "sqlite" and self.path is None:
            raise ValueError("memory=sqlite needs memory.path")
        if self.kind == "in_memory" and (self.path is not None or self.namespace is not None):
            raise ValueError("memory.path and memory.namespace are for memory=sqlite")
        return self


def key_problem(key: str) -> str:
    """Return why only the run itself may write a key; empty if anybody may."""
    if not key.strip():
        return "a key of memory is not blank"
    return (
        f"{key!r}: keys that begin with {STEPS!r} are those of the steps' results"
        if key.startswith(STEPS)
        else ""
    )


def open_memory(settings: MemorySettings, run_id: str = "") -> InMemory | SqliteMemory:
    """Open the memory of one run; `run_id` is its namespace if the settings name none. Raises
    ConfigError."""
    if settings.kind == "in_memory" or settings.path is None:
        return InMemory()
    import sqlite3  # a run with memory of its own needs no file

    from aeon.memory.sqlite import SqliteMemory

    path = settings.path.expanduser()
    try:
        return SqliteMemory(path, settings.namespace if settings.namespace is not None else run_id)
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"memory.path={path}: cannot be used: {error}") from error
