"""Memory in a file, which outlasts its run and can be shared by processes."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

_BUSY_SECONDS = 10.0
# Once it has waited that long in vain: a run of many steps must not wait so for each of them.
_IMPATIENT_SECONDS = 0.05
_CLOSING_SECONDS = 2.0
_TABLE = """
CREATE TABLE IF NOT EXISTS memory (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID
"""

_log = logging.getLogger("aeon")


class StillLocked(sqlite3.OperationalError):
    """Another program holds the file; what is written is kept meanwhile, and stored once the file is free."""


class SqliteMemory:
    """Keys and JSON values in an SQLite file (Sprint 1, FR-014 to FR-017); thread-safe, and safe between processes.

    Keys of one `namespace` are not seen from another. Opening raises sqlite3.Error or OSError when the file cannot be
    used; so may every method, and writing what JSON does not have raises TypeError or ValueError.

    A file that another program keeps locked is waited for once: then StillLocked is raised, also once, and the values
    that are written stay here, are read from here, and are stored by the first later write, or the closing, that finds
    the file free.
    """

    def __init__(self, path: Path, namespace: str = "") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._namespace = namespace
        self._lock = threading.Lock()
        self._waiting: dict[str, str] = {}
        self._told = False
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
            self._waiting[key] = text
            try:
                self._store_waiting()
            except BaseException as error:
                if not _is_busy(error):
                    self._waiting.pop(key, None)
                    raise
                self._wait_less(error)

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        with self._lock:
            if key in self._waiting:
                return json.loads(self._waiting[key])
            rows = self._rows("SELECT value FROM memory WHERE namespace = ? AND key = ?", self._namespace, key)
        return json.loads(rows[0][0]) if rows else None

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        end = _after(prefix)
        with self._lock:
            rows = self._rows(
                "SELECT key, value FROM memory WHERE namespace = ? AND key >= ? AND (? IS NULL OR key < ?)",
                *(self._namespace, prefix, end, end),
            )
            waiting = [(key, text) for key, text in self._waiting.items() if key.startswith(prefix)]
        return {key: json.loads(text) for key, text in sorted({**dict(rows), **dict(waiting)}.items())}

    def close(self) -> None:
        """Close the file; nothing can be read or written afterwards. May be called twice.

        Values that wait for a locked file are stored if it comes free in time; else it is logged that they are lost.
        """
        with self._lock:
            try:
                if self._waiting:
                    _wait(self._connection, _CLOSING_SECONDS)
                    self._store_waiting()
            except sqlite3.Error as error:
                _log.warning("memory: %d value(s) could not be stored: %s", len(self._waiting), error)
            finally:
                self._waiting.clear()
                self._connection.close()

    def _rows(self, query: str, *values: str | None) -> list[Any]:
        # In WAL mode nobody who writes keeps others from reading.
        return self._connection.execute(query, values).fetchall()

    def _store_waiting(self) -> None:
        for key in list(self._waiting):
            self._connection.execute(
                "INSERT INTO memory VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (self._namespace, key, self._waiting[key]),
            )
            del self._waiting[key]

    def _wait_less(self, error: BaseException) -> None:
        """From now on. Raises StillLocked the first time."""
        if self._told:
            return
        self._told = True
        _wait(self._connection, _IMPATIENT_SECONDS)
        raise StillLocked(
            f"the file is locked by another program since {_BUSY_SECONDS:g} s or more;"
            " what is written is kept by the run, and stored once the file is free"
        ) from error


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _wait(connection: sqlite3.Connection, seconds: float) -> None:
    """Have SQLite wait so long for a file that is locked."""
    connection.execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")


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
