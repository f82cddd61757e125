"""The rows of a dataset: JSON Lines or CSV, read one by one, each with its task, inputs and overrides."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from aeon.config.compose.literal import format_value
from aeon.config.settings import BatchColumns
from aeon.domain.errors import ConfigError
from aeon.files.text import require_unicode

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv")
_ID_BYTES = 12


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a dataset. `number` counts the rows from 1, `line` the lines of the file. `problem` says why it cannot
    be run; then the rest may be missing."""

    number: int
    line: int
    id: str
    task: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that has been read through once: `count` rows, no id twice."""

    path: Path
    columns: BatchColumns
    task: str
    count: int

    def rows(self) -> Iterator[Row]:
        """Every row, in order. Raises ConfigError when the file has changed so that it cannot be read."""
        return _read(self.path, self.columns, self.task)


def open_dataset(path: Path, columns: BatchColumns, task: str = "") -> Dataset:
    """Read a dataset through; `task` is that of rows without one of their own. Raises ConfigError for a file that is no
    dataset, for ids that stand twice, and for a column that no row has."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"dataset={path}: must be one of {', '.join(SUFFIXES)}", hint="JSON Lines or CSV.")
    lines: dict[bytes, int] = {}
    for row in _read(path, columns, task):
        name = blake2b(row.id.encode(), digest_size=_ID_BYTES).digest()
        if name in lines:
            raise ConfigError(f"{path}:{row.line}: the id {row.id!r} is that of line {lines[name]}, too")
        lines[name] = row.line
    if not lines:
        raise ConfigError(f"dataset={path}: there are no rows")
    named = columns.named()
    if named and (missing := named.difference(*(given for _, given in _objects(path) if isinstance(given, dict)))):
        raise ConfigError(f"batch.columns: no row of {path} has {', '.join(sorted(missing))}")
    return Dataset(path, columns, task, len(lines))


def _read(path: Path, columns: BatchColumns, task: str) -> Iterator[Row]:
    for number, (line, given) in enumerate(_objects(path), start=1):
        yield _row(number, line, given, columns, task)


def _objects(path: Path) -> Iterator[tuple[int, Any]]:
    """What each row holds, with its line; of a row that is no JSON the ValueError."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix.lower() in (".csv", ".tsv"):
                reader = csv.DictReader(file, dialect="excel-tab" if path.suffix.lower() == ".tsv" else "excel")
                for cells in reader:
                    is_ragged = None in cells or None in cells.values()
                    yield reader.line_num, ValueError("another number of cells than the header") if is_ragged else cells
                return
            for line, text in enumerate(file, start=1):
                if text.strip():
                    try:
                        yield line, json.loads(text)
                    except (ValueError, RecursionError) as error:
                        yield line, ValueError(f"not JSON: {error}")
    except UnicodeDecodeError as error:
        raise ConfigError(f"dataset={path}: not UTF-8: byte {error.start} of what is read: {error.reason}") from None
    except (OSError, csv.Error) as error:
        raise ConfigError(f"dataset={path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _row(number: int, line: int, given: Any, columns: BatchColumns, task: str) -> Row:
    if not isinstance(given, dict):
        reason = str(given) if isinstance(given, ValueError) else f"a row is a JSON object, not {type(given).__name__}"
        return Row(number, line, str(number), problem=f"line {line}: {reason}")
    identity = given.get(columns.id)
    row_id = str(number) if identity in (None, "") else str(identity)
    try:
        own = given.get(columns.task)
        text = require_unicode(_text(own, columns.task) if own is not None else task, columns.task)
        if not text.strip():
            raise ValueError(f"there is no task: give it in the column {columns.task!r}, or one for all with task=")
        inputs = {str(name): _text(value, f"inputs.{name}") for name, value in _mapping(given.get("inputs"), "inputs")}
        inputs |= {name: _text(given.get(column), column) for name, column in columns.inputs.items()}
        overrides = tuple(
            f"{name}={value if isinstance(value, str) else format_value(value)}"
            for name, value in _mapping(given.get(columns.overrides), columns.overrides)
        )
    except (ValueError, ConfigError) as error:
        message = getattr(error, "message", None) or str(error)
        return Row(number, line, row_id, problem=f"line {line}: {message}")
    return Row(number, line, row_id, text, inputs, overrides)


def _mapping(value: Any, name: str) -> list[tuple[str, Any]]:
    """The members of an object, which a cell of a table holds as JSON."""
    value = json.loads(value) if isinstance(value, str) and value.strip() else value
    if value in (None, ""):
        return []
    if not isinstance(value, dict):
        raise ValueError(f"{name}: must be an object of names and values")
    return list(value.items())


def _text(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a text, not {type(value).__name__}")
    return value
