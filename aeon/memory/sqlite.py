"""Memory in an SQLite file, which outlasts its run and can be shared by processes."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from aeon.domain.values import JsonObject
from aeon.files.text import make_private

_BUSY_SECONDS = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS memory (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID
"""


class SqliteMemory:
    """Keys and JSON values in an SQLite file, separated by `namespace`; safe between threads and
    processes. Opening and every method raise sqlite3.Error or OSError."""

    def __init__(self, path: Path, namespace: str = "") -> None:
        make_private(path)
        self._namespace = namespace
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(
            path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None
        )
        try:
            self._connection.execute(_TABLE)
        except BaseException:
            self._connection.close()
            raise

    def write(self, key: str, value: object) -> None:
        """Store a value under a key, replacing the earlier value."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        with self._lock:
            insert = "INSERT OR REPLACE INTO memory VALUES (?, ?, ?)"
            self._connection.execute(insert, (self._namespace, key, text))

    def read(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none."""
        return self.search(key).get(key)

    def search(self, prefix: str) -> JsonObject:
        """Return every key that starts with `prefix`, with its value, sorted by key."""
        query = "SELECT key, value FROM memory WHERE namespace = ?"
        with self._lock:
            found = self._connection.execute(query, (self._namespace,)).fetchall()
        return {key: json.loads(text) for key, text in sorted(found) if key.startswith(prefix)}

    def close(self) -> None:
        """Close the file; nothing can be read or written afterwards. May be called twice."""
        with self._lock:
            self._connection.close()
