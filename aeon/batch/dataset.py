"""The rows of a dataset: JSON Lines, CSV or Parquet, read one by one, each with its task, inputs
and overrides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from aeon.checks.selection import read_outer_checks
from aeon.config.compose.literal import format_value
from aeon.config.settings import BatchColumns
from aeon.domain.checks import OuterCheck
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.tables import SUFFIXES, load_unique, read_rows
from aeon.files.text import require_unicode
from aeon.report.words import one_line

MOST_ROWS = 10_000_000
"""The most rows of a dataset. A small Parquet file may unpack to any number of them."""
REPORTED_ROWS = 250_000
# The name of the same column in datasets for other tools.
_OTHER_TARGET = "expected_output"


@dataclass(frozen=True, slots=True)
class Arm:
    """A named list of overrides that a person measures rows with: any overrides, since they typed
    them. `configuration` identifies the resulting settings among those of other arms."""

    name: str
    overrides: tuple[str, ...]
    configuration: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a dataset. `number` counts the rows from 1, `line` the lines of the file. `problem`
    explains why it cannot be run; the rest may then be missing. `target` is the expected answer,
    empty where there is none. `checks` are its own, `values` the whole original row. In a
    measurement a row is run once for each `arm`; a given `answer` is only judged."""

    number: int
    line: int
    id: str
    task: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    overrides: tuple[str, ...] = ()
    problem: str = ""
    target: str = ""
    metadata: JsonMapping = field(default_factory=dict)
    checks: Mapping[str, OuterCheck] = field(default_factory=dict)
    values: JsonMapping = field(default_factory=dict, compare=False, repr=False)
    arm: Arm | None = None
    answer: str | None = None

    @property
    def key(self) -> str:
        """A digest of its id, which names its files, wherever it stands in the dataset."""
        return digest(self.id).hex()

    @property
    def given(self) -> str:
        """A digest of the row's request, and of the settings of its arm."""
        asked: list[Any] = [self.task, sorted(self.inputs.items()), self.overrides]
        if self.checks:
            asked.append({name: one.model_dump(mode="json") for name, one in self.checks.items()})
        if self.arm is not None:
            asked.append(self.arm.configuration)
        if self.answer is not None:
            asked.append({"answer": self.answer})
        return digest(json.dumps(asked)).hex()


_Rows = Iterator[tuple[Row, JsonMapping]]


def digest(text: str) -> bytes:
    """Return a digest of twelve bytes that stands for a text."""
    return blake2b(text.encode(), digest_size=12).digest()


class Common(NamedTuple):
    """The defaults of rows: a task, and inputs by name."""

    task: str = ""
    inputs: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Dataset:
    """A dataset that has been read through once: `count` rows, no id twice."""

    path: Path
    columns: BatchColumns
    common: Common
    count: int
    state: tuple[int, ...]

    def rows(self) -> Iterator[Row]:
        """Yield every row, in order. Raises ConfigError when the file has changed since it was
        opened."""
        for row, _ in _read(self.path, self.columns, self.common):
            yield row
        if _state_of(self.path) != self.state:
            raise ConfigError(
                f"dataset={self.path}: has changed while the batch was running",
                hint="Repeat the command to resume with the changed rows.",
            )


def open_dataset(
    path: Path,
    columns: BatchColumns,
    common: Common,
    report: Callable[[int], None] = lambda _: None,
) -> Dataset:
    """Read a dataset through; `common` holds the defaults of its rows. `report` gets the number of
    rows read, after every REPORTED_ROWS. Raises ConfigError for a file that is not a dataset or has
    more than MOST_ROWS rows, for duplicate ids, for a column that no row has, and where no row can
    be run."""
    _require_table(path)
    lines: dict[bytes, int] = {}
    missing = columns.list_named()
    can_run = False
    for row, names in _report_on(_read(path, columns, common), path, report):
        missing = missing - names.keys()
        can_run = can_run or not row.problem
        name = digest(row.id)
        if name in lines:
            raise ConfigError(
                f"{path}:{row.line}: the id {row.id!r} is that of line {lines[name]}, too"
            )
        lines[name] = row.line
    if not lines:
        raise ConfigError(f"dataset={path}: there are no rows")
    hint = f"The columns are {one_line(', '.join(map(str, names)), 300)}." if names else ""
    if missing:
        raise ConfigError(
            f"batch.columns: no row of {path} has {', '.join(sorted(missing))}", hint=hint
        )
    if not can_run:
        if names:
            hint += " batch.columns.task=COLUMN names that of the task; task=... is one for all."
        raise ConfigError(f"dataset={path}: no row can be run: {row.problem}", hint=hint)
    return Dataset(path, columns, common, len(lines), _state_of(path))


