"""The records of a batch's rows: a directory while a row runs, then an entry in one file, or
nothing."""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from io import BytesIO
from pathlib import Path

from aeon.batch.dataset import Row
from aeon.batch.results import read_places
from aeon.config.origin import FILE, is_own_run
from aeon.domain.errors import ArtefactError, ConfigError

MAX_RECORD_BYTES = 2_000_000_000
"""The most bytes that the record of a row may unpack to."""
_SCHEMA = "CREATE TABLE IF NOT EXISTS records (id TEXT PRIMARY KEY, data BLOB NOT NULL)"


class Running:
    """The folder in which rows run, each in a directory named by its key. Thread-safe. Directories
    that the person has not made are not resumed, unless it `trusts_all`."""

    def __init__(self, folder: Path, *, trusts_all: bool = False) -> None:
        self.folder = folder
        self._trusts_all = trusts_all

    @property
    def warnings(self) -> Iterator[str]:
        """Warnings to show before rows are resumed."""
        others = [
            path for path in self.folder.glob(f"*/{FILE}") if not self._is_usable(path.parent)
        ]
        if others:
            yield (
                f"{self.folder}: {len(others)} of the rows begun there are not known as yours: "
                "they are run anew; trust=true resumes them"
            )

    def _is_usable(self, directory: Path) -> bool:
        return (directory / FILE).is_file() and (self._trusts_all or is_own_run(directory))

    def directories(self, key: str) -> tuple[Path, Path | None]:
        """Return a new directory for a row, and that of its interrupted run, if there is one."""
        # By number: as text, 10 comes before 9.
        before = sorted(
            self.folder.glob(f"{key}-*"), key=lambda path: int(path.name.partition("-")[2])
        )
        cut_off = next(filter(self._is_usable, reversed(before)), None)
        count = int(before[-1].name.partition("-")[2]) + 1 if before else 0
        return self.folder / f"{key}-{count}", cut_off

    def pack(self, key: str) -> bytes | None:
        """Return the directory of a row's last run as one archive; None when there is none."""
        directory = self.directories(key)[1]
        return None if directory is None else _pack({directory: "."})

    def pack_all(self, key: str) -> bytes | None:
        """Return all directories of a row as one archive, to resume it elsewhere; None when there
        is none."""
        directories = sorted(filter(self._is_usable, self.folder.glob(f"{key}-*")))
        return _pack({path: path.name for path in directories}) if directories else None

    def unpack_all(self, packed: bytes) -> None:
        """Unpack the directories of a row here."""
        with tarfile.open(fileobj=BytesIO(packed)) as files:
            files.extractall(self.folder, filter="data")

    def drop(self, key: str) -> None:
        """Remove the directories of a row that is over."""
        for path in self.folder.glob(f"{key}-*"):
            shutil.rmtree(path, ignore_errors=True)

    def drop_done(self, done: Iterable[Row]) -> None:
        """Remove the directories of finished rows, which a kill has left behind."""
        left = {path.name.partition("-")[0] for path in self.folder.glob("*-*")}
        for row in done if left else ():
            if row.key in left:
                self.drop(row.key)

    def close(self) -> None:
        """Remove the folder if only the incomplete remains of a kill are left in it."""
        if self.folder.is_dir() and all(
            path.name.startswith(".") for path in self.folder.iterdir()
        ):
            shutil.rmtree(self.folder, ignore_errors=True)


def _pack(directories: Mapping[Path, str]) -> bytes:
    """Return directories as one archive, each under its name there."""
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=3) as packed:
        for directory, name in directories.items():
            packed.add(directory, name)
    return buffer.getvalue()


class Records:
    """The file `OUT.records` of the batch whose rows go to `out`, created with its first record."""

    def __init__(self, out: Path) -> None:
        self._path = out.with_name(f"{out.name}.records")
        self._file: sqlite3.Connection | None = None

    def keep(self, row_id: str, packed: bytes) -> str:
        """Store a row's record, replacing an earlier one. Returns its place: `FILE#ID`. Raises
        ArtefactError."""
        self._execute("INSERT OR REPLACE INTO records VALUES (?, ?)", (row_id, packed))
        return f"{self._path}#{row_id}"

    def drop(self, row_id: str) -> None:
        """Remove the record of a row's earlier run, if there is one. Raises ArtefactError."""
        if self._file is not None or self._path.is_file():
            self._execute("DELETE FROM records WHERE id = ?", (row_id,))

    def _execute(self, statement: str, values: tuple[str | bytes, ...]) -> None:
        try:
            if self._file is None:
                self._file = sqlite3.connect(self._path, timeout=30, isolation_level=None)
                for first in ("PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", _SCHEMA):
                    self._file.execute(first)
            self._file.execute(statement, values)
        except sqlite3.Error as error:
            raise ArtefactError(
                f"{self._path} cannot be written: {error}", hint="Free space."
            ) from error

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def unpack_record(out: Path, row_id: str, directory: Path) -> None:
    """Unpack a row's record into a new directory. Raises ConfigError when there is none."""
    named = Path(_find_record(out, row_id).removesuffix(f"#{row_id}"))
    packed = out.with_name(f"{out.name}.records")
    # After a merge the record is in the shard's file, here or in its original folder.
    places = (packed, out.with_name(named.name), named)
    packed = next((path for path in places if path.is_file()), packed)
    content = _read_record(packed, row_id) if packed.is_file() else None
    if content is None:
        raise ConfigError(
            f"{packed}: the record is missing", hint="Move this file together with the results."
        )
    if directory.exists():
        raise ConfigError(f"{directory}: exists already", hint="Name a new folder.")
    try:
        _unpack(content, directory)
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ConfigError(f"{packed}: the record cannot be unpacked: {error}") from None


def _find_record(out: Path, row_id: str) -> str:
    """Return the record's place as a row's line states it. Raises ConfigError."""
    line = next((line for _, line in read_places(out) if line["id"] == row_id), None)
    if line is None:
        raise ConfigError(f"{out}: there is no row with the id {row_id!r}")
    if line.get("record"):
        return str(line["record"])
    hint = "batch.records=failed keeps those that failed or did not converge, all every one."
    if line["ended"] == "invalid":
        hint = f"It was never run: {line['error']['message']}."
    raise ConfigError(f"{out}: the row {row_id!r}, {line['ended']}, left no record", hint=hint)


def _read_record(packed: Path, row_id: str) -> bytes | None:
    """Read the record of a row from a file of records. Raises ConfigError for any other file."""
    try:
        # Opened for writing too: SQLite would else leave files next to it.
        with closing(sqlite3.connect(packed)) as file:
            row = file.execute("SELECT data FROM records WHERE id = ?", (row_id,)).fetchone()
    except sqlite3.Error as error:
        raise ConfigError(f"{packed}: this is no file of records: {error}") from None
    return row[0] if row is not None and isinstance(row[0], bytes) else None


def _unpack(packed: bytes, directory: Path) -> None:
    """Unpack a record. Raises ConfigError for one above MAX_RECORD_BYTES."""
    left = MAX_RECORD_BYTES
    with tarfile.open(fileobj=BytesIO(packed)) as files:
        for member in files:
            left -= member.size
            if left < 0:
                most = f"{MAX_RECORD_BYTES:,} bytes, the most that one may have"
                raise ConfigError(f"the record unpacks to more than {most}")
            files.extract(member, directory, filter="data")
