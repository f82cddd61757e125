"""The rows of JSON Lines, CSV and Parquet files, read one by one, and rows written as CSV or Parquet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from aeon.domain.errors import ConfigError

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
_MOST_OF_A_CELL, _AT_ONCE = 2**31 - 1, 1000


def read_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """What each row of a file holds, with its line; in place of a row that cannot be read, a ValueError that says why.
    Raises ConfigError for a file that cannot be read."""
    read = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}.get(path.suffix.lower(), _read_json_lines)
    try:
        yield from read(path)
    except (OSError, csv.Error) as error:
        raise ConfigError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, data in enumerate(file, start=1):
            try:
                yield data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise ConfigError(f"{path}: line {number} is not UTF-8", hint="Save it as CSV UTF-8.") from None


def _read_json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    for line, text in enumerate(_lines(path), start=1):
        if text.strip():
            try:
                yield line, json.loads(text)
            except (ValueError, RecursionError) as error:
                yield line, ValueError(f"not JSON: {error}")


def _read_csv(path: Path) -> Iterator[tuple[int, Any]]:
    csv.field_size_limit(_MOST_OF_A_CELL)
    comma = ";" if ";" in (head := next(_lines(path), "")) and "," not in head else ","
    # Strict: else a quotation mark that is never closed would take all rows after it for one cell.
    reader = csv.DictReader(_lines(path), delimiter="\t" if path.suffix.lower() == ".tsv" else comma, strict=True)
    if len(set(names := reader.fieldnames or [])) < len(names):
        raise ConfigError(f"{path}: two columns have the same name", hint="Give each a name of its own.")
    for cells in reader:
        is_ragged = None in cells or None in cells.values()
        yield reader.line_num, ValueError("another number of cells than the header") if is_ragged else cells


def _parquet() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ConfigError("Parquet needs an extra", hint='pip install "aeon-engine[parquet]"') from None
    return pyarrow, parquet


def _read_parquet(path: Path) -> Iterator[tuple[int, Any]]:
    """Numbers and dates are texts, as in a table of text."""
    pyarrow, parquet = _parquet()
    try:
        with parquet.ParquetFile(path) as file:
            batches = file.iter_batches(batch_size=_AT_ONCE)
            for number, given in enumerate((row for batch in batches for row in batch.to_pylist()), start=1):
                known = ((name, value) for name, value in given.items() if value is not None)
                yield number, {name: value if isinstance(value, str | dict) else str(value) for name, value in known}
    except pyarrow.ArrowException as error:
        raise ConfigError(f"{path}: cannot be read as Parquet: {error}") from None


def write_csv(file: BinaryIO, columns: Iterable[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as CSV in UTF-8, with a header."""
    text = TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="")
    writer = csv.DictWriter(text, list(columns))
    writer.writeheader()
    writer.writerows(rows)
    text.detach()


def write_parquet(file: BinaryIO, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as Parquet; `columns` name each column's type. Raises ConfigError without the extra."""
    pyarrow, parquet = _parquet()
    schema = pyarrow.schema([(name, pyarrow.type_for_alias(kind)) for name, kind in columns.items()])
    rows = iter(rows)
    with parquet.ParquetWriter(file, schema) as writer:
        while some := list(islice(rows, _AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(some, schema))
