"""Rows run in this process, many at once, each to its line; an interrupted row resumes where it
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
from aeon.batch.dataset import Row
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
_MOST_CONFIGURATIONS = 32  # each has tools of its own, and perhaps their servers
_Overrides = tuple[tuple[str, ...], tuple[str, ...]]  # of an arm, and of a row itself
# A row's page can be made from its record.
_OF_ROWS = ("observability.report=false",)


def leave_unattended(_: Row) -> AbstractContextManager[Attendance]:
    """Return an attendance of a row without a person."""
    return nullcontext(Attendance())


class Ended(NamedTuple):
    """A row that has ended: its line, and the record of its run as one archive if it is to be
    stored."""

    line: Line
    packed: bytes | None = None


class Backend(Protocol):
    """Runs the rows of a batch."""

    def run(
        self, rows: Iterator[Row], control: GroupControl, attend: AttendRow
    ) -> Generator[Ended, None, None]:
        """Yield each row as it ends, in any order; a row is taken from `rows` when there is room
        for it. After `control` was stopped, no row is taken, and an unfinished one yields nothing:
        it resumes with a later start. `attend` yields the attendance of each row that runs in this
        process."""

    def forget(self, key: str) -> None:
        """Remove the files kept to resume the row of this key: its line is written."""

    def close(self) -> None:
        """Close all resources."""


def open_aeon(
    composition: Composition,
    *more: str,
    configured: Settings | None = None,
    open_endpoints: OpenEndpoints | None = None,
) -> Aeon:
    """Return Aeon composed for the rows of a batch, with `more` overrides. If these are a row's,
    `configured` are the settings without them. Raises ConfigError."""
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
    """Return the settings that a row's are compared with; None for a row without overrides."""
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
    """Runs rows through `aeon`, from many threads. `of` and `configuration` go into their lines;
    `running` holds their directories. `aeon` was opened with the additional overrides
    `opened_with`, which rows do not have."""

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
        """Return the Aeon that runs the rows of an arm with these overrides. Raises ConfigError."""
        return self._aeon_for(overrides, ())

    def run(
        self,
        row: Row,
        control: RunControl,
        keep: Keep | None = None,
        attend: AttendRow = leave_unattended,
    ) -> Ended | None:
        """Run a row; None when it was asked to stop. `keep` gets its directory, each answer before
        it is used, and the error if its store failed to take it. Raises ArtefactError and
        StoreFailed when its directory cannot be written."""
        failures = list[StoreFailed]()
        if row.problem:
            return self.end_without_result(row, "invalid", row.problem)
        try:
            with attend(row) as attendance:
                attendance = replace(attendance, control=control)
                result = self._run(row, attendance, keep or partial(_fail, failures))
        except ConfigError as error:
            return self.end_without_result(row, "invalid", f"line {row.line}: {error.message}")
        except AeonError as error:
            if isinstance(error.__cause__, OSError | sqlite3.OperationalError):
                raise  # every other row would fail likewise
            return self.end_without_result(row, "failed", error.message, type(error).__name__)
        if failures:
            raise failures[0]
        return None if result.termination_reason == "interrupted" else self._end(row, result)

    def end_without_result(self, row: Row, ended: str, message: str, kind: str = "run") -> Ended:
        """Return the end of a row that could not be run (`invalid`), or failed without a result
        (`failed`) by an error of this kind."""
        return Ended(problem_line(row, self.of, self.configuration, ended, message, kind))

    def _end(self, row: Row, result: RunResult) -> Ended:
        """Return an ended row with its record; a waiting one keeps its folder instead, and its line
        names it and the questions."""
        line = line_of(row, self.of, self.configuration, result)
        if result.termination_reason == WAITING:
            folder = self.running.directories(row.key)[1]
            ids = [question.id for question in result.waits_for]
            return Ended({**line, "folder": str(folder), "waits_for": ids})
        kept = self.aeon.settings.batch.records
        is_kept = kept == "all" or (kept == "failed" and result.exit_status)
        return Ended(line, self.running.pack(row.key) if is_kept else None)

    def close(self) -> None:
        """Close the instances opened for rows with their own overrides."""
        for other in self._others.values():
            if isinstance(other, Aeon):
                other.close()
        self._others.clear()
        self.running.close()

    def _run(self, row: Row, attendance: Attendance, keep: Keep) -> RunResult:
        check_overrides(row.overrides)
        of_arm = row.arm.overrides if row.arm else ()
        directory, cut_off = self.running.directories(row.key)
        place = RunPlace(directory=directory, keep=partial(keep, directory))
        # Without a store, then or now, there are no stored answers.
        if cut_off is None or "off" in (self.aeon.settings.store.mode, read(cut_off).store_mode):
            aeon = self._aeon_for(of_arm, row.overrides)
            return _prepare(aeon, row).to_end(attendance, place)
        digest = digest_of(cut_off / FILE)  # `running` has checked that it may be resumed
        resumed = (f"resume={cut_off}", f"trust='{digest}'")
        with self._open(of_arm, row.overrides, *resumed) as aeon:
            return _prepare(aeon, row).to_end(attendance, place)

    def _open(self, of_arm: tuple[str, ...], of_row: tuple[str, ...], *more: str) -> Aeon:
        with self._opening:  # Hydra composes one configuration at a time
            overrides = (*self.composition.overrides, *of_arm)
            composition = self.composition.with_overrides(overrides)
            return open_aeon(
                composition,
                *more,
                *of_row,
                configured=_configure_without(of_row, composition),
                open_endpoints=self.endpoints.open,
            )

    def _aeon_for(self, of_arm: tuple[str, ...], of_row: tuple[str, ...]) -> Aeon:
        """Return the Aeon of rows with these overrides, opened once. Raises ConfigError."""
        overrides = (of_arm, of_row)
        if not any(overrides) and not self.opened_with:
            return self.aeon
        with self._opening:
            if overrides not in self._others:
                if len(self._others) >= _MOST_CONFIGURATIONS:
                    raise ConfigError(
                        f"the rows have more than {_MOST_CONFIGURATIONS} different overrides"
                    )
                try:
                    self._others[overrides] = self._open(of_arm, of_row)
                except ConfigError as error:  # for the next row with these overrides, too
                    self._others[overrides] = error
            found = self._others[overrides]
        if isinstance(found, ConfigError):
            raise found
        return found


# The process is the batch's own, and hundreds of threads that switch less often need a tenth less
# of its time.
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
        failures.append(failure)  # the run turns it into a result
        raise failure
