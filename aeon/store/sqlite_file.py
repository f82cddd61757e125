"""Opening the SQLite file of a store, and explaining why it cannot be used."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError as PydanticError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from aeon.domain.errors import StoreFailed

T = TypeVar("T")

APPLICATION_ID = 0x41454F4E
"""`AEON`, in the file's header: the file is a store."""
SCHEMA_VERSION = 2
"""2: a long text is stored in chunks (`aeon.store.texts`); a file of version 1 has whole texts in the same tables."""
BUSY_SECONDS = 10.0
"""How long to wait for a file that another process has locked."""
_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, kind TEXT NOT NULL,
    pass_number INTEGER NOT NULL, phase TEXT NOT NULL, call TEXT NOT NULL, step_id TEXT,
    attempt INTEGER NOT NULL, occurrence INTEGER NOT NULL,
    request TEXT NOT NULL, places TEXT NOT NULL, answer TEXT NOT NULL, time TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS answers_by_content ON answers (content);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""


def create_file(path: Path) -> None:
    """Make the file of a run's store in a folder that nobody else knows yet. Raises StoreFailed.

    SQLite would wait for the disk at each step; an empty store needs to be on the disk once, when it is whole.
    """
    with explain_errors(path, "opened"):
        connection = _connect(path, "rwc")
        try:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.executescript(_SCHEMA)
        finally:
            connection.close()
        with path.open("rb+") as file:
            os.fsync(file.fileno())


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Open the file; it is made with its folder when it is missing. Raises StoreFailed."""
    with explain_errors(path, "opened"):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path, "rwc")
        with _close_on_failure(connection):
            tables = _check_identity(connection, path, is_new=True)
            # Readers and the one writer do not wait for each other; FULL: an answer survives a power cut.
            _retry_while_busy(lambda: connection.execute("PRAGMA journal_mode = WAL"))
            connection.execute("PRAGMA synchronous = FULL")
            if not tables:
                _retry_while_busy(lambda: connection.executescript(_SCHEMA))
            # A file that may only be read opens without complaint; this finds out before the first put.
            connection.execute("BEGIN IMMEDIATE")
            if _identity(connection)[1] < SCHEMA_VERSION:
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Open the file to change nothing in it; its folder need not be writable. Raises StoreFailed.

    Files beside it are there afterwards only if they were there before.
    """
    with explain_errors(path, "opened"):
        connection = _open_unchanged(path)
        with _close_on_failure(connection):
            _check_identity(connection, path, is_new=False)
    return connection


def _open_unchanged(path: Path) -> sqlite3.Connection:
    """A connection that can read.

    A read-only connection cannot remove the journal that reading makes. So where there is no journal, and nobody else
    has the file open, the connection could write and does not.
    """
    journal = path.with_name(f"{path.name}-wal")
    if not journal.exists():
        with suppress(sqlite3.OperationalError):
            return _connect_and_read(path, "rw", "PRAGMA query_only = ON")
    try:
        return _connect_and_read(path, "ro")
    except sqlite3.OperationalError:
        # In a folder that is not writable SQLite can read a file that nobody writes, but not share one.
        if journal.exists() and journal.stat().st_size:
            raise
        return _connect_and_read(path, "ro&immutable=1")


def _connect_and_read(path: Path, mode: str, *first: str) -> sqlite3.Connection:
    connection = _connect(path, mode)
    with _close_on_failure(connection):
        for statement in first:
            connection.execute(statement)
        _identity(connection)
    return connection


def file_identity(path: Path) -> tuple[int, int] | None:
    """Device and inode, which tell a file from another of the same name; None when there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def explain_errors(path: Path, action: str) -> Iterator[None]:
    """Raise StoreFailed, with a hint, for any error of the file; `action` is what failed: opened, read or written."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, LookupError, TypeError, RecursionError, PydanticError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StoreFailed(f"the store {path} cannot be {action}: {reason}", hint=_hint(error, path)) from error


def _hint(error: Exception, path: Path) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(error, OSError):
        return "Make the file and its folder readable and writable; store=off keeps no answers."
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return "The disk is full or failing: make room there, or use another; store=off keeps no answers."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another program keeps the file locked: wait until it is done."
    return f"The file is damaged, or is not a store of Aeon: move {path} away, or name another with store.path."


@contextmanager
def _close_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """The application id, the schema version and the number of tables."""
    questions = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (connection.execute(question).fetchone()[0] for question in questions)
    return application, version, tables


def _identity_at_once(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """The same, as they are at one moment: another process may be making the file."""
    connection.execute("BEGIN")
    try:
        return _identity(connection)
    finally:
        connection.execute("ROLLBACK")


def _check_identity(connection: sqlite3.Connection, path: Path, *, is_new: bool) -> int:
    """Refuse a file that is not a store, or of a newer Aeon, before anything changes in it.

    Returns its number of tables.
    """
    application, version, tables = _retry_while_busy(lambda: _identity_at_once(connection))
    if application != APPLICATION_ID and (tables or not is_new):
        raise StoreFailed(
            f"the store {path} cannot be opened: it is an SQLite file of something else",
            hint="Name another file with store.path.",
        )
    if version > SCHEMA_VERSION:
        raise StoreFailed(
            f"the store {path} cannot be opened: a newer Aeon has written it (version {version}, this one knows "
            f"{SCHEMA_VERSION})",
            hint="Use that Aeon, or name another file with store.path.",
        )
    return tables


def _retry_while_busy(work: Callable[[], T]) -> T:
    """SQLite's own waiting does not cover processes that make a new file at the same time."""
    retrying = Retrying(
        retry=retry_if_exception(_is_busy), stop=stop_after_delay(BUSY_SECONDS), wait=wait_random(0, 0.05), reraise=True
    )
    return retrying(work)


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
