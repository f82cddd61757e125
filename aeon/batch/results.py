"""The results of a batch: one JSON object a line, in a file that a later start resumes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryFile
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from aeon.batch.dataset import MOST_ROWS, Dataset, Row, digest
from aeon.batch.identity import find_differing_keys
from aeon.batch.summary import Line, Summary, is_final
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.domain.result import RunResult
from aeon.files.jsonl import JsonLines, encode_line
from aeon.files.secret_forms import mask
from aeon.files.text import encode_json, hold, load_json
from aeon.report.words import count_noun, one_line

_Count = Annotated[int, Field(ge=0)]
_RowCount = Annotated[int, Field(ge=1, le=MOST_ROWS)]
_Digest = Annotated[str, Field(pattern="^([0-9a-f]{2})*$")]


class _Strict(BaseModel):
    model_config = ConfigDict(strict=True)


class _Error(_Strict):
    type: str
    message: str


class _Scores(_Strict):
    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency_score: float | None = None


class _Written(_Strict):
    """The fields of a written line that are read again; rows that were not run have only the first
    ones."""

    id: str
    row: _RowCount
    of: _RowCount
    ended: str
    configuration: str
    given: _Digest
    error: _Error | None = None
    converged: bool | None = None
    answer: str | None = None
    scores: _Scores | None = None
    reason_codes: list[str] = []
    judged_by: list[str] = []
    passes: _Count = 0
    steps_left: _Count = 0
    unusable_steps: list[str] = []
    unusable_calls: list[str] = []
    degraded: list[str] = []
    degraded_messages: list[str] = []
    calls: _Count = 0
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    unreported: list[str] = []
    cost: float | None = None
    seconds: float = 0.0
    synthetic: bool = False
    record: str | None = None


def line_of(row: Row, of: int, configuration: str, result: RunResult) -> Line:
    """Return the line of a row that was run."""
    usage = result.usage.total
    error = result.error
    return {
        **_line(
            row,
            of,
            configuration,
            result.termination_reason,
            (error.type, error.message) if error else None,
        ),
        "converged": result.converged,
        "answer": result.answer,
        "scores": result.scores.model_dump(mode="json") if result.scores else None,
        "reason_codes": list(result.reason_codes),
        "judged_by": result.provider.models.get("grader", []),
        "checks": [check.model_dump(mode="json") for check in result.checks],
        "passes": result.passes,
        "steps_left": len(result.steps_left),
        "unusable_steps": list(result.unusable_steps),
        "unusable_calls": list(result.unusable_calls),
        "degraded": sorted({one.kind for one in result.degraded}),
        "degraded_messages": list(dict.fromkeys(one.message for one in result.degraded)),
        "calls": usage.requests,
        **usage.model_dump(include={"input_tokens", "output_tokens", "cost"}),
        "unreported": list(result.usage.unreported),
        "seconds": round(result.timings.total_seconds, 3),
        "synthetic": result.synthetic,
        "record": None,
    }


def problem_line(
    row: Row, of: int, configuration: str, ended: str, message: str, kind: str = "run"
) -> Line:
    """Return the line of a row that could not be run (`invalid`), or failed without a result
    (`failed`)."""
    return _line(row, of, configuration, ended, ("row" if ended == "invalid" else kind, message))


def _line(row: Row, of: int, configuration: str, ended: str, error: tuple[str, str] | None) -> Line:
    return {
        "id": row.id,
        "row": row.number,
        "of": of,
        "ended": ended,
        "configuration": configuration,
        "given": row.given,
        "error": error and {"type": error[0], "message": error[1]},
    }


class ReaderGone(ArtefactError):
    """Standard output lost its reader, as with `| head`: the batch ends without a message."""


class Results:
    """The lines of a batch, appended to its file, or without a `path` passed to `put`, which
    returns False when nobody reads them. `done` is 1 at the number of each row that need not be run
    again, as `is_done` judges by its line; `summary` covers the lines of these rows, then all lines.
    Until `begin` the file is held, but stays as it was. With `changed="again"` rows
    whose request changed are run again. With `keeps_others` lines of rows that the dataset lacks
    stay in the file; otherwise they are refused. Raises ConfigError for a file of another
    configuration, of other rows, of no batch, or of another process."""

    def __init__(
        self,
        path: Path | None,
        configuration: str,
        dataset: Dataset,
        changed: str,
        put: Callable[[str], bool],
        is_done: Callable[[Line], bool] = is_final,
        *,
        keeps_others: bool = False,
    ) -> None:
        self.path = path
        self.is_done = is_done
        self._keeps_others = keeps_others
        self._others = frozenset[bytes]()
        self._put = put
        self._file: JsonLines | None = None
        self.done = bytearray(dataset.count + 1)
        self.summary = Summary(dataset.count)
        self._held = ExitStack()
        if path is not None:
            hint = "Wait for it to end, or name another file with out=."
            with ExitStack() as held:
                held.enter_context(hold(path, f"out={path}", hint))
                numbers = self._find_done(path, configuration, dataset, changed)
                self._file = self._copy_finished(path, numbers, dataset.count)
                held.callback(self._file.path.unlink, missing_ok=True)
                self._held = held.pop_all()

    def _find_done(
        self, path: Path, configuration: str, dataset: Dataset, changed: str
    ) -> dict[bytes, int]:
        """Return the numbers of the finished rows, by the digests of their ids."""
        taken = self._read_finished(path, configuration)
        numbers = dict[bytes, int]()
        differing = list[int]()
        arms = dict[str, None]()
        for row in dataset.rows() if taken else ():
            name = digest(row.id)
            given = taken.pop(name, None)
            if given is None:
                continue
            if given.hex() == row.given:
                numbers[name] = row.number
                self.done[row.number] = 1
            else:
                differing.append(row.line)
                if row.arm is not None:
                    arms[row.arm.name] = None
        if differing and changed == "refuse":
            raise _make_change_error(path, differing, list(arms))
        self._others = frozenset(taken)
        if taken and not self._keeps_others:
            hint = (
                "Give the dataset it was begun with, to which "
                "rows may be added; or name another file with out=."
            )
            raise ConfigError(
                f"out={path}: it has {count_noun(len(taken), 'row')} that the dataset has not",
                hint=hint,
            )
        return numbers

    def _read_finished(self, path: Path, configuration: str) -> dict[bytes, bytes]:
        """Return the digests of the requests of the finished rows, by those of their ids."""
        finished: dict[bytes, bytes] = {}
        for _, line in read_places(path):
            if line["configuration"] != configuration:
                keys = find_differing_keys(configuration, line["configuration"])
                parts = one_line(", ".join(keys), 300) or "the differences are unknown"
                hint = "Give another place with out=, or give the configuration it was begun with."
                raise ConfigError(
                    f"out={path}: its rows were made with another configuration: {parts}", hint=hint
                )
            if self.is_done(line):
                # Of millions of rows, bytes take half the memory of their hex digits.
                finished[digest(line["id"])] = bytes.fromhex(line["given"])
        return finished

    def _copy_finished(self, path: Path, numbers: Mapping[bytes, int], of: int) -> JsonLines:
        """Copy the lines of finished rows into a new file beside the results, and return it open
        and locked."""
        target = Path(os.path.realpath(path))  # a link to the results stays a link
        beside = target.with_name(f".{target.name}.tmp")
        try:
            beside.unlink(missing_ok=True)
            file = JsonLines(beside)
            for _, line in read_places(path):
                name = digest(line["id"])
                if not self.is_done(line):
                    continue
                if name in numbers:
                    self.summary.add(line)
                    file.write({**line, "row": numbers[name], "of": of})
                elif name in self._others:
                    file.write(line)
        except (ArtefactError, OSError) as error:
            beside.unlink(missing_ok=True)
            raise _copy_error(path, error) from None
        return file

    def begin(self) -> None:
        """Replace the file by the lines of finished rows, before the first `write`; later calls do
        nothing. Raises ConfigError when that fails."""
        if self.path is None or self._file is None or self._file.path == self.path:
            return
        try:
            self._file.path.replace(os.path.realpath(self.path))
        except OSError as error:
            raise _copy_error(self.path, error) from None
        self._file.path = self.path  # for messages: the name that the person knows
        self._held.close()

    def write(self, line: Line) -> None:
        """Append a line. Raises ArtefactError when there is no room, ReaderGone when nobody reads
        it."""
        if self._file is not None:
            self._file.write(line)
        elif not self._put(mask(encode_json(line)).decode()):
            raise ReaderGone("out=-: its reader has gone away")
        self.done[line["row"]] = 1
        self.summary.add(line)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
        self._held.close()


def _make_change_error(path: Path, lines: Sequence[int], arms: Sequence[str]) -> ConfigError:
    """Return the error for finished rows in these lines of the dataset, of these arms in a
    measurement, that ask for something else now."""
    of_arms = f"of the {'arm' if len(arms) == 1 else 'arms'} {', '.join(arms)}, " if arms else ""
    way = "N"
    if arms:
        way = (
            "Give the arm as it was (with equal=tokens, if that was given, and then the rows in "
            "the same order); n"
        )
    return ConfigError(
        f"out={path}: {count_noun(len(lines), 'row')} that it has done, {of_arms}the "
        f"first in line {lines[0]} of the dataset, ask for something else now",
        hint=f"{way}ame another file with out=, or let them be run again with batch.changed=again.",
    )


def _copy_error(path: Path, error: Exception) -> ConfigError:
    return ConfigError(f"out={path}: cannot be written: {error}", hint="Free space.")


def read_places(path: Path) -> Iterator[tuple[int, Line]]:
    """Yield the lines of a batch's file, each with the byte where it begins, without an incomplete
    last one. Raises ConfigError for a file of no batch."""
    number = place = 0
    try:
        with path.open("rb") as file:
            for text in file:
                number += 1
                if text.endswith(b"\n"):
                    line = load_json(text)
                    _Written.model_validate(line)
                    yield place, line
                place += len(text)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        problem = f"{path}: line {number} is no result of a batch"
        raise ConfigError(
            problem, hint="Name a file that `aeon batch` has written, or a new one with out=."
        ) from None


def in_order(lines: Iterable[Line], rows: Iterable[int]) -> Iterator[Line]:
    """Reorder lines to the order of `rows`; lines that have to wait are stored in a temporary
    file."""
    places = dict[int, int]()
    wanted = iter(rows)
    row = next(wanted, None)
    with TemporaryFile() as waiting:
        for line in lines:
            places[line["row"]] = waiting.seek(0, os.SEEK_END)
            waiting.write(encode_line(line))
            while row in places:
                waiting.seek(places.pop(row))
                yield json.loads(waiting.readline())
                row = next(wanted, None)
        for _, place in sorted(places.items()):
            waiting.seek(place)
            yield json.loads(waiting.readline())
