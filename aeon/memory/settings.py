"""What configures memory."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import model_validator

from aeon.values import Value


class MemorySettings(Value):
    """`memory`: where what a run remembers is kept.

    `in_memory` lasts as long as the run; `sqlite` keeps it in the file `path`, which several processes may share.
    `namespace` None gives each run a part of the file of its own, named by the run's id; a name is a part that all runs
    of that name read and write.
    """

    kind: Literal["in_memory", "sqlite"] = "in_memory"
    path: Path | None = None
    namespace: str | None = None

    @model_validator(mode="after")
    def _path_where_there_is_a_file(self) -> MemorySettings:
        if self.kind == "sqlite" and self.path is None:
            raise ValueError("memory=sqlite needs memory.path")
        if self.kind == "in_memory" and (self.path is not None or self.namespace is not None):
            raise ValueError("memory.path and memory.namespace are for memory=sqlite")
        return self
