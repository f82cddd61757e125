"""Memory whose failures are told and not raised: a failing store must not cost a run (Sprint 1, edge cases)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from aeon.memory.interface import Memory


class GuardedMemory:
    """A memory behind a guard; `report` is told what failed, in words."""

    def __init__(self, memory: Memory, report: Callable[[str], None]) -> None:
        self._memory = memory
        self._report = report

    def write(self, key: str, value: Any) -> None:
        """Store a value; None is not stored."""
        if value is None:
            return
        try:
            self._memory.write(key, value)
        except Exception as error:  # a store of any make may fail in any way
            self._report(f"{key} could not be stored: {error}")

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none, or it cannot be read."""
        try:
            return self._memory.read(key)
        except Exception as error:
            self._report(f"{key} could not be read: {error}")
            return None

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key with that prefix and its value; empty when the store fails."""
        try:
            return self._memory.search(prefix)
        except Exception as error:
            self._report(f"{prefix or 'memory'} could not be searched: {error}")
            return {}
