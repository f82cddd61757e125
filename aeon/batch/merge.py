"""Merges the shards of a batch in the order of the dataset, as JSON Lines, CSV or Parquet."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

from aeon.batch.results import read_places
from aeon.batch.summary import SCORES, Line, Summary
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonObject
from aeon.files.jsonl import encode_line
from aeon.files.tables import write_csv, write_parquet
from aeon.files.text import unwritable_error

COLUMNS: dict[str, str] = {
    "id": "string",
    "row": "int64",
    "ended": "string",
    "converged": "bool",
    "answer": "string",
    **dict.fromkeys(SCORES, "double"),
    "reason_codes": "string",
    **dict.fromkeys(("passes", "steps_left", "calls", "input_tokens", "output_tokens"), "int64"),
    "unreported": "string",
    "cost": "double",
    "seconds": "double",
    "unusable_steps": "string",
    "unusable_calls": "string",
    "degraded": "string",
    "degraded_messages": "string",
    "error": "string",
    "synthetic": "bool",
    "record": "string",
}
"""The columns of a table of results, with their types in Parquet."""
_LISTS = {
    **dict.fromkeys(
        ("reason_codes", "unusable_steps", "unusable_calls", "unreported", "degraded"), ", "
    ),
    "degraded_messages": "; ",
}
"""The columns that are lists in a line, with what separates their values in a table."""


def merge(paths: Sequence[Path], out: Path) -> Summary:
    """Write the rows of one batch's shards into a new file, by its suffix JSON Lines, CSV or
    Parquet. Raises ConfigError for files of different batches, duplicate or missing rows, and a
    file that cannot be written."""
    suffix = out.suffix.lower()
    if suffix not in (".jsonl", ".ndjson", ".csv", ".parquet"):
        raise ConfigError(
            f"out={out}: a merge writes .jsonl, .csv or .parquet",
            hint="Name one of these with out=.",
        )
    places = _find_places(paths)
    summary = Summary(len(places) - 1)
    beside = out.with_name(f".{out.name}.{uuid4().hex}.tmp")
    try:
        with beside.open("xb") as file:
            rows = _rows(paths, places, summary)
            if suffix == ".csv":
                write_csv(file, COLUMNS, map(_flat, rows))
            elif suffix == ".parquet":
                write_parquet(file, COLUMNS, map(_flat, rows))
            else:
                file.writelines(map(encode_line, rows))
        beside.replace(out)
    except OSError as error:
        raise ConfigError(
            unwritable_error(out, error).message, hint="Name another file with out=."
        ) from None
    finally:
        beside.unlink(missing_ok=True)
    return summary


def _find_places(paths: Sequence[Path]) -> array[int]:
    """Return the place of each row's line, by the row's number: the byte, times the number of
    files, plus the file's index."""
    places = array("q")
    configuration = ""
    for index, path in enumerate(paths):
        for place, line in read_places(path):
            if not places:
                places = array("q", [-1]) * (line["of"] + 1)
                configuration = line["configuration"]
            _require_same("of", line, len(places) - 1)
            _require_same("configuration", line, configuration)
            row = line["row"]
            if not 1 <= row < len(places):
                raise ConfigError(f"{path}: row {row} is not among the {line['of']} of the dataset")
            if places[row] >= 0:
                raise ConfigError(
                    f"row {row} stands in {paths[places[row] % len(paths)]} and in {path}"
                )
            # One number, since there may be millions of rows.
            places[row] = place * len(paths) + index
    _require_all(places)
    return places or array("q", [-1])


def _require_same(name: str, line: Line, expected: int | str) -> None:
    if line[name] != expected:
        problem = f"the files are of different batches: {name} differs"
        raise ConfigError(problem, hint="Merge shards of one dataset.")


def _require_all(places: array[int]) -> None:
    if missing := [row for row, place in enumerate(places) if row and place < 0]:
        shown = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        hint = "Run the shard that has them; repeat the command of a stopped batch to resume it."
        raise ConfigError(
            f"{len(missing)} of {len(places) - 1} rows are missing: {shown}", hint=hint
        )


def _rows(paths: Sequence[Path], places: array[int], summary: Summary) -> Iterator[Line]:
    with ExitStack() as opened:
        files = [opened.enter_context(path.open("rb")) for path in paths]
        for place in places[1:]:
            file = files[place % len(paths)]
            file.seek(place // len(paths))
            line: Line = json.loads(file.readline())
            summary.add(line)
            yield line


def _flat(line: Line) -> JsonObject:
    """Return a line as a row of a table."""
    whole = {
        **line,
        **(line.get("scores") or {}),
        **{name: separator.join(line.get(name) or ()) for name, separator in _LISTS.items()},
        "error": (line.get("error") or {}).get("message"),
    }
    return {name: whole.get(name) for name in COLUMNS}
