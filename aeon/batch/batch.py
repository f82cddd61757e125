"""A dataset run by a backend: the rows that are left to run, and the results written for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from aeon.batch.dataset import Dataset, Row, digest
from aeon.batch.records import Records
from aeon.batch.results import Results, in_order
from aeon.batch.run import AttendRow, Backend, Ended, leave_unattended
from aeon.batch.runner import GroupControl
from aeon.batch.summary import WAITING, Line
from aeon.config.settings import BatchSettings
from aeon.domain.errors import AuthenticationFailed, QuotaExhausted, Unexpected
from aeon.report.words import one_line

_REFUSED = {AuthenticationFailed.__name__, QuotaExhausted.__name__}
_MOST_REFUSED = 8


@dataclass
class Batch:
    """A dataset run by a backend. `shard` (i, n) takes every n-th row from the i-th on; without
    `records` no record is written. `attend` yields each row's attendance. With `keeps_runs` the
    directories of finished rows stay, since they may be run with more samples."""

    backend: Backend
    settings: BatchSettings
    dataset: Dataset
    results: Results
    records: Records | None
    shard: tuple[int, int] = (1, 1)
    control: GroupControl = field(default_factory=GroupControl)
    attend: AttendRow = leave_unattended
    keeps_runs: bool = False
    _refused: int = 0

    def lines(self, most: int | None = None) -> Iterator[Line]:
        """Run the rows that are not done, at most `most`, and yield the line of each once it is
        written; a row that was asked to stop leaves no line, and resumes with the next start."""
        self.results.begin()
        with closing(
            self.backend.run(islice(self.rows(), most), self.control, self.attend)
        ) as ended:
            yield from self._write_each(map(self._keep, ended))

    def _write_each(self, lines: Iterable[Line]) -> Iterator[Line]:
        if self.settings.order == "dataset":
            lines = in_order(lines, (row.number for row in self.rows()))
        for line in lines:
            self.results.write(line)
            if self._is_over(line) and not self.keeps_runs:
                # Only here: a kill in between would lose the answers.
                self.backend.forget(digest(line["id"]).hex())
            yield line

    def _is_over(self, line: Line) -> bool:
        """Check whether nothing of a row's run would be used again."""
        if line["ended"] == WAITING:
            return False
        return self.results.is_done(line) or line.get("calls") == 0 or _is_defect(line)

    def count(self) -> tuple[int, int]:
        """Count the rows that are left: those that can be run, and those known to be invalid."""
        is_invalid = Counter(bool(row.problem) for row in self.rows())
        return is_invalid[False], is_invalid[True]

    def close(self) -> None:
        """Close the backend, the results and the records."""
        self.backend.close()
        self.results.close()
        if self.records is not None:
            self.records.close()

    def rows(self) -> Iterator[Row]:
        """Yield the rows that are left to run."""
        first, every = self.shard
        done = bytes(self.results.done)  # a copy: it changes while rows are taken
        for row in self.dataset.rows():
            if self.control.stop_requested:
                return
            if (row.number - first) % every == 0 and not done[row.number]:
                yield row

    def _keep(self, ended: Ended) -> Line:
        error = ended.line["error"] or {}
        self._refused = self._refused + 1 if error.get("type") in _REFUSED else 0
        if self._refused == _MOST_REFUSED:  # fewer may be due to the rows themselves
            failed = f"{_MOST_REFUSED} rows in a row failed by {one_line(error['message'], 200)}"
            self.control.fail(failed.rstrip("."))
        if self.records is None:
            return ended.line
        if ended.packed is None:
            self.records.drop(ended.line["id"])
            return ended.line
        return {**ended.line, "record": self.records.keep(ended.line["id"], ended.packed)}


def _is_defect(line: Line) -> bool:
    """Check whether a row failed by a defect, which the same answers would meet again: it starts
    afresh."""
    return bool(line["error"] and line["error"]["type"] == Unexpected.__name__)
