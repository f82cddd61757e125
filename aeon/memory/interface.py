"""Key/value memory of runs."""

from __future__ import annotations

from typing import Any, Protocol

from aeon.domain.values import JsonObject

STEPS = "step/"
"""Keys with this prefix hold the results of a run's steps; only the run itself writes them."""


class Memory(Protocol):
    """A thread-safe key/value store. Any method may raise; the kernel records the failure and
    continues."""

    def write(self, key: str, value: Any) -> None:
        """Store a JSON value under a key, replacing the earlier value."""
        ...

    def read(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none."""
        ...

    def search(self, prefix: str) -> JsonObject:
        """Return every key that starts with `prefix`, with its value, sorted by key."""
        ...
