"""Answers in an SQLite file."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from errno import ENOENT
from functools import lru_cache
from pathlib import Path
from typing import BinaryIO

from pydantic import ValidationError as PydanticError
from tenacity import retry, retry_if_exception, wait_random

from aeon.domain.errors import StoreFailed
from aeon.files.shortage import find_shortage
from aeon.files.text import load_json, make_private
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.texts import (
    MAX_RATIO,
    MAX_STORE_CHARACTERS,
    CharacterBudget,
    condense,
    json_text,
    restore,
)

APPLICATION_ID = 0x41454F4E
"""`AEON`, in the file's header: marks the file as a store."""
SCHEMA_VERSION = 3
"""2: long texts are stored in chunks (`aeon.store.texts`); a file of version 1 has whole texts in
the same tables. 3: answers say whether they are usable; in older files all are."""
BUSY_SECONDS = 10.0
"""Seconds to wait for a file that another process has locked."""

_PLACE = ("pass_number", "phase", "call", "step_id", "attempt", "occurrence")
_COLUMNS = f"key, content, kind, {', '.join(_PLACE)}, request, places, answer, time"
_USABLE_SINCE = 3
_PUT = f"""
INSERT INTO answers ({_COLUMNS}, usable) VALUES ({{values}})
ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, time = excluded.time, usable = excluded.usable
WHERE excluded.usable > answers.usable
   OR (excluded.usable < answers.usable AND excluded.answer = answers.answer)
"""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS texts (digest TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS answers (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE, content TEXT NOT NULL, kind TEXT NOT NULL,
    pass_number INTEGER NOT NULL, phase TEXT NOT NULL, call TEXT NOT NULL, step_id TEXT,
    attempt INTEGER NOT NULL, occurrence INTEGER NOT NULL,
    request TEXT NOT NULL, places TEXT NOT NULL, answer TEXT NOT NULL, time TEXT NOT NULL,
    usable INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX IF NOT EXISTS answers_by_content ON answers (content);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
"""
_ADD_USABLE = "ALTER TABLE answers ADD COLUMN usable INTEGER NOT NULL DEFAULT 1;"
# An empty transaction, to detect a locked file before it is needed.
_SET_UP = "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; BEGIN IMMEDIATE; COMMIT;"
_WHOSE = """
SELECT (SELECT count(*) FROM sqlite_master), application_id, user_version
FROM pragma_application_id, pragma_user_version
"""

_SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"


class SqliteStore:
    """An `AnswerStore` in a file; safe between threads and processes. Opening and every method
    raise StoreFailed. `read_only` changes nothing and needs no write permission in the folder."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._reading = threading.Lock()
        self._writing = threading.Lock()
        self._stored_texts: set[str] = set()
        # Consecutive requests share most of their texts.
        self._text = lru_cache(4096)(self._read_text)
        self._closed = False
        self._usable: str | None = None
        if read_only and not path.exists():
            hint = "Give the path of a run that was recorded, a store or a cassette."
            raise StoreFailed(
                f"{path.parent} holds no {path.name}: there is no such file", hint=hint
            )
        with _explain_errors(path, "opened"):
            self._writer = None
            if not read_only:
                make_private(path)
                # Readers and the single writer do not wait for each other. NORMAL: an answer
                # survives the process, but not always a power cut, and no call waits for the disk.
                self._writer = _open(path, "rwc", _SET_UP)
            self._reader = self._open_reader() if read_only else None

    def get(self, key: str) -> Entry | None:
        """Return the answer to exactly this request from exactly this place
        (`StoreRequest.key`)."""
        return self._find("key = ?", key)

    def by_content(self, content: str) -> Entry | None:
        """Return the first usable answer to this request from any place, else the first
        (`StoreRequest.content`)."""
        return self._find("content = ? ORDER BY {usable} DESC, id LIMIT 1", content)

    def entries(self) -> Iterator[Entry]:
        """Yield every answer that exists when the first is taken, by pass and then in order of
        arrival. Raises StoreFailed for one that unpacks to very much more than its size."""
        with _explain_errors(self.path, "read"), self._reading:
            ids = [
                row[0]
                for row in self._read("SELECT id FROM answers ORDER BY pass_number, id").fetchall()
            ]
            (size,) = self._read(_SIZE).fetchone()
        most = max(MAX_STORE_CHARACTERS, MAX_RATIO * size)
        budget = CharacterBudget(most, "its requests together are")

        def read_text(name: str) -> str:
            text = self._text(name)
            budget.spend(text)
            return text

        for number in ids:
            entry = self._find("id = ?", number, read_text)
            if entry is not None:
                yield entry

    def put(self, entry: Entry) -> None:
        """Store an answer; it is handed to the operating system before this returns. The first
        under a key stays, unless it is not usable. After `close`, nothing is stored."""
        with _explain_errors(self.path, "written"), self._writing:
            if self._writer is None:
                raise sqlite3.OperationalError("it is open for reading")
            if self._closed:
                return
            if not self.path.exists():  # writes to a removed file are lost without an error
                raise FileNotFoundError(ENOENT, "it is gone")
            self._insert(self._writer, entry)

    def close(self) -> None:
        """Close the file. May be called twice."""
        with self._writing, self._reading:
            self._closed = True
            for connection in (self._reader, self._writer):
                if connection is not None:
                    connection.close()

    def _open_reader(self) -> sqlite3.Connection:
        # A separate connection, so that reading does not wait for a writer. Without a journal
        # nobody writes, and none may be created: the folder may not be writable.
        journal = self.path.with_name(f"{self.path.name}-wal")
        return _open(self.path, "ro" if journal.exists() else "ro&immutable=1")

    def _read(self, query: str, *values: str | int) -> sqlite3.Cursor:
        if self._reader is None:
            if self._closed:
                raise sqlite3.ProgrammingError("it is closed")
            self._reader = self._open_reader()
        return self._reader.execute(query, values)

    def _insert(self, writer: sqlite3.Connection, entry: Entry) -> None:
        body, places, texts = condense(entry.request.body)
        request = entry.request
        path = entry.request.path
        place = (getattr(path, name) for name in _PLACE)
        values = map(json_text, (body, places, entry.answer))
        new = [(name, text) for name, text in texts.items() if name not in self._stored_texts]
        row = (
            request.key,
            request.content,
            request.kind,
            *place,
            *values,
            entry.time,
            entry.usable,
        )
        try:
            writer.execute("BEGIN IMMEDIATE")
            writer.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", new)
            writer.execute(_PUT.format(values=", ".join("?" * len(row))), row)
            writer.execute("COMMIT")
        except sqlite3.Error:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            raise
        self._stored_texts.update(texts)

    def _find(
        self, condition: str, value: str | int, text: Callable[[str], str] | None = None
    ) -> Entry | None:
        with _explain_errors(self.path, "read"), self._reading:
            usable = self._find_usable_column()
            query = (
                f"SELECT {_COLUMNS}, {usable} FROM answers WHERE {condition.format(usable=usable)}"
            )
            row = self._read(query, value).fetchone()
            if row is None:
                return None
            key, content, kind, *place, body, places, answer, time, is_usable = row
            path = CallPath.model_validate(dict(zip(_PLACE, place, strict=True)))
            body = restore(load_json(body), load_json(places), text or self._text)
            request = StoreRequest(kind=kind, path=path, body=body)
            # The stored digests: computing them again would take longer than reading the answer.
            # answer.
            request.__dict__.update(key=key, content=content)
            return Entry(
                request=request, answer=load_json(answer), time=time, usable=bool(is_usable)
            )

    def _find_usable_column(self) -> str:
        if self._usable is None:
            version = self._read("PRAGMA user_version").fetchone()[0]
            self._usable = "usable" if version >= _USABLE_SINCE else "1"
        return self._usable

    def _read_text(self, name: str) -> str:
        row = self._read("SELECT text FROM texts WHERE digest = ?", name).fetchone()
        if row is None:
            raise ValueError(f"the text {name} is missing")
        return str(row[0])


@lru_cache(1)
def _empty_store() -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        made.executescript(_SCHEMA)
        content = made.serialize()
    # A database in memory has no journal; these header bytes say that a file uses WAL.
    return content[:18] + b"\2\2" + content[20:]


def create_file(path: Path) -> None:
    """Create the file of an empty store, unless it exists. Raises StoreFailed."""
    with _explain_errors(path, "opened"), suppress(FileExistsError), _open_new(path) as file:
        try:
            file.write(_empty_store())
            file.flush()
        except BaseException:
            path.unlink()  # a partial file would look like a damaged store
            raise


def _open_new(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    """Create the tables, or add what an older version's tables lack; another process may do the
    same at this moment."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        tables, _, version = connection.execute(_WHOSE).fetchone()
        if tables and version < _USABLE_SINCE:
            connection.execute(_ADD_USABLE)
        for statement in filter(str.strip, _SCHEMA.split(";")):
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


@contextmanager
def _explain_errors(path: Path, action: str) -> Iterator[None]:
    """Raise StoreFailed, with a hint, for any error of the file; `action` is what failed: opened,
    read or written."""
    try:
        yield
    except (
        sqlite3.Error,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        RecursionError,
        PydanticError,
    ) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        if "no such table" in reason:
            hint = (
                "Nothing was ever stored in it, or it belongs to another program: give a "
                "run's directory or a store."
            )
            raise StoreFailed(
                f"the store {path} is empty: it holds no answers", hint=hint
            ) from error
        if shortage := find_shortage(error):
            problem = f"the store {path} cannot be {action}: {shortage.message}"
            raise StoreFailed(problem, hint=shortage.hint) from error
        hint = (
            "Make the file and its folder writable, make room on the disk, or wait for another "
            f"program that has it locked; if it is damaged or something else, move {path} away. "
            "store=off stores no answers."
        )
        raise StoreFailed(f"the store {path} cannot be {action}: {reason}", hint=hint) from error


def _is_busy(error: BaseException) -> bool:
    return (
        isinstance(error, sqlite3.OperationalError)
        and error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
    )


# SQLite's own waiting does not cover processes that create a new file at the same time.
@retry(
    retry=retry_if_exception(_is_busy),
    stop=lambda state: (state.seconds_since_start or 0) >= BUSY_SECONDS,
    wait=wait_random(0, 0.05),
    reraise=True,
)
def _open(path: Path, mode: str, set_up: str = "") -> sqlite3.Connection:
    """Connect to a file; with `set_up`, for writing, and missing tables are created. Refuses
    another program's file, and one of a newer Aeon."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
    )
    try:
        # Tables first: a process that creates them at this moment also sets the application id.
        tables, application, version = connection.execute(_WHOSE).fetchone()
        if tables and (application != APPLICATION_ID or version > SCHEMA_VERSION):
            raise StoreFailed(
                f"the store {path} cannot be opened: it is an SQLite file of something else, or a "
                f"newer Aeon has written it (version {version}, this one knows {SCHEMA_VERSION})",
                hint="Name another file with store.path.",
            )
        if set_up:
            connection.executescript(set_up)
            if version < SCHEMA_VERSION:
                _bring_up_to_date(connection)
    except BaseException:
        connection.close()
        raise
    return connection
