"""A memory as one run sees it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aeon.memory.in_memory import InMemory
from aeon.memory.interface import STEPS, Memory


class RunMemory:
    """What the memory held when the run began, and what the run writes itself; nothing that others write meanwhile.

    The results of steps (`step/...`) are this run's own: `held`, what was there at the beginning, may have those of
    earlier runs, which are left out. What is written goes to `memory` too; an error of its is raised after the run has
    the value.
    """

    def __init__(self, memory: Memory | None = None, held: Mapping[str, Any] | None = None) -> None:
        self._memory = memory
        self._steps, self._notes = InMemory(), InMemory()
        for key, value in (held or {}).items():
            if not key.startswith(STEPS):
                self._notes.write(key, value)

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key, in place of what was there."""
        self._of(key).write(key, value)
        if self._memory is not None:
            self._memory.write(key, value)

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        return self._of(key).read(key)

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        return dict(sorted({**self._notes.search(prefix), **self._steps.search(prefix)}.items()))

    def notes(self) -> dict[str, Any]:
        """Everything but the results of steps, sorted by key."""
        return self._notes.search("")

    def _of(self, key: str) -> InMemory:
        return self._steps if key.startswith(STEPS) else self._notes
