"""What configures memory."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue, field_validator, model_validator

from aeon.domain.values import Taken, Value
from aeon.memory.interface import STEPS
from aeon.memory.shown import MAX_CHARACTERS


class MemorySettings(Value):
    """`memory`: where what a run remembers is kept.

    `in_memory` lasts as long as the run; `sqlite` keeps it in the file `path`, which several processes may share.
    `namespace` None gives each run a part of the file of its own, named by the run's id; a name is a part that all runs
    of that name read and write.

    `entries` are written into it at the start of a run; `entries_file` is a YAML or JSON file of more, and validated
    settings hold its entries in `entries`. `max_characters` is how much of it prompts show, keys and values as JSON.
    """

    kind: Literal["in_memory", "sqlite"] = "in_memory"
    path: Path | None = None
    namespace: str | None = None
    entries: Taken[dict[str, JsonValue]] = Field(default_factory=dict)
    entries_file: Path | None = None
    max_characters: Taken[int] = Field(default=MAX_CHARACTERS, ge=0)

    @field_validator("entries")
    @classmethod
    def _names(cls, entries: dict[str, JsonValue]) -> dict[str, JsonValue]:
        for key in entries:
            if problem := key_problem(key):
                raise ValueError(problem)
        return entries

    @model_validator(mode="after")
    def _path_where_there_is_a_file(self) -> MemorySettings:
        if self.kind == "sqlite" and self.path is None:
            raise ValueError("memory=sqlite needs memory.path")
        if self.kind == "in_memory" and (self.path is not None or self.namespace is not None):
            raise ValueError("memory.path and memory.namespace are for memory=sqlite")
        return self


def key_problem(key: str) -> str:
    """Why a key cannot be written by anybody but the run itself; empty when it can."""
    if not key.strip():
        return "a key of memory is not blank"
    return f"{key!r}: keys that begin with {STEPS!r} are those of the steps' results" if key.startswith(STEPS) else ""
