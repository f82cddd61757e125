"""Reads rows of JSON Lines, CSV and Parquet files one by one, and writes rows as CSV or Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.text import TOO_DEEP, is_too_deep

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
MOST_OF_A_CELL = 10_000_000
"""Most characters of a cell in a Parquet file, which may unpack to any size."""
_MOST_UNPACKED = 64_000_000  # bytes of a column
_MOST_RATIO = 200  # to the bytes of the column in the file
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


def load_unique(text: str) -> Any:
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
    """Yield the rows of a Parquet file, with numbers and dates as text as in a text table."""
    pyarrow, parquet = _parquet()
    try:
        texts, at_once = _check_unpacked(parquet.read_metadata(path), path)
        # In a dictionary, a long text shared by many rows is stored once.
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            rows = _rows_of_batches(file.iter_batches(batch_size=at_once), path)
            for number, given in enumerate(map(_without_nulls, rows), start=1):
                yield (
                    number,
                    {
                        name: value if isinstance(value, dict) else str(value)
                        for name, value in given.items()
                    },
                )
    # A KeyError is a name that stands twice in a map.
    except (pyarrow.ArrowException, KeyError) as error:
        raise ConfigError(f"{path}: cannot be read as Parquet: {error}") from None


def _check_unpacked(metadata: Any, path: Path) -> tuple[list[str], int]:
    """Return the text columns, and how many rows may be unpacked at once. Raises ConfigError for a
    column that unpacks to much more than its size in the file."""
    columns = [
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in range(metadata.num_columns)
    ]
    for column in columns:
        size = column.total_uncompressed_size
        if size > max(_MOST_UNPACKED, _MOST_RATIO * column.total_compressed_size):
            raise ConfigError(
                f"{path}: the column {column.path_in_schema} unpacks to {size:,} bytes, more than "
                f"{_MOST_RATIO} times what is in the file",
                hint="Write the rows as JSON Lines.",
            )
    texts = set()
    largest_nested = 1
    for column in columns:
        if "." in column.path_in_schema:
            # A text within a struct may be as long as its column, in each row.
            largest_nested = max(largest_nested, column.total_uncompressed_size)
        elif column.physical_type == "BYTE_ARRAY":
            texts.add(column.path_in_schema)
    return sorted(texts), max(1, min(_AT_ONCE, _MOST_UNPACKED // largest_nested))


def _rows_of_batches(batches: Iterable[Any], path: Path) -> Iterator[JsonObject]:
    """Yield the rows of batches, unpacked one by one. Raises ConfigError for a cell that is too
    long."""
    for batch in batches:
        for row in range(batch.num_rows):
            given = batch.slice(row, 1).to_pylist(maps_as_pydicts="strict")[0]
            for name, value in given.items():
                if isinstance(value, str) and len(value) > MOST_OF_A_CELL:
                    most = f"{MOST_OF_A_CELL:,} characters are the most"
                    raise ConfigError(f"{path}: a cell of {name} has {len(value):,}: {most}")
            yield given


def _without_nulls(value: object) -> Any:
    """Remove from a value the members that only other rows of its column have."""
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(member) for name, member in value.items() if member is not None}


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
