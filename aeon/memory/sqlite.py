"""Memory in a file, which outlasts its run and can be shared by processes."""

from __future__ import annotations

import json
import sqlite3
import threading
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

_BUSY_SECONDS = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS memory (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID
"""


class SqliteMemory:
    """Keys and JSON values in an SQLite file (Sprint 1, FR-014 to FR-017); thread-safe, and safe between processes.

    Keys of one `namespace` are not seen from another. Opening raises sqlite3.Error or OSError when the file cannot be
    used; so may every method, and writing what JSON does not have raises TypeError or ValueError.
    """

    def __init__(self, path: Path, namespace: str = "") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._namespace = namespace
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        try:
            _prepare(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key, in place of what was there."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        with self._lock:
            self._connection.execute(
                "INSERT INTO memory VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (self._namespace, key, text),
            )

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        with self._lock:
            row = self._connection.execute(
                "SELECT value FROM memory WHERE namespace = ? AND key = ?", (self._namespace, key)
            ).fetchone()
        return None if row is None else json.loads(row[0])

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        end = _after(prefix)
        with self._lock:
            rows = self._connection.execute(
                "SELECT key, value FROM memory WHERE namespace = ? AND key >= ? AND (? IS NULL OR key < ?) "
                "ORDER BY key",
                (self._namespace, prefix, end, end),
            ).fetchall()
        return {key: json.loads(value) for key, value in rows}

    def close(self) -> None:
        """Close the file; nothing can be read or written afterwards. May be called twice."""
        with self._lock:
            self._connection.close()


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode == sqlite3.SQLITE_BUSY


# SQLite's own waiting does not cover the change to WAL, which two processes that open a new file both make.
@retry(
    retry=retry_if_exception(_is_busy), stop=stop_after_delay(_BUSY_SECONDS), wait=wait_random(0, 0.05), reraise=True
)
def _prepare(connection: sqlite3.Connection) -> None:
    """Make the table, in a file where readers and the one writer do not wait for each other."""
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute(_TABLE)


def _after(prefix: str) -> str | None:
    """The first text, by code points, that comes after all that start with the prefix; None when there is no such."""
    kept = prefix.rstrip("\U0010ffff")
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    # Surrogates are no characters of a text.
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)
