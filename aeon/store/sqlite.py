"""Answers in an SQLite file, which may be shared by threads and processes.

A long text (a prompt, a schema) stands once in `texts`, by its digest, however many requests hold it: `request` is the
request without them, and `places` says where each belongs, as [path of keys and indices, digest].
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError as PydanticError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from aeon.errors import StoreFailed
from aeon.store.models import Asked, CallPath, Entry
from aeon.store.texts import condensed, json_text, restored

T = TypeVar("T")

APPLICATION_ID = 0x41454F4E
"""`AEON`, in the file's header: the file is a store."""
SCHEMA_VERSION = 1
BUSY_SECONDS = 10.0
_BUSY_AGAIN_SECONDS = 0.25
_COLUMNS = "key, content, kind, pass_number, phase, call, step_id, attempt, occurrence, request, places, answer, time"
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


class SqliteStore:
    """An `AnswerStore` in a file; thread-safe, and safe between processes.

    The file and its folder are made unless `read_only`; then nothing is written, and a folder that cannot be written is
    no obstacle. Opening, and every method, raises StoreFailed with what to do.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._closed = False
        with self._failing("opened"):
            if not read_only:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = _connected(path, read_only)
        try:
            with self._failing("opened"):
                _prepared(self._connection, path, read_only)
        except BaseException:
            self._connection.close()
            raise

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place (`Asked.key`)."""
        return self._one("key = ?", key)

    def by_content(self, content: str) -> Entry | None:
        """The first answer to this request from whatever place (`Asked.content`)."""
        return self._one("content = ? ORDER BY id LIMIT 1", content)

    def entries(self) -> Iterator[Entry]:
        """Every answer there is when this is asked for, by pass and then as they came."""
        with self._failing("read"), self._lock:
            ids = [row[0] for row in self._connection.execute("SELECT id FROM answers ORDER BY pass_number, id")]
        for number in ids:
            entry = self._one("id = ?", number)
            if entry is not None:
                yield entry

    def put(self, entry: Entry) -> None:
        """Keep an answer; on the disk when this returns. The first answer under a key stays.

        Of a store that is closed nothing is kept, which is no error: the run that asked is over.
        """
        request, places, texts = condensed(entry.asked.request)
        path = entry.asked.path
        row = (
            entry.asked.key,
            entry.asked.content,
            entry.asked.kind,
            path.pass_number,
            path.phase,
            path.call,
            path.step_id,
            path.attempt,
            path.occurrence,
            *map(json_text, (request, places, entry.answer)),
            entry.time,
        )
        with self._failing("written"), self._lock:
            if self._closed:
                return
            try:
                _insert(self._connection, texts, row)
            except sqlite3.Error:
                # Whoever comes next must not wait as long again for a file that somebody keeps locked.
                self._connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_AGAIN_SECONDS * 1000)}")
                raise

    def close(self) -> None:
        """Close the file. May be called twice."""
        with self._lock, suppress(sqlite3.Error):
            self._closed = True
            self._connection.close()

    def _one(self, condition: str, value: str | int) -> Entry | None:
        with self._failing("read"), self._lock:
            row = self._connection.execute(f"SELECT {_COLUMNS} FROM answers WHERE {condition}", (value,)).fetchone()
            return None if row is None else _entry(row, self._text)

    def _text(self, digest: str) -> str:
        row = self._connection.execute("SELECT text FROM texts WHERE digest = ?", (digest,)).fetchone()
        if row is None:
            raise ValueError(f"the text {digest} is missing")
        return str(row[0])

    @contextmanager
    def _failing(self, done: str) -> Iterator[None]:
        """Whatever goes wrong with the file as a StoreFailed."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError, KeyError, TypeError, PydanticError) as error:
            said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            raise StoreFailed(
                f"the store {self.path} cannot be {done}: {said}", hint=_hint(error, self.path)
            ) from error


def _hint(error: Exception, path: Path) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM) or isinstance(error, OSError):
        return "Make the file and its folder writable, or name another with store.path; store.mode=off keeps nothing."
    if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
        return "The disk is full or failing: make room, or name a file on another disk."
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return "Another program keeps the file locked: wait for it, or give each its own with store.path."
    return f"The file is damaged or is not a store of Aeon: move {path} away, or name another with store.path."


def _connected(path: Path, read_only: bool) -> sqlite3.Connection:
    if not read_only:
        return _connect(path, "rwc")
    connection = _connect(path, "ro")
    try:
        _identity(connection)
    except sqlite3.OperationalError:
        connection.close()
        # In a folder that cannot be written SQLite cannot share a file, but read it, if nothing waits in its journal.
        journal = path.with_name(f"{path.name}-wal")
        if journal.exists() and journal.stat().st_size:
            raise
        return _connect(path, "ro", "&immutable=1")
    return connection


def _connect(path: Path, mode: str, more: str = "") -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode={mode}{more}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None)


def _identity(connection: sqlite3.Connection) -> tuple[int, int, int]:
    """Whose file it is, of which version, and how many tables it has."""
    found = (
        connection.execute(question).fetchone()[0]
        for question in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    application, version, tables = found
    return application, version, tables


def _prepared(connection: sqlite3.Connection, path: Path, read_only: bool) -> None:
    """Check whose file it is before anything in it changes; make the tables of a new one. Raises StoreFailed."""
    application, version, tables = _retried(lambda: _identity(connection))
    if application != APPLICATION_ID and (tables or read_only):
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
    if read_only:
        return
    # Readers and the one writer do not wait for each other; FULL: what was paid for outlasts a power cut.
    _retried(lambda: connection.execute("PRAGMA journal_mode = WAL"))
    connection.execute("PRAGMA synchronous = FULL")
    if not tables:
        _retried(lambda: connection.executescript(_SCHEMA))


def _retried(work: Callable[[], T]) -> T:
    """Try while the file is busy: SQLite's own waiting does not cover processes that make a new file at once."""
    retrying = Retrying(
        retry=retry_if_exception(_is_busy), stop=stop_after_delay(BUSY_SECONDS), wait=wait_random(0, 0.05), reraise=True
    )
    return retrying(work)


def _is_busy(error: BaseException) -> bool:
    return isinstance(error, sqlite3.OperationalError) and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _insert(connection: sqlite3.Connection, texts: dict[str, str], row: tuple[Any, ...]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", texts.items())
        marks = ", ".join("?" * len(row))
        connection.execute(f"INSERT OR IGNORE INTO answers ({_COLUMNS}) VALUES ({marks})", row)
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _entry(row: tuple[Any, ...], text: Callable[[str], str]) -> Entry:
    key, content, kind, pass_number, phase, call, step_id, attempt, occurrence, request, places, answer, time = row
    path = CallPath(
        pass_number=pass_number, phase=phase, call=call, step_id=step_id, attempt=attempt, occurrence=occurrence
    )
    whole = restored(json.loads(request), json.loads(places), text)
    asked = Asked(kind=kind, path=path, request=whole)
    # Digests are taken as they were kept: computing them again costs more than reading the answer.
    asked.__dict__.update(key=key, content=content)
    return Entry(asked=asked, answer=json.loads(answer), time=time)
