"""The SQLite file of a store: opened, recognised, made, and what goes wrong with it told so that a person can act."""

from __future__ import annotations

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
SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0
"""How long a file that another process has locked is waited for."""
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


def for_writing(path: Path) -> sqlite3.Connection:
    """The file, made with its folder when it is not there. Raises StoreFailed."""
    with failing(path, "opened"):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = _connect(path, "rwc")
    with _closed_on_failure(connection), failing(path, "opened"):
        tables = _checked(connection, path, new=True)
        # Readers and the one writer do not wait for each other; FULL: what was paid for outlasts a power cut.
        _retried(lambda: connection.execute("PRAGMA journal_mode = WAL"))
        connection.execute("PRAGMA synchronous = FULL")
        if not tables:
            _retried(lambda: connection.executescript(_SCHEMA))
        # A file that may be read only is opened without complaint; this is what would be found out with the first put.
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    return connection


def for_reading(path: Path) -> sqlite3.Connection:
    """The file, in which nothing is changed; its folder need not be writable. Raises StoreFailed.

    Files beside it are there afterwards only if they were there before.
    """
    with failing(path, "opened"):
        connection = _reading(path)
    with _closed_on_failure(connection), failing(path, "opened"):
        _checked(connection, path, new=False)
    return connection


def _reading(path: Path) -> sqlite3.Connection:
    """A connection that has read.

    One that may only read cannot remove the journal that reading makes; so where there is none, and nobody else has the
    file open, one is taken that could write and does not.
    """
    journal = path.with_name(f"{path.name}-wal")
    if not journal.exists():
        with suppress(sqlite3.OperationalError):
            return _that_reads(path, "rw", "PRAGMA query_only = ON")
    try:
        return _that_reads(path, "ro")
    except sqlite3.OperationalError:
        # In a folder that cannot be written SQLite can read a file that nobody writes, but not share one.
        if journal.exists() and journal.stat().st_size:
            raise
        return _that_reads(path, "ro&immutable=1")


def _that_reads(path: Path, mode: str, *first: str) -> sqlite3.Connection:
    connection = _connect(path, mode)
    with _closed_on_failure(connection):
        for statement in first:
            connection.execute(statement)
        _identity(connection)
    return connection


def place_of(path: Path) -> tuple[int, int] | None:
    """What tells a file from another that takes its name; None when there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


@contextmanager
def failing(path: Path, done: str) -> Iterator[None]:
    """Whatever goes wrong with the file as a StoreFailed; `done` says what cannot be done: opened, read, written."""
    try:
        yield
    except (sqlite3.Error, OSError, ValueError, LookupError, TypeError, RecursionError, PydanticError) as error:
        raise failure(path, done, error) from error


def failure(path: Path, done: str, error: Exception) -> StoreFailed:
    """What went wrong, and what a person can do."""
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return StoreFailed(f"the store {path} cannot be {done}: {said}", hint=_hint(error, path))


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
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.close()
        raise


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose file it is, of which version, and how many tables it has."""
    questions = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    application, version, tables = (connection.execute(question).fetchone()[0] for question in questions)
    return application, version, tables


def _checked(connection: sqlite3.Connection, path: Path, *, new: bool) -> int:
    """How many tables there are; before anything changes in a file that may be somebody else's. Raises StoreFailed."""
    application, version, tables = _retried(lambda: _identity(connection))
    if application != APPLICATION_ID and (tables or not new):
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


def _retried(work: Callable[[], T]) -> T:
    """Try while the file is busy: SQLite's own waiting does not cover processes that make a new file at once."""
    retrying = Retrying(
        retry=retry_if_exception(_is_busy), stop=stop_after_delay(BUSY_SECONDS), wait=wait_random(0, 0.05), reraise=True
    )
    return retrying(work)


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
