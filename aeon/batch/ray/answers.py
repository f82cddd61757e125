"""The answers of rows under way on other nodes, stored on the batch's own node: `OUT.answers`."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from aeon.batch.records import Running
from aeon.config.origin import FILE, seal_again
from aeon.config.state import VARIABLE as STATE
from aeon.domain.errors import ArtefactError
from aeon.domain.values import JsonObject, OwnObject
from aeon.observability.artefacts import create_directory
from aeon.store.models import Entry, StoreRequest
from aeon.store.opening import is_packaged, open_store, store_in
from aeon.store.settings import SQLITE

_SECONDS = 60.0  # the batch before may have been killed a moment ago
_SCHEMA = """
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS answers (row TEXT, key TEXT, entry TEXT NOT NULL, PRIMARY KEY (row, key));
COMMIT;
"""
_ORIGIN = ""  # the key of the origin of a row's run


class Answers:
    """The only writer of `OUT.answers`. Answers that a killed batch left there are moved into
    `folder`, OUT.running, as directories to resume, with stores of the kind `backend`. They count
    as runs of the person whose state folder is `state`, by default that of this process."""

    def __init__(
        self, folder: Path, backend: OwnObject = SQLITE, state: Path | None = None
    ) -> None:
        self._path = folder.with_suffix(".answers")
        self._running = Running(folder)
        self._backend = backend
        self._state = state
        self._attempts: dict[str, int] = {}

    def open(self) -> None:
        """Open the file. Raises ArtefactError when it cannot be written, or another batch has it
        open."""
        if self._state is not None:  # the environment of an actor is that of its node
            os.environ[STATE] = str(self._state)
        try:
            self._file = sqlite3.connect(self._path, timeout=_SECONDS, isolation_level=None)
            self._file.executescript(_SCHEMA)
        except sqlite3.Error as error:
            hint = "Another batch may be writing it."
            raise ArtefactError(f"{self._path} cannot be written: {error}", hint=hint) from None
        for (name,) in self._file.execute("SELECT DISTINCT row FROM answers").fetchall():
            self._put_back(name)

    def put(self, name: str, attempt: int, key: str, entry: str, origin: str | None) -> bool:
        """Store an answer of a row, and with the first of an attempt the origin of its run; return
        False when the row is meanwhile run elsewhere."""
        if attempt < self._attempts.get(name, 0):
            return False
        values = [(name, key, entry)]
        if origin is not None:
            # The node on which the run began has another key than the batch's node.
            sealed = seal_again(origin.encode()).decode()
            values.insert(0, (name, _ORIGIN, sealed))
        self._file.executemany("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", values)
        return True

    def begin_again(self, name: str, attempt: int) -> None:
        """Accept no more answers of earlier attempts; those stored go into a directory of the
        row."""
        self._put_back(name)
        self._attempts[name] = attempt

    def forget(self, name: str) -> None:
        """Remove the answers of a row that is over."""
        self._attempts.pop(name, None)
        self._file.execute("DELETE FROM answers WHERE row = ?", (name,))

    def close(self) -> None:
        """Close the file, and remove it if nothing is left in it."""
        (left,) = self._file.execute("SELECT count(*) FROM answers").fetchone()
        self._file.close()
        if not left:
            self._path.unlink(missing_ok=True)

    def _put_back(self, name: str) -> None:
        entries = dict(
            self._file.execute("SELECT key, entry FROM answers WHERE row = ?", (name,)).fetchall()
        )
        if _ORIGIN not in entries:
            return

        origin = entries.pop(_ORIGIN)
        answers = [_read(text) for text in entries.values()]

        def fill(directory: Path) -> None:
            (directory / FILE).write_text(origin, encoding="utf-8")
            if is_packaged(self._backend):
                self._store(directory, answers)

        directory = self._running.directories(name)[0]
        create_directory(directory, fill)
        if not is_packaged(self._backend):
            # An own backend may identify a run by its directory's final path, which `fill` lacks.
            self._store(directory, answers)
        self.forget(name)

    def _store(self, directory: Path, answers: Sequence[Entry]) -> None:
        place = store_in(directory, self._backend)
        with closing(open_store(place, backend=self._backend)) as store:
            for answer in answers:
                store.put(answer)


def write_entry(entry: Entry) -> str:
    """Return an answer as text, without its request, which its digests suffice to find."""
    request = entry.request
    return json.dumps(
        {
            "key": request.key,
            "content": request.content,
            "kind": request.kind,
            "time": entry.time,
            "path": request.path.model_dump(mode="json"),
            "answer": entry.answer,
            "usable": entry.usable,
        }
    )


def _read(text: str) -> Entry:
    values: JsonObject = json.loads(text)
    request = StoreRequest(kind=values["kind"], path=values["path"], body={})
    # The digests of a body that was not sent: these properties are cached.
    request.__dict__.update(key=values["key"], content=values["content"])
    return Entry(
        request=request,
        answer=values["answer"],
        time=values["time"],
        usable=values.get("usable", True),
    )
