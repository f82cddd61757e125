"""Memory that lasts as long as its run."""

from __future__ import annotations

import json
import threading
from typing import Any


class InMemory:
    """A dictionary behind a lock (Sprint 1, FR-014 to FR-017).

    Values are kept as JSON, as in any other memory, so that nobody changes what another wrote or read. Writing what
    JSON does not have raises TypeError or ValueError.
    """

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._lock = threading.Lock()

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        with self._lock:
            self._values[key] = text

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        with self._lock:
            text = self._values.get(key)
        return None if text is None else json.loads(text)

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        with self._lock:
            found = [(key, text) for key, text in self._values.items() if key.startswith(prefix)]
        return {key: json.loads(text) for key, text in sorted(found)}
