"""A dataset run row by row, many at once; a row that was cut off goes on where it was."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from aeon.app.aeon import Aeon
from aeon.app.many import run_all
from aeon.batch.dataset import Dataset, Row
from aeon.batch.records import Records
from aeon.batch.results import Results, in_order, line_of, problem_line
from aeon.config.compose.literal import Composition
from aeon.config.load import compose_settings, environment
from aeon.config.settings import BatchSettings
from aeon.domain.errors import AeonError, ArtefactError, ConfigError
from aeon.domain.result import RunResult
from aeon.kernel.control import RunControl

_MOST_CONFIGURATIONS = 32
# A row's page can be made of its record.
_OF_ROWS = ("observability.report=false",)


def open_aeon(composition: Composition, *more: str) -> Aeon:
    """Aeon as composed for the rows of a batch, with `more` overrides. Raises ConfigError."""
    composed = composition.with_overrides((*_OF_ROWS, *composition.overrides, *more))
    return Aeon(compose_settings(composed), environment(), composition=composed)


def identify(aeon: Aeon, dataset: Dataset) -> str:
    """What tells the rows of one configuration from those of another: SHA-256, hex."""
    told = [*sorted(aeon.hashes.items()), dataset.columns.model_dump_json(), dataset.task]
    return sha256(repr(told).encode()).hexdigest()


@dataclass
class Batch:
    """A dataset on its way through `aeon`. `shard` (i, n) takes every n-th row from the i-th on."""

    aeon: Aeon
    composition: Composition
    settings: BatchSettings
    dataset: Dataset
    results: Results
    records: Records
    shard: tuple[int, int] = (1, 1)
    control: RunControl = field(default_factory=RunControl)
    _others: dict[tuple[str, ...], Aeon | ConfigError] = field(default_factory=dict)
    _opening: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._configuration = identify(self.aeon, self.dataset)

    def lines(self) -> Iterator[dict[str, Any]]:
        """The line of each row that is not done, once it is written; a run that was asked to stop leaves none, and goes
        on with the next start."""
        lines = (line for line in run_all(self._run_row, self._rows(), self.settings.parallel) if line is not None)
        numbers = (row.number for row in self._rows())
        for line in in_order(lines, numbers) if self.settings.order == "dataset" else lines:
            self.results.write(line)
            self.records.drop(line["row"])  # only now: else a kill in between would lose what was answered
            yield line

    def count(self) -> int:
        """How many rows are still to be run."""
        return sum(1 for _ in self._rows())

    def close(self) -> None:
        """Close what rows with overrides of their own have opened."""
        for other in self._others.values():
            if isinstance(other, Aeon):
                other.close()
        self.records.close()

    def _rows(self) -> Iterator[Row]:
        first, every = self.shard
        for row in self.dataset.rows():
            if self.control.stop_requested:
                return
            if (row.number - first) % every == 0 and row.id not in self.results.done:
                yield row

    def _run_row(self, row: Row, control: RunControl) -> dict[str, Any] | None:
        of, configuration = self.dataset.count, self._configuration
        if row.problem:
            return problem_line(row, of, configuration, "invalid", row.problem)
        try:
            result = self._run(row, control)
        except ConfigError as error:
            message = f"line {row.line}: {error.message}"
            return problem_line(row, of, configuration, "invalid", message)
        except ArtefactError:
            raise
        except AeonError as error:
            return problem_line(row, of, configuration, "failed", error.message)
        if result.termination_reason == "interrupted":
            return None
        is_kept = self.settings.records == "all" or (self.settings.records == "failed" and result.exit_status)
        record = self.records.keep(row.number, row.id) if is_kept else None
        return line_of(row, of, configuration, result, record)

    def _run(self, row: Row, control: RunControl) -> RunResult:
        directory, cut_off = self.records.directories(row.number)
        given: dict[str, Any] = {"inputs": row.inputs, "directory": directory}
        if cut_off is None:
            return self._aeon_for(row.overrides).run(row.task, control=_Either(self.control, control), **given)
        with open_aeon(self.composition, *row.overrides, f"resume={cut_off}") as aeon:
            return aeon.run(row.task, control=_Either(self.control, control), **given)

    def _aeon_for(self, overrides: tuple[str, ...]) -> Aeon:
        """The Aeon of rows with these overrides, opened once. Raises ConfigError."""
        if not overrides:
            return self.aeon
        with self._opening:
            if overrides not in self._others:
                if len(self._others) >= _MOST_CONFIGURATIONS:
                    raise ConfigError(f"the rows have more than {_MOST_CONFIGURATIONS} different overrides")
                try:
                    self._others[overrides] = open_aeon(self.composition, *overrides)
                except ConfigError as error:
                    self._others[overrides] = error
            found = self._others[overrides]
        if isinstance(found, ConfigError):
            raise found
        return found


class _Either(RunControl):
    """Stops when one of two is stopped."""

    def __init__(self, one: RunControl, other: RunControl) -> None:
        self._both = one, other

    @property
    def stop_requested(self) -> bool:  # type: ignore[override]
        return any(control.stop_requested for control in self._both)
