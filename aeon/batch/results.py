"""The rows that a batch writes: one JSON object a line, in a file that a later start goes on with."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aeon.batch.dataset import Row
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.files.text import encode_json, unwritable_error
from aeon.observability.artefacts import as_artefact_error

Line = dict[str, Any]
AGAIN = ("failed", "interrupted", "invalid")
"""How a row may have ended that is run again when the batch goes on."""
_ALWAYS = {"id", "row", "of", "ended", "configuration"}


def line_of(row: Row, of: int, configuration: str, result: RunResult) -> Line:
    """The line of a row that was run."""
    usage = result.usage.total
    error = result.error and {"type": result.error.type, "message": result.error.message}
    return {
        "id": row.id,
        "row": row.number,
        "of": of,
        "ended": result.termination_reason,
        "converged": result.converged,
        "answer": result.answer,
        "scores": result.scores.model_dump(mode="json") if result.scores else None,
        "passes": result.passes,
        "calls": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cost": usage.cost,
        "seconds": round(result.timings.total_seconds, 3),
        "error": error,
        "synthetic": result.synthetic,
        "record": None,
        "configuration": configuration,
    }


def problem_line(row: Row, of: int, configuration: str, ended: str, message: str) -> Line:
    """The line of a row that could not be run (`invalid`), or failed without a result (`failed`)."""
    error = {"type": "row" if ended == "invalid" else "run", "message": message}
    return {"id": row.id, "row": row.number, "of": of, "ended": ended, "error": error, "configuration": configuration}


class Results:
    """The file of a batch, or without a `path` what `put` does with each line. `done` are the ids that need not be run
    again, `ends` how all rows in it ended, `cost` what they cost, None if that of one is not known. Raises ConfigError
    for a file of another configuration, or one that is no batch's."""

    def __init__(self, path: Path | None, configuration: str, put: Callable[[bytes], object] = lambda _: None) -> None:
        self.path, self.ends, self.done, self._put = path, Counter[str](), set[str](), put
        self.cost: float | None = 0.0
        if path is None:
            return
        if path.exists():
            self._take_over(path, configuration)
        try:
            self._file = path.open("ab", buffering=0)
        except OSError as error:
            raise ConfigError(unwritable_error(path, error).message, hint="Name another file with out=.") from None
        self._put = self._append

    def _take_over(self, path: Path, configuration: str) -> None:
        """Keep the lines of rows that are done; a last line that a kill cut off is none."""
        if any(line["configuration"] != configuration for line in read_results(path)):
            hint = "Name another file with out=, or give the configuration it was begun with."
            raise ConfigError(f"out={path}: its rows were made with another configuration", hint=hint)
        beside = path.with_name(f".{path.name}.tmp")
        with as_artefact_error(beside), beside.open("wb") as file:
            for line in read_results(path):
                if line["ended"] not in AGAIN:
                    self._count(line)
                    self.done.add(line["id"])
                    file.write(encode_json(line) + b"\n")
        beside.replace(path)

    def write(self, line: Mapping[str, Any]) -> None:
        """Append a line. Raises ArtefactError when there is no room."""
        self._put(encode_json(dict(line)) + b"\n")
        self._count(line)

    def close(self) -> None:
        """Close the file."""
        if self.path is not None:
            self._file.close()

    def _append(self, data: bytes) -> None:
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError as error:
            raise unwritable_error(self._file.name, error) from error

    def _count(self, line: Mapping[str, Any]) -> None:
        self.ends[line["ended"]] += 1
        cost = line.get("cost", 0.0)
        self.cost = None if cost is None or self.cost is None else self.cost + cost


def read_results(path: Path) -> Iterator[Line]:
    """The lines of a batch's file. Raises ConfigError for one that is none."""
    number = 0
    try:
        with path.open("rb") as file:
            for text in file:
                number += 1
                if text.endswith(b"\n"):
                    line = json.loads(text)
                    if not isinstance(line, dict) or not line.keys() >= _ALWAYS:
                        raise ValueError("no row of a batch")
                    yield line
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise ConfigError(f"{path}:{number}: {error}", hint="Name a file that `aeon batch` has written.") from None


def merge(paths: Sequence[Path]) -> list[Line]:
    """The rows of the shards of one batch, in the order of the dataset. Raises ConfigError for files of different
    batches, rows that stand twice, and rows that are missing."""
    lines = [(path, line) for path in paths for line in read_results(path)]
    for name in ("configuration", "of"):
        if len({line[name] for _, line in lines}) > 1:
            raise ConfigError(
                f"the files are of different batches: {name} differs", hint="Merge shards of one dataset."
            )
    found: dict[int, Path] = {}
    for path, line in lines:
        if line["row"] in found:
            raise ConfigError(f"row {line['row']} stands in {found[line['row']]} and in {path}")
        found[line["row"]] = path
    of = lines[0][1]["of"] if lines else 0
    if missing := [row for row in range(1, of + 1) if row not in found]:
        shown = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise ConfigError(f"{len(missing)} of {of} rows are missing: {shown}", hint="Run the shard that has them.")
    return sorted((line for _, line in lines), key=lambda line: line["row"])


def in_order(lines: Iterable[Line], rows: Iterable[int]) -> Iterator[Line]:
    """Lines as they come, in the order of their rows, which `rows` tells."""
    waiting: dict[int, Line] = {}
    wanted = iter(rows)
    row = next(wanted, None)
    for line in lines:
        waiting[line["row"]] = line
        while row in waiting:
            yield waiting.pop(row)
            row = next(wanted, None)
    yield from (waiting[row] for row in sorted(waiting))
