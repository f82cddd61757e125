"""Answers in an SQLite file."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from errno import ENOENT
from pathlib import Path
from typing import Any, NamedTuple

from aeon.domain.errors import StoreFailed
from aeon.store.models import CallPath, Entry, StoreRequest
from aeon.store.sqlite_file import explain_errors, file_identity, open_for_reading, open_for_writing
from aeon.store.texts import Rows, condense, json_text, restore

STORE_NAME = "store.sqlite"
"""The file of a run's store, in its directory."""
_BUSY_AGAIN_MILLISECONDS = 250
_MOST_READ_ROWS = 4096
_COLUMNS = "key, content, kind, pass_number, phase, call, step_id, attempt, occurrence, request, places, answer, time"


class _Put(NamedTuple):
    """An answer that waits to be written; `done` has a result once it is on the disk."""

    texts: Rows
    row: tuple[Any, ...]
    done: Future[None]


class SqliteStore:
    """An `AnswerStore` in a file; thread-safe, and safe between processes.

    Opening, and every method, raises StoreFailed with what to do. `read_only` changes nothing, and needs no right to
    write into the folder.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        if read_only:
            _check_exists(path)
        self.path = path
        self._reading, self._writing, self._queueing = threading.Lock(), threading.Lock(), threading.Lock()
        self._waiting: list[_Put] = []
        self._stored_texts: set[str] = set()
        self._read_texts: dict[str, str] = {}
        self._closed = False
        self._writer = None if read_only else open_for_writing(path)
        self._identity = file_identity(path)
        self._reader = open_for_reading(path) if read_only else None

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place (`StoreRequest.key`)."""
        return self._find("key = ?", key)

    def by_content(self, content: str) -> Entry | None:
        """The first answer to this request from whatever place (`StoreRequest.content`)."""
        return self._find("content = ? ORDER BY id LIMIT 1", content)

    def entries(self) -> Iterator[Entry]:
        """Every answer there is when the first is taken, by pass and then as they came."""
        with explain_errors(self.path, "read"), self._reading:
            ids = [row[0] for row in self._query("SELECT id FROM answers ORDER BY pass_number, id").fetchall()]
        for number in ids:
            entry = self._find("id = ?", number)
            if entry is not None:
                yield entry

    def put(self, entry: Entry) -> None:
        """Store an answer; on the disk when this returns. The first answer under a key stays.

        The first of several threads writes for all that wait, in one transaction. After `close` nothing is stored.
        """
        with explain_errors(self.path, "written"):
            put = _Put(*_to_rows(entry), Future())
            with self._queueing:
                self._waiting.append(put)
            with self._writing:
                if not put.done.done():
                    self._write_waiting()
            put.done.result()

    def close(self) -> None:
        """Close the file. May be called twice."""
        with self._writing, self._reading:
            self._closed = True
            for connection in (self._reader, self._writer):
                if connection is not None:
                    with suppress(sqlite3.Error):
                        connection.close()

    def _write_waiting(self) -> None:
        with self._queueing:
            puts, self._waiting = self._waiting, []
        try:
            if not self._closed:
                self._write(puts)
        except (OSError, sqlite3.Error, ValueError, TypeError) as error:
            for put in puts:
                put.done.set_exception(error)
        else:
            for put in puts:
                put.done.set_result(None)

    def _write(self, puts: Sequence[_Put]) -> None:
        if self._writer is None:
            raise sqlite3.OperationalError("it is open for reading")
        if file_identity(self.path) != self._identity:
            raise FileNotFoundError(ENOENT, "the file was removed or replaced while it was in use")
        texts = {name: text for put in puts for name, text in put.texts.items() if name not in self._stored_texts}
        try:
            _insert(self._writer, texts, [put.row for put in puts])
        except sqlite3.Error:
            # The next put must not wait as long again for a file that another program keeps locked.
            self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_AGAIN_MILLISECONDS}")
            raise
        self._stored_texts.update(texts)

    def _find(self, condition: str, value: str | int) -> Entry | None:
        with explain_errors(self.path, "read"), self._reading:
            row = self._query(f"SELECT {_COLUMNS} FROM answers WHERE {condition}", value).fetchone()
            return None if row is None else self._to_entry(row)

    def _to_entry(self, row: tuple[Any, ...]) -> Entry:
        key, content, kind, pass_number, phase, call, step_id, attempt, occurrence, body, places, answer, time = row
        path = CallPath(
            pass_number=pass_number, phase=phase, call=call, step_id=step_id, attempt=attempt, occurrence=occurrence
        )
        request = StoreRequest(kind=kind, path=path, body=restore(json.loads(body), json.loads(places), self._text))
        # The digests as stored: to compute them again would take longer than to read the answer.
        request.__dict__.update(key=key, content=content)
        return Entry(request=request, answer=json.loads(answer), time=time)

    def _text(self, name: str) -> str:
        """A row of `texts`. Requests that follow each other share most of theirs, so that the latest are remembered."""
        if name not in self._read_texts:
            row = self._query("SELECT text FROM texts WHERE digest = ?", name).fetchone()
            if row is None:
                raise ValueError(f"the text {name} is missing")
            if len(self._read_texts) >= _MOST_READ_ROWS:
                self._read_texts.pop(next(iter(self._read_texts)))
            self._read_texts[name] = str(row[0])
        return self._read_texts[name]

    def _query(self, query: str, *values: str | int) -> sqlite3.Cursor:
        """Use a connection of its own, so that reading does not wait for the disk of one who writes."""
        if self._reader is None and not self._closed:
            self._reader = open_for_reading(self.path)
        if self._reader is None:
            raise ValueError("it is closed")
        return self._reader.execute(query, values)


def _check_exists(path: Path) -> None:
    if path.exists():
        return
    if path.name == STORE_NAME and path.parent.is_dir():
        raise StoreFailed(
            f"{path.parent}: the directory holds no {STORE_NAME}",
            hint="Name the directory of a run that was recorded (store.mode=record, the default).",
        )
    raise StoreFailed(
        f"{path}: there is no such file or directory", hint="Give the path of a run, a store or a cassette."
    )


def _to_rows(entry: Entry) -> tuple[Rows, tuple[Any, ...]]:
    body, places, texts = condense(entry.request.body)
    request, path = entry.request, entry.request.path
    place = (path.pass_number, path.phase, path.call, path.step_id, path.attempt, path.occurrence)
    values = map(json_text, (body, places, entry.answer))
    return texts, (request.key, request.content, request.kind, *place, *values, entry.time)


def _insert(connection: sqlite3.Connection, texts: Rows, rows: Sequence[tuple[Any, ...]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", texts.items())
        marks = ", ".join("?" * len(rows[0]))
        connection.executemany(f"INSERT OR IGNORE INTO answers ({_COLUMNS}) VALUES ({marks})", rows)
        connection.execute("COMMIT")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