def _report_on(rows: _Rows, path: Path, report: Callable[[int], None]) -> _Rows:
    for row, given in rows:
        if row.number % REPORTED_ROWS == 0:
            report(row.number)
        if row.number > MOST_ROWS:
            raise ConfigError(
                f"dataset={path}: there are more than {MOST_ROWS:,} rows",
                hint="Split the file; `aeon batch merge` puts the results together.",
            )
        yield row, given


def _state_of(path: Path) -> tuple[int, ...]:
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _read(path: Path, columns: BatchColumns, common: Common) -> _Rows:
    """Yield each row with the object that it was read from."""
    for number, (line, given) in enumerate(read_rows(path), start=1):
        yield _row(number, line, given, columns, common), given if isinstance(given, dict) else {}


def _row(number: int, line: int, given: object, columns: BatchColumns, common: Common) -> Row:
    row_id = f"line-{line}"  # the row's number may be another row's id
    try:
        given = _require_object(given)
        row_id = _identity(given.get(columns.id), columns.id) or str(number)
        own = given.get(columns.task)
        is_given = own is not None and str(own).strip()
        text = require_unicode(_text(own, columns.task) if is_given else common.task, columns.task)
        if not text.strip():
            raise ValueError(f"there is no task in the column {columns.task!r}")
        inputs = {**common.inputs, **_read_inputs(given, columns)}
        overrides = tuple(
            f"{name}={value if _needs_no_quotes(value) else format_value(value)}"
            for name, value in _mapping(given.get(columns.overrides), columns.overrides)
        )
        target = _read_target(given, columns.target) or _read_target(given, _OTHER_TARGET)
        metadata = dict(_mapping(given.get(columns.metadata), columns.metadata))
        checks = read_outer_checks(dict(_mapping(given.get(columns.checks), columns.checks)))
    except (ValueError, RecursionError, ConfigError) as error:
        message = getattr(error, "message", None) or str(error)
        return Row(number, line, row_id, problem=f"line {line}: {message}")
    row = Row(number, line, row_id, text, inputs, overrides)
    return replace(row, target=target, metadata=metadata, checks=checks, values=given)


def _require_object(given: object) -> JsonObject:
    """Return the row as an object. Raises ValueError for any other value, and for a row that names
    files: a dataset may be a stranger's, and would have them sent to a server."""
    if isinstance(given, ValueError):
        raise given
    if not isinstance(given, dict):
        raise ValueError(f"a row is a JSON object, not {type(given).__name__}")
    if "input_files" in given:
        raise ValueError(
            "input_files: a row names no files; those of the command line are given to all "
            "rows, and a program gives each its own: Aeon.run(inputs={'NAME': Path(...)})"
        )
    return given


def _read_inputs(given: JsonMapping, columns: BatchColumns) -> dict[str, str]:
    inputs = {
        name: _text(value, f"inputs.{name}")
        for name, value in _mapping(given.get("inputs"), "inputs")
    }
    for name, column in columns.inputs.items():
        inputs[name] = _text(given.get(column), column)
    return inputs


def _read_target(given: JsonMapping, name: str) -> str:
    """Read the expected answer: a text unchanged, any other JSON value as JSON."""
    value = given.get(name)
    if value is None or isinstance(value, str):
        return require_unicode(value or "", name)
    return json.dumps(value, ensure_ascii=False)


def _needs_no_quotes(value: object) -> bool:
    """Check whether an override's value can be written without quotes; a text with commas would
    then be several values."""
    return isinstance(value, str) and ("," not in value or value[:1] in ("[", "{", "'", '"'))


def _identity(value: object, name: str) -> str:
    if isinstance(value, bool | dict | list):
        raise ValueError(f"{name}: must be a text or a number, not {type(value).__name__}")
    return require_unicode("" if value is None else str(value), name)


def _mapping(value: object, name: str) -> list[tuple[str, Any]]:
    """Return the members of an object, which a table's cell holds as JSON."""
    value = load_unique(value) if isinstance(value, str) and value.strip() else value
    if value is None or value == "":
        return []
    if not isinstance(value, dict):
        raise ValueError(f"{name}: must be an object of names and values")
    return list(value.items())


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be a text, not {type(value).__name__}")
    return value


def _require_table(path: Path) -> None:
    if path.suffix.lower() not in SUFFIXES or path.is_dir():
        raise ConfigError(
            f"dataset={path}: must be a file {', '.join(SUFFIXES)}",
            hint="JSON Lines, CSV or Parquet.",
        )
