"""Memory in an SQLite file, which outlasts its run and can be shared by processes."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception, stop_after_delay, wait_random

_BUSY_SECONDS = 10.0
# After one wait in vain: a run of many steps must not wait so long for each of them.
_IMPATIENT_SECONDS = 0.05
_CLOSING_SECONDS = 2.0
_TABLE = """
CREATE TABLE IF NOT EXISTS memory (
    namespace TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (namespace, key)
) WITHOUT ROWID
"""

_log = logging.getLogger("aeon")


class StillLocked(sqlite3.OperationalError):
    """Another program holds the file; values are stored once the file is free."""


class SqliteMemory:
    """Keys and JSON values in an SQLite file; thread-safe, and safe between processes.

    Keys of one `namespace` are not seen from another. Opening raises sqlite3.Error or OSError when the file cannot be
    used; so may every method, and writing a value that JSON does not have raises TypeError or ValueError.

    The first write to a file that another program keeps locked waits and raises StillLocked. From then on values wait
    in this object, are read from it, and are stored by the first later write, or the closing, that finds the file free.
    """

    def __init__(self, path: Path, namespace: str = "") -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._namespace = namespace
        self._lock = threading.Lock()
        self._waiting: dict[str, str] = {}
        self._was_locked = False
        self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False, isolation_level=None)
        try:
            _prepare(self._connection)
        except BaseException:
            self._connection.close()
            raise

    def write(self, key: str, value: Any) -> None:
        """Store a value under a key, instead of the value before."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        with self._lock:
            self._waiting[key] = text
            try:
                self._store_waiting()
            except BaseException as error:
                if not _is_busy(error):
                    self._waiting.pop(key, None)
                    raise
                self._report_lock(error)

    def read(self, key: str) -> Any | None:
        """The value of a key; None when there is none."""
        return self.search(key).get(key)

    def search(self, prefix: str) -> dict[str, Any]:
        """Every key that starts with `prefix`, with its value, sorted by key."""
        with self._lock:
            query = "SELECT key, value FROM memory WHERE namespace = ?"
            found = {**dict(self._connection.execute(query, (self._namespace,))), **self._waiting}
        return {key: json.loads(text) for key, text in sorted(found.items()) if key.startswith(prefix)}

    def close(self) -> None:
        """Close the file; nothing can be read or written afterwards. May be called twice.

        Values that wait for a locked file are stored if it comes free in time; else their loss is logged.
        """
        with self._lock:
            try:
                if self._waiting:
                    _set_timeout(self._connection, _CLOSING_SECONDS)
                    self._store_waiting()
            except sqlite3.Error as error:
                _log.warning("memory: %d value(s) could not be stored: %s", len(self._waiting), error)
            finally:
                self._waiting.clear()
                self._connection.close()

    def _store_waiting(self) -> None:
        for key in list(self._waiting):
            self._connection.execute(
                "INSERT INTO memory VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (self._namespace, key, self._waiting[key]),
            )
            del self._waiting[key]

    def _report_lock(self, error: BaseException) -> None:
        """Raise StillLocked the first time, and wait less from now on."""
        if self._was_locked:
            return
        self._was_locked = True
        _set_timeout(self._connection, _IMPATIENT_SECONDS)
        raise StillLocked(
            f"the file is locked by another program since {_BUSY_SECONDS:g} s or more;"
            " the run has the value, which is stored once the file is free"
        ) from error


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _set_timeout(connection: sqlite3.Connection, seconds: float) -> None:
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
