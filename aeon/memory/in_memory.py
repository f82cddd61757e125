"""Memory that lasts as long as its run."""

from __future__ import annotations

import threading
from typing import Any


class InMemory:
    """A dictionary behind a lock (Sprint 1, FR-014 to FR-017)."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._lock = threading.Lock()

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key."""
        with self._lock:
            self._values[key] = value

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        with self._lock:
            return self._values.get(key)

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        with self._lock:
            return {key: value for key, value in sorted(self._values.items()) if key.startswith(prefix)}
