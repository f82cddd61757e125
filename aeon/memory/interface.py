"""Key/value memory, outside the kernel (Sprint 1, FR-014 to FR-018). A leaf."""

from __future__ import annotations

from typing import Any, Protocol

STEPS = "step/"
"""What the keys begin with under which a run keeps the results of its steps."""


class Memory(Protocol):
    """A thread-safe key/value store. Any method may raise; the kernel records the failure and goes on."""

    def write(self, key: str, value: Any) -> None:
        """Store a JSON value under a key, in place of what was there."""
        ...

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        ...

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        ...
