"""Reads a Parquet file, which may unpack to any size, in a separate process: the file on standard
input, its rows as JSON Lines on standard output. It is run by its path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

OUT_OF_MEMORY = 3
"""The exit status without enough memory."""
_MOST_OF_A_ROW = 64_000_000  # characters as JSON
_MOST_VALUES = 1_000_000  # of a nested column in a row group
_VALUES_A_ROW = 10_000
_AT_ONCE = 1000
_BYTES_AT_ONCE = 64_000_000


def read_rows(file: Any, most_of_a_cell: int) -> Iterator[str]:
    """Yield each row as JSON, with numbers and dates as text as in a text table. Raises ValueError
    for a row that is too long, and whatever pyarrow raises."""
    from pyarrow import parquet

    metadata = parquet.read_metadata(file)
    texts, at_once = _plan_batches(metadata)
    file.seek(0)
    # In a dictionary, a long text shared by many rows is stored once.
    opened = parquet.ParquetFile(file, read_dictionary=texts)
    for batch in opened.iter_batches(batch_size=at_once, use_threads=False):
        for row in range(batch.num_rows):  # unpacked one by one
            given = batch.slice(row, 1).to_pylist(maps_as_pydicts="strict")[0]
            text = json.dumps(_to_texts(given, most_of_a_cell), default=str)
            if len(text) > _MOST_OF_A_ROW:
                raise ValueError(
                    f"a row has {len(text):,} characters: {_MOST_OF_A_ROW:,} are the most"
                )
            yield text


def _plan_batches(metadata: Any) -> tuple[list[str], int]:
    """Return the text columns, and how many rows to unpack at once, by what the footer says of the
    columns. Raises ValueError for a nested column of too many values."""
    texts = set()
    largest = 1
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, size = column.path_in_schema, column.total_uncompressed_size
            most = max(_MOST_VALUES, _VALUES_A_ROW * group.num_rows)
            if "." not in name:
                largest = max(largest, size // max(1, group.num_rows))
                texts.update([name] if column.physical_type == "BYTE_ARRAY" else [])
            elif column.num_values > most:
                raise ValueError(
                    f"the nested column {name} has {column.num_values:,} values: "
                    f"{most:,} are the most for its rows"
                )
            else:
                # A text within a struct may be as long as its column, in each row.
                largest = max(largest, size)
    return sorted(texts), max(1, min(_AT_ONCE, _BYTES_AT_ONCE // largest))


def _to_texts(given: dict[str, Any], most_of_a_cell: int) -> dict[str, Any]:
    row = {}
    for name, value in _without_nulls(given).items():
        if isinstance(value, str) and len(value) > most_of_a_cell:
            most = f"{most_of_a_cell:,} characters are the most"
            raise ValueError(f"a cell of {name} has {len(value):,}: {most}")
        row[name] = value if isinstance(value, dict) else str(value)
    return row


def _without_nulls(value: object) -> Any:
    """Remove from a value the members that only other rows of its column have."""
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(member) for name, member in value.items() if member is not None}


def main() -> None:
    """Print the rows, and an error as a JSON string; the arguments are `CHARACTERS_OF_A_CELL
    MEMORY_BYTES SECONDS`, all maxima."""
    sys.path.append(str(Path(__file__).resolve().parents[3]))
    from aeon.files.inputs.child import limit_resources

    most_of_a_cell, memory_bytes, seconds = map(int, sys.argv[1:])
    limit_resources(memory_bytes, seconds)
    try:
        for text in read_rows(sys.stdin.buffer, most_of_a_cell):
            sys.stdout.write(f"{text}\n")
    except MemoryError:
        _leave(OUT_OF_MEMORY)
    except Exception as error:  # a parser can fail in many ways on broken input
        sys.stdout.write(f"{json.dumps(f'{error}'[:1000])}\n")
    _leave(0)


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    # At an orderly end, threads of pyarrow may abort the process.
    os._exit(status)


if __name__ == "__main__":
    main()
