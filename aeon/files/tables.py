"""Reads rows of JSON Lines, CSV and Parquet files one by one, and writes rows as CSV or Parquet."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.secret_forms import make_environment
from aeon.files.text import TOO_DEEP, is_too_deep

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
MOST_OF_A_CELL = 10_000_000
"""Most characters of a cell in a Parquet file, which may unpack to any size."""
MOST_MEMORY = 2 * 2**30
"""Bytes of memory that reading a Parquet file may take, in a process of its own."""
_SECONDS = 60  # of computing that reading a Parquet file may take
_BYTES_A_SECOND = 50_000  # of the file, which add to that
_CHILD = Path(__file__).parent / "inputs" / "parquet_child.py"
_ENDS = {
    3: f"it needs more than {MOST_MEMORY // 2**20:,} MB of memory",
    -getattr(signal, "SIGXCPU", 0): "it takes too long for a file of its size",
}
_LONGEST_CELL_OF_CSV = 2**31 - 1  # the most that every system's C type for it holds
_AT_ONCE = 1000


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each row of a file with its line number; for an unreadable row, a ValueError with the
    reason. Raises ConfigError for an unreadable file."""
    read = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}.get(
        path.suffix.lower(), _read_json_lines
    )
    line = 0
    try:
        for line, given in read(path):
            yield line, given
    except csv.Error:
        hint = 'In a cell that begins with one, each within it is doubled: "say ""yes"" now".'
        raise ConfigError(
            f"{path}: a quotation mark from line {line + 1} on is not closed", hint=hint
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None


def _lines(path: Path, newline: str) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline=newline) as file:
        for number, text in enumerate(file, start=1):
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ConfigError(
                    f"{path}: line {number} is not UTF-8", hint="Save it as UTF-8."
                ) from None
            yield text


def _read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(_lines(path, "\n"), start=1):
        if text.strip():
            try:
                yield line, load_unique(text.rstrip())
            except ValueError as error:
                where = (
                    f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                )
                yield line, ValueError(f"not JSON{where}: {getattr(error, 'msg', error)}")


def _unique_members(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Make an object from its members. Raises ValueError for a repeated name, because readers
    differ in which value they use."""
    made: JsonObject = {}
    for name, value in pairs:
        if name in made:
            raise ValueError(f"the name {name!r} is repeated in an object")
        made[name] = value
    return made


def load_unique(text: str | bytes) -> Any:
    """Parse JSON without repeated names in objects and with limited nesting. Raises ValueError."""
    try:
        value = json.loads(text, object_pairs_hook=_unique_members)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if is_too_deep(value):
        raise ValueError(TOO_DEEP)
    return value


def _read_csv(path: Path) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(_LONGEST_CELL_OF_CSV)
    head = re.sub('"[^"]*"', "", next(_lines(path, ""), ""))  # a quoted name may contain either
    comma = max("\t;" if path.suffix.lower() == ".tsv" else ",;\t", key=head.count)
    # Strict: otherwise an unclosed quotation mark would turn all later rows into one cell.
    reader = csv.reader(_lines(path, ""), delimiter=comma, strict=True)
    names = next(reader, [])
    known = [name for name in names if name]
    if len(set(known)) < len(known):
        raise ConfigError(
            f"{path}: two columns have the same name", hint="Give each a name of its own."
        )
    problem = (
        f"cells, and the header has {len(names)}; a cell with {comma!r} is written "
        "in quotation marks"
    )
    for cells in filter(None, reader):
        is_whole = len(cells) == len(names)
        given = {name: cell for name, cell in zip(names, cells, strict=False) if name}
        yield reader.line_num, given if is_whole else ValueError(f"{len(cells)} {problem}")


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError(
            "Parquet needs an extra", hint='pip install "aeon-engine[parquet]"'
        ) from None
    return pyarrow, parquet


def _read_parquet(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a Parquet file as a separate process unpacks them, with limits: what the
    file says of its own sizes may be forged."""
    _parquet()
    number = 0
    with path.open("rb") as file, _start_child(file) as child:
        try:
            for number, line in enumerate(child.stdout or (), start=1):
                given = json.loads(line)
                if isinstance(given, str):
                    raise _unreadable_parquet(path, given)
                yield number, given
            status = child.wait()
        finally:
            child.kill()
    if status:
        problem = _ENDS.get(status, f"what reads it ended with status {status}")
        raise _unreadable_parquet(path, f"after {number:,} rows, {problem}")


def _start_child(file: BinaryIO) -> subprocess.Popen[bytes]:
    seconds = _SECONDS + os.fstat(file.fileno()).st_size // _BYTES_A_SECOND
    # `-P`: modules next to the child must not replace the standard library's.
    command = [sys.executable, "-P", str(_CHILD)]
    bounds = map(str, (MOST_OF_A_CELL, MOST_MEMORY, seconds))
    # Other memory pools reserve much more than they use.
    env = {**make_environment(), "ARROW_DEFAULT_MEMORY_POOL": "system"}
    return subprocess.Popen(
        [*command, *bounds],
        stdin=file,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
    )


def _unreadable_parquet(path: Path, problem: str) -> ConfigError:
    return ConfigError(
        f"{path}: cannot be read as Parquet: {problem}", hint="Write the rows as JSON Lines."
    )


_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_csv(file: BinaryIO, columns: Iterable[str], rows: Iterable[JsonMapping]) -> None:
    """Write rows as CSV in UTF-8 with a header. An apostrophe is put before text that a spreadsheet
    would read as a formula, so that it is shown unchanged."""
    text = TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    writer = csv.DictWriter(text, list(columns))
    writer.writeheader()
    writer.writerows({name: _as_text(value) for name, value in row.items()} for row in rows)
    text.detach()


def _as_text(value: object) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def write_parquet(file: BinaryIO, columns: Mapping[str, str], rows: Iterable[JsonMapping]) -> None:
    """Write rows as Parquet; `columns` maps each column to its type. Raises ConfigError without the
    extra."""
    pyarrow, parquet = _parquet()
    schema = pyarrow.schema(
        [(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()]
    )
    rows = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while some := list(islice(rows, _AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema))
