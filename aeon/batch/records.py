"""The records of a batch's rows: a directory while a row is run, then a line of one file, or nothing."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
import threading
from contextlib import closing
from io import BytesIO
from pathlib import Path

from aeon.config.origin import FILE
from aeon.domain.errors import ConfigError

_SCHEMA = "CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, data BLOB NOT NULL)"


class Records:
    """The records of the batch whose rows go to `out`: `OUT.running/` and `OUT.records`. May be used from threads."""

    def __init__(self, out: Path) -> None:
        self._running, self._packed = out.with_name(f"{out.name}.running"), out.with_name(f"{out.name}.records")
        self._lock = threading.Lock()

    def directories(self, number: int) -> tuple[Path, Path | None]:
        """A new directory for a row, and the one in which a run of it was cut off, if there is one."""
        before = sorted(self._running.glob(f"{number}-*"), key=lambda path: int(path.name.partition("-")[2]))
        cut_off = next((path for path in reversed(before) if (path / FILE).is_file()), None)
        count = int(before[-1].name.partition("-")[2]) + 1 if before else 0
        return self._running / f"{number}-{count}", cut_off

    def keep(self, number: int, row_id: str) -> str:
        """Pack the directory of a row's last run. Returns where it is: `FILE#ID`."""
        buffer, directory = BytesIO(), self.directories(number)[1]
        with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=3) as packed:
            if directory is not None:
                packed.add(directory, ".")
        with self._lock, closing(sqlite3.connect(self._packed, timeout=30)) as file, file:
            file.execute(_SCHEMA)
            file.execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (row_id, buffer.getvalue()))
        return f"{self._packed}#{row_id}"

    def drop(self, number: int) -> None:
        """Remove the directories of a row that is over."""
        for path in self._running.glob(f"{number}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder of the directories if nothing is left in it but what a kill left half made."""
        if self._running.is_dir() and all(path.name.startswith(".") for path in self._running.iterdir()):
            shutil.rmtree(self._running, ignore_errors=True)


def unpack_record(out: Path, row_id: str, directory: Path) -> None:
    """Put a row's record into a new directory. Raises ConfigError when there is none."""
    packed = out.with_name(f"{out.name}.records")
    row = None
    if packed.is_file():
        with closing(sqlite3.connect(f"file:{packed}?mode=ro", uri=True)) as file:
            row = file.execute("SELECT data FROM records WHERE id = ?", (row_id,)).fetchone()
    if row is None:
        raise ConfigError(
            f"{packed}: there is no record of the row {row_id!r}", hint="batch.records=all keeps every one."
        )
    if directory.exists():
        raise ConfigError(f"{directory}: is there already", hint="Name a new folder.")
    with tarfile.open(fileobj=BytesIO(row[0])) as packed_files:
        packed_files.extractall(directory, filter="data")
