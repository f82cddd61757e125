"""A file of batch requests whose answers are not stored yet, so that after a kill they are waited
for instead of sent again."""

from __future__ import annotations

import os
import socket
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from aeon.domain.errors import ConfigError, StoreFailed

KEPT_SECONDS = 30 * 86400.0  # about as long as providers keep results
_SCHEMA = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS requests (id TEXT PRIMARY KEY, digest TEXT, place TEXT, owner TEXT,
    round TEXT, size INTEGER, begun REAL, file TEXT, batch TEXT, status INTEGER, body BLOB);
CREATE INDEX IF NOT EXISTS requests_by_digest ON requests (digest);
CREATE INDEX IF NOT EXISTS requests_by_round ON requests (round);
"""


class Sent(NamedTuple):
    """A request sent earlier, with its round, the start of the round (Unix time), the provider's
    ids of its file and batch, and, once answered, status and body."""

    id: str
    round: str
    size: int
    begun: float
    file: str | None
    batch: str | None
    status: int | None
    body: bytes | None


class BatchJournal:
    """The journal file, for one thread at a time and for several processes; `place` identifies the
    server. Raises ConfigError if it cannot be opened, StoreFailed if it cannot be used."""

    def __init__(self, path: Path, place: str) -> None:
        self._path = path
        self._place = place
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(
                path, timeout=30, check_same_thread=False, isolation_level=None
            )
            self._file.executescript(_SCHEMA)
            self._change("DELETE FROM requests WHERE begun < ?", [(time.time() - KEPT_SECONDS,)])
        except (sqlite3.Error, OSError, StoreFailed) as error:
            hint = "Set provider.batch_journal to a writable file."
            raise ConfigError(
                f"provider.batch_journal={path}: cannot be opened: {error}", hint=hint
            ) from None

    def begin(self, round_id: str, digests: Sequence[tuple[str, str]]) -> None:
        """Record a round before it is sent: the id and digest of each request."""
        rest = (self._place, _ME, round_id, len(digests), time.time())
        columns = "id, digest, place, owner, round, size, begun"
        self._change(
            f"INSERT INTO requests ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [(*d, *rest) for d in digests],
        )

    def note(self, round_id: str, file: str | None, batch: str | None) -> None:
        """Record the provider's ids of a round's file and batch."""
        self._change(
            "UPDATE requests SET file = ?, batch = ? WHERE round = ?", [(file, batch, round_id)]
        )

    def claim(self, digest: str) -> Sent | None:
        """Take over an equal request that was sent earlier and that no process waits for any
        more."""
        columns = ", ".join(Sent._fields)
        question = (
            f"SELECT owner, {columns} FROM requests WHERE digest = ? AND place = ? ORDER BY rowid"
        )
        with self._transaction():
            for owner, *row in self._file.execute(question, (digest, self._place)):
                if not _is_alive(owner):
                    sent = Sent(*row)
                    self._file.execute("UPDATE requests SET owner = ? WHERE id = ?", (_ME, sent.id))
                    return sent
        return None

    def answer(self, rows: Iterable[tuple[str, int, bytes]]) -> None:
        """Record answers: id, status and body of each; the first answer to a request is final."""
        statement = "UPDATE requests SET status = ?, body = ? WHERE id = ? AND status IS NULL"
        self._change(statement, [(status, body, name) for name, status, body in rows])

    def release(self, ids: Iterable[str]) -> None:
        """Let the next process that asks take over requests that this one has stopped waiting
        for."""
        self._change("UPDATE requests SET owner = '' WHERE id = ?", [(name,) for name in ids])

    def forget(self, ids: Iterable[str]) -> None:
        """Forget requests whose answers are stored elsewhere."""
        self._change("DELETE FROM requests WHERE id = ?", [(name,) for name in ids])

    def end(self, round_id: str) -> None:
        """Forget a round's unanswered requests, except those that another process waits for."""
        mine = "DELETE FROM requests WHERE round = ? AND status IS NULL AND owner IN (?, '')"
        self._change(mine, [(round_id, _ME)])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _change(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if rows:
            with self._transaction():
                self._file.executemany(statement, rows)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        try:
            with self._file:
                self._file.execute("BEGIN IMMEDIATE")
                yield
        except sqlite3.Error as error:
            hint = "Make room on the disk, or name another file with provider.batch_journal=."
            raise StoreFailed(
                f"the journal of batches {self._path} cannot be used: {error}", hint=hint
            ) from error


def _read_begin(pid: int) -> str:
    """Return the start time of a process and its boot id; empty if the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
    return "ended" if fields[0] in b"ZX" else f"{machine} {int(fields[19])}"


_ME = f"{socket.gethostname()}:{os.getpid()}:{_read_begin(os.getpid())}:{uuid.uuid4().hex}"


def _is_alive(owner: str) -> bool:
    """Whether the owner still waits; False for an owner on another machine, which cannot be
    checked. A process id alone proves nothing, because ids are reused."""
    if owner == _ME:
        return True
    host, pid, begun, _ = owner.split(":") if owner.count(":") == 3 else ("", "0", "", "")
    # An earlier process may have had this one's id.
    if host != socket.gethostname() or int(pid) == os.getpid() or os.name != "posix":
        return False
    try:
        os.kill(int(pid), 0)
    except PermissionError:
        pass  # somebody else's
    except OSError:
        return False
    return _read_begin(int(pid)) in (begun, "")
