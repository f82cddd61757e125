"""Answers in an SQLite file, which may be shared by threads and processes.

A long text (a prompt, a schema) stands once in `texts`, by its digest, however many requests hold it: `request` is the
request without them, and `places` says where each belongs, as [path of keys and indices, digest].
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOENT
from pathlib import Path
from typing import Any

from aeon.store.models import Asked, CallPath, Entry
from aeon.store.sqlite.file import failing, failure, for_reading, for_writing, place_of
from aeon.store.sqlite.texts import condensed, json_text, restored

_BUSY_AGAIN_MILLISECONDS = 250
_COLUMNS = "key, content, kind, pass_number, phase, call, step_id, attempt, occurrence, request, places, answer, time"


@dataclass(eq=False, slots=True)
class _Put:
    """An answer on its way to the disk."""

    texts: dict[str, str]
    row: tuple[Any, ...]
    done: bool = False
    error: Exception | None = None


class SqliteStore:
    """An `AnswerStore` in a file; thread-safe, and safe between processes.

    The file and its folder are made unless `read_only`; then nothing is written, and a folder that cannot be written is
    no obstacle. Opening, and every method, raises StoreFailed with what to do.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._reading, self._writing, self._queueing = threading.Lock(), threading.Lock(), threading.Lock()
        self._waiting: list[_Put] = []
        self._closed = False
        self._writer = None if read_only else for_writing(path)
        self._place = place_of(path)
        self._reader = for_reading(path) if read_only else None

    def get(self, key: str) -> Entry | None:
        """The answer to exactly this request from exactly this place (`Asked.key`)."""
        return self._one("key = ?", key)

    def by_content(self, content: str) -> Entry | None:
        """The first answer to this request from whatever place (`Asked.content`)."""
        return self._one("content = ? ORDER BY id LIMIT 1", content)

    def entries(self) -> Iterator[Entry]:
        """Every answer there is when the first is taken, by pass and then as they came."""
        with failing(self.path, "read"), self._reading:
            ids = [row[0] for row in self._read("SELECT id FROM answers ORDER BY pass_number, id").fetchall()]
        for number in ids:
            entry = self._one("id = ?", number)
            if entry is not None:
                yield entry

    def put(self, entry: Entry) -> None:
        """Keep an answer; on the disk when this returns. The first answer under a key stays.

        Whoever comes first writes for all that wait, so that many threads wait for the disk once. Of a store that is
        closed nothing is kept, which is no error: the run that asked is over.
        """
        with failing(self.path, "written"):
            put = _put(entry)
        with self._queueing:
            self._waiting.append(put)
        with self._writing:
            if not put.done:
                self._write_waiting()
        if put.error is not None:
            raise failure(self.path, "written", put.error) from put.error

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
        error = None if self._closed else self._written(puts)
        for put in puts:
            put.done, put.error = True, error

    def _written(self, puts: Sequence[_Put]) -> Exception | None:
        """None when all are on the disk, else why none is."""
        if self._writer is None:
            return sqlite3.OperationalError("it is open for reading")
        try:
            if place_of(self.path) != self._place:
                raise FileNotFoundError(ENOENT, "the file was removed or replaced while it was in use")
            _insert(self._writer, puts)
        except OSError as error:
            return error
        except (sqlite3.Error, ValueError, TypeError) as error:
            # Whoever comes next must not wait as long again for a file that somebody keeps locked.
            self._writer.execute(f"PRAGMA busy_timeout = {_BUSY_AGAIN_MILLISECONDS}")
            return error
        return None

    def _one(self, condition: str, value: str | int) -> Entry | None:
        with failing(self.path, "read"), self._reading:
            row = self._read(f"SELECT {_COLUMNS} FROM answers WHERE {condition}", value).fetchone()
            return None if row is None else _entry(row, self._text)

    def _text(self, digest: str) -> str:
        row = self._read("SELECT text FROM texts WHERE digest = ?", digest).fetchone()
        if row is None:
            raise ValueError(f"the text {digest} is missing")
        return str(row[0])

    def _read(self, query: str, *values: str | int) -> sqlite3.Cursor:
        """On a connection of its own, so that nobody who reads waits for the disk of one who writes."""
        if self._reader is None and not self._closed:
            self._reader = for_reading(self.path)
        if self._reader is None:
            raise ValueError("it is closed")
        return self._reader.execute(query, values)


def _put(entry: Entry) -> _Put:
    request, places, texts = condensed(entry.asked.request)
    asked, path = entry.asked, entry.asked.path
    place = (path.pass_number, path.phase, path.call, path.step_id, path.attempt, path.occurrence)
    values = map(json_text, (request, places, entry.answer))
    return _Put(texts, (asked.key, asked.content, asked.kind, *place, *values, entry.time))


def _insert(connection: sqlite3.Connection, puts: Sequence[_Put]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        for put in puts:
            connection.executemany("INSERT OR IGNORE INTO texts VALUES (?, ?)", put.texts.items())
            marks = ", ".join("?" * len(put.row))
            connection.execute(f"INSERT OR IGNORE INTO answers ({_COLUMNS}) VALUES ({marks})", put.row)
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
    asked = Asked(kind=kind, path=path, request=restored(json.loads(request), json.loads(places), text))
    # The digests as they were kept: to compute them again would take longer than to read the answer.
    asked.__dict__.update(key=key, content=content)
    return Entry(asked=asked, answer=json.loads(answer), time=time)
