"""Rows run in this process, many at once, each to its line; a row that was cut off goes on where it
was."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from aeon.app.aeon import Aeon
from aeon.app.attendance import Attendance
from aeon.app.process import OpenEndpoints
from aeon.app.run import Run, RunPlace
from aeon.batch.dataset import Arm, Row
from aeon.batch.endpoints import SharedEndpoints
from aeon.batch.overrides import check_changes, check_overrides, modes_among
from aeon.batch.records import Running
from aeon.batch.results import line_of, problem_line
from aeon.batch.runner import GroupControl, run_rows
from aeon.batch.summary import WAITING, Line
from aeon.config.compose.literal import Composition
from aeon.config.environment import environment
from aeon.config.load import compose_settings
from aeon.config.origin import FILE, digest_of, read
from aeon.config.settings import Settings
from aeon.domain.errors import AeonError, ConfigError, StoreFailed
from aeon.domain.result import RunResult
from aeon.kernel.control import RunControl
from aeon.observability.artefacts import allow_files
from aeon.store.models import Entry

Keep = Callable[[Path, Entry, StoreFailed | None], None]
AttendRow = Callable[[Row], AbstractContextManager[Attendance]]
_MOST_CONFIGURATIONS = 32
_Overrides = tuple[tuple[str, ...], tuple[str, ...]]  # of an arm, and of a row itself
# A row's page can be made of its record.
_OF_ROWS = ("observability.report=false",)


def leave_unattended(_: Row) -> AbstractContextManager[Attendance]:
    """Nobody is beside a row."""
    return nullcontext(Attendance())


class Ended(NamedTuple):
    """A row that has ended: its line, and the record of its run as one archive if it is to be
    kept."""

    line: Line
    packed: bytes | None = None


class Backend(Protocol):
    """Where the rows of a batch are run."""

    def run(
        self, rows: Iterator[Row], control: GroupControl, attend: AttendRow
    ) -> Generator[Ended, None, None]:
        """Each row as it ends, in any order; a row is taken from `rows` when there is room for it.
        After `control` was stopped, no row is taken, and one that did not come to its end gives
        nothing: it goes on with a later start. `attend` is the person beside each row that is run
        in this process."""

    def forget(self, key: str) -> None:
        """The line of the row of this key is written: what was kept to go on with it can be
        removed."""

    def close(self) -> None:
        """Close what is open."""


def open_aeon(
    composition: Composition,
    *more: str,
    configured: Settings | None = None,
    open_endpoints: OpenEndpoints | None = None,
) -> Aeon:
    """Aeon as composed for the rows of a batch, with `more` overrides, those of a row where the
    settings without them are given as `configured`. Raises ConfigError."""
    composed = _of_rows(composition, *more)
    settings = compose_settings(composed)
    if configured is not None:
        check_changes(settings, configured)
    return Aeon(
        settings,
        environment(settings),
        composition=composed,
        open_endpoints=open_endpoints,
    )


def _configure_without(overrides: tuple[str, ...], composition: Composition) -> Settings | None:
    """The settings that those of a row with these overrides are compared with; None for a row
    without any."""
    if not overrides:
        return None
    return compose_settings(_of_rows(composition, *modes_among(overrides)))


def _prepare(aeon: Aeon, row: Row) -> Run:
    return aeon.prepare_run(
        row.task, inputs=row.inputs, checks=row.checks, row=row.values, answer=row.answer
    )


def _of_rows(composition: Composition, *more: str) -> Composition:
    return composition.with_overrides((*_OF_ROWS, *composition.overrides, *more))


@dataclass
class RowRunner:
    """Runs rows through `aeon`, from many threads. `of` and `configuration` are for their lines;
    `running` is where their directories are. `aeon` was opened with the overrides `opened_with`
    beside the composition, which rows do not have."""

    aeon: Aeon
    composition: Composition
    of: int
    configuration: str
    running: Running
    endpoints: SharedEndpoints = field(default_factory=SharedEndpoints)
    opened_with: tuple[str, ...] = ()
    _others: dict[_Overrides, Aeon | ConfigError] = field(default_factory=dict)
    _opening: threading.RLock = field(default_factory=threading.RLock)

    def open_arm(self, overrides: tuple[str, ...]) -> Aeon:
        """The Aeon that rows of an arm with these overrides are run by. Raises ConfigError."""
        return self._aeon_for(Row(0, 0, "", arm=Arm("", overrides)))

    def run(
        self,
        row: Row,
        control: RunControl,
        keep: Keep | None = None,
        attend: AttendRow = leave_unattended,
    ) -> Ended | None:
        """Run a row; None when it was asked to stop. `keep` is given its directory, each answer
        before it is used, and why its store could not take it. Raises ArtefactError and StoreFailed
        when its directory cannot be written."""
        of = self.of
        configuration = self.configuration
        failures = list[StoreFailed]()
        if row.problem:
            return Ended(problem_line(row, of, configuration, "invalid", row.problem))
        try:
            with attend(row) as attendance:
                attendance = replace(attendance, control=control)
                result = self._run(row, attendance, keep or partial(_fail, failures))
        except ConfigError as error:
            return Ended(
                problem_line(row, of, configuration, "invalid", f"line {row.line}: {error.message}")
            )
        except AeonError as error:
            if isinstance(error.__cause__, OSError | sqlite3.OperationalError):
                raise  # every other row would fail by it, too
            return Ended(
                problem_line(row, of, configuration, "failed", error.message, type(error).__name__)
            )
        if failures:
            raise failures[0]
        return None if result.termination_reason == "interrupted" else self._end(row, result)

    def _end(self, row: Row, result: RunResult) -> Ended:
        """A row that has ended, with its record; one that waits keeps its folder instead."""
        line = line_of(row, self.of, self.configuration, result)
        if result.termination_reason == WAITING:
            return Ended(self._wait(row, line, result))
        kept = self.aeon.settings.batch.records
        is_kept = kept == "all" or (kept == "failed" and result.exit_status)
        return Ended(line, self.running.pack(row.key) if is_kept else None)

    def _wait(self, row: Row, line: Line, result: RunResult) -> Line:
        """The line of a row that waits for a person: where its questions are, and their ids."""
        folder = self.running.directories(row.key)[1]
        ids = [question.id for question in result.waits_for]
        return {**line, "folder": str(folder), "waits_for": ids}

    def close(self) -> None:
        """Close what rows with overrides of their own have opened."""
        for other in self._others.values():
            if isinstance(other, Aeon):
                other.close()
        self._others.clear()
        self.running.close()

    def _run(self, row: Row, attendance: Attendance, keep: Keep) -> RunResult:
        check_overrides(row.overrides)
        directory, cut_off = self.running.directories(row.key)
        place = RunPlace(directory=directory, keep=partial(keep, directory))
        # With no store, then or now, nothing that was answered is kept.
        if cut_off is None or "off" in (self.aeon.settings.store.mode, read(cut_off).store_mode):
            aeon = self._aeon_for(row)
            return _prepare(aeon, row).to_end(attendance, place)
        digest = digest_of(cut_off / FILE)  # `running` has seen that it may be gone on with
        with self._open(row, f"resume={cut_off}", f"trust='{digest}'") as aeon:
            return _prepare(aeon, row).to_end(attendance, place)

    def _open(self, row: Row, *more: str) -> Aeon:
        with self._opening:  # Hydra composes one configuration at a time
            composition = self._composition_of(row)
            return open_aeon(
                composition,
                *more,
                *row.overrides,
                configured=_configure_without(row.overrides, composition),
                open_endpoints=self.endpoints.open,
            )

    def _composition_of(self, row: Row) -> Composition:
        """What a person has the row composed from: what it says itself comes after that."""
        if row.arm is None:
            return self.composition
        overrides = (*self.composition.overrides, *row.arm.overrides)
        return self.composition.with_overrides(overrides)

    def _aeon_for(self, row: Row) -> Aeon:
        """The Aeon of rows with the overrides of this one, opened once. Raises ConfigError."""
        overrides = row.arm.overrides if row.arm else (), row.overrides
        if not any(overrides) and not self.opened_with:
            return self.aeon
        with self._opening:
            if overrides not in self._others:
                if len(self._others) >= _MOST_CONFIGURATIONS:
                    raise ConfigError(
                        f"the rows have more than {_MOST_CONFIGURATIONS} different overrides"
                    )
                try:
                    self._others[overrides] = self._open(row)
                except ConfigError as error:
                    self._others[overrides] = error
            found = self._others[overrides]
        if isinstance(found, ConfigError):
            raise found
        return found


# The process is the batch's own, and hundreds of threads that take turns less often need a tenth
# less of it.
_SWITCH_SECONDS = 0.05


class ThreadBackend:
    """The backend of one process: `parallel` threads around one runner."""

    def __init__(self, runner: RowRunner, parallel: int) -> None:
        self._runner = runner
        self._parallel = parallel
        allow_files(parallel)
        sys.setswitchinterval(_SWITCH_SECONDS)

    def run(
        self, rows: Iterator[Row], control: GroupControl, attend: AttendRow
    ) -> Generator[Ended, None, None]:
        """See `Backend`."""
        return run_rows(
            rows,
            lambda row: self._runner.run(row, control, attend=attend),
            endpoints=self._runner.endpoints,
            control=control,
            parallel=self._parallel,
        )

    def forget(self, key: str) -> None:
        """See `Backend`."""
        self._runner.running.drop(key)

    def close(self) -> None:
        """See `Backend`."""
        self._runner.close()


def _fail(
    failures: list[StoreFailed], _directory: Path, _entry: Entry, failure: StoreFailed | None
) -> None:
    if failure is not None:
        failures.append(failure)  # the run makes a result of it
        raise failure
