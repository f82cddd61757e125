"""The life of one run: its directory and `run.json`, its journals, store and memory, its kernel,
and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter

from aeon.app import wiring
from aeon.app.attendance import Attendance
from aeon.app.baseline import (
    find_direct_store,
    find_free_folder,
    has_whole_answer,
    lower_caps,
    make_direct_process,
    report_baseline,
)
from aeon.app.components import offer_memory
from aeon.app.parent import Parent, find_direct_parent, has_ended_well
from aeon.app.record import Identity, make_origin, make_result
from aeon.config import origin as origins
from aeon.domain.errors import ConfigError, LimitReached, StopRequested
from aeon.domain.events import RunStarted
from aeon.domain.history import Advisory, AdvisoryKind
from aeon.domain.plan import OpenQuestion, Plan
from aeon.domain.result import BaselineReport, RunResult, Timings
from aeon.execution.event_stream import EventStream
from aeon.files.inputs.stored import store_files
from aeon.files.text import IN_RUN
from aeon.interaction.deferral import Deferral, EarlierAnswers
from aeon.kernel.budget import TTLExpired
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.prices import price_book
from aeon.llm.protocols import close
from aeon.llm.stack import build as stack
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.interface import Memory
from aeon.memory.run_memory import GuardedMemory, InMemory, RunMemory
from aeon.memory.settings import open_memory
from aeon.observability import artefacts
from aeon.observability.ledger import Ledger
from aeon.observability.sinks import QueuedObserver, open_sinks
from aeon.store.opening import check_own_store, create_store, open_session, open_source
from aeon.store.session import Keep, Session, store_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlace:
    """The destination of a run's files and answers. Without a `directory` nothing is written; the
    jobs of the folder `of_multirun` share a store; `keep` gets each answer before it is used, if
    answers are stored."""

    directory: Path | None = None
    of_multirun: Path | None = None
    keep: Keep | None = None


NOWHERE = RunPlace()
"""The place of a run that leaves no files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A plan without its execution: None if none was made. `calls` is about how many calls
    executing it takes, `cut_short` why its making ended early, `waits_for` the questions that a
    person has to answer first; `synthetic`: no model made it."""

    plan: Plan | None
    synthetic: bool
    calls: int = 0
    advisories: tuple[Advisory, ...] = ()
    cut_short: str = ""
    interrupted: bool = False
    waits_for: tuple[OpenQuestion, ...] = ()

    def find(self, kind: AdvisoryKind) -> Advisory | None:
        """The first advisory of a kind."""
        return next((each for each in self.advisories if each.kind == kind), None)


@dataclass
class Run(Identity):
    """One run of `work`: begun in its directory, then carried `to_end`, or to its `plan`."""

    def __post_init__(self) -> None:
        self._settings = self.shared.settings
        self._ledger = Ledger(price_book(self._settings.provider))
        self._begun_in: Path | None = None

    def begin(self, directory: Path, claim: Callable[[Path], object] = lambda _: None) -> None:
        """Create the run's directory with everything needed to resume it. `claim` marks it as this
        run's, and raises FileExistsError when it belongs to another. Raises OSError, StoreFailed,
        ConfigError."""
        check_own_store(self._settings.store)
        origin = make_origin(self, datetime.now(UTC).isoformat(), directory)

        def fill(folder: Path) -> None:
            if (folder / origins.FILE).exists():
                raise FileExistsError("this directory already holds a run")
            claim(folder)
            create_store(folder, self._settings.store)
            store_files(folder, self.work.files.values())
            # Last, since it marks what can be resumed.
            origins.write_sealed(folder / origins.FILE, origin)

        artefacts.create_directory(directory, fill, private=self._settings.env == "prod")
        self._begun_in = directory

    def to_end(self, attendance: Attendance, place: RunPlace = NOWHERE) -> RunResult:
        """Run the task to its end. Raises ArtefactError when its directory cannot be written,
        StoreFailed when its store cannot be."""
        started = datetime.now(UTC)
        began = perf_counter()
        deferral = self._make_deferral(place)
        attendance = self._let_answer(attendance, deferral)
        with self._under_way(attendance, place) as (kernel, session):
            outcome = kernel.run(self.work.task, self.work.context, self.run_id)
            seconds = perf_counter() - began  # measured here: slow sinks at the end do not count
        timings = Timings(
            start_time=started.isoformat(),
            end_time=(started + timedelta(seconds=seconds)).isoformat(),
            total_seconds=seconds,
            seconds_by_call=self._ledger.seconds_by_call(),
            seconds_by_phase=dict(self._ledger.seconds_by_phase),
        )
        result = make_result(self, outcome, self._ledger, session, timings, place.of_multirun)
        if deferral:
            result = result.model_copy(update={"waits_for": deferral.posted})
        self._write(result, place.directory, attendance.warn)
        if self._settings.answer.baseline:
            result = self._with_baseline(result, attendance, place.directory)
        return result

    def _make_deferral(self, place: RunPlace) -> Deferral | None:
        """Return what collects the questions that a person answers later; None where the run does
        not wait. Raises ConfigError without a directory for the questions."""
        settings = self._settings
        if settings.interaction.kind != "defer":
            return None
        # A recording has the answers, and nothing is asked.
        folder = Path() if self._settings.store.mode == "replay" else place.directory
        if folder is None:
            raise ConfigError(
                "interaction=defer: the questions need a folder",
                hint='From Python: run(..., directory="outputs/mine").',
            )
        parent = self.shared.parent
        earlier = parent.directories if parent else ()
        return Deferral(folder, earlier, settings.interaction.deadline_seconds)

    def _let_answer(self, attendance: Attendance, deferral: Deferral | None) -> Attendance:
        """Return the attendance of this run: answers to an earlier run are reused, and questions
        that nobody can be asked during the run are deferred."""
        if deferral:
            attendance = attendance.defer_to(deferral)
        parent = self.shared.parent
        if parent:
            attendance = attendance.take_answers(EarlierAnswers(self.run_id, parent.by_id()))
        return attendance

    def _with_baseline(
        self, result: RunResult, attendance: Attendance, directory: Path | None
    ) -> RunResult:
        """Measure the baseline and write the result again with it; return the result unchanged
        where the run has no whole answer, or its caps leave nothing for a direct call."""
        limits = lower_caps(self._settings.limits, result.usage.total)
        # 0 and 3: it has an answer, converged or not.
        if result.exit_status not in (0, 3) or not has_whole_answer(result):
            return result
        if limits is None:
            attendance.warn("answer.baseline: the caps of the run leave nothing for a direct call")
            return result
        if find_direct_store(self._settings.store) is None:
            attendance.warn("answer.baseline: the recording has no direct call")
            return result
        before = find_direct_parent(self.shared.parent)
        report = self.measure_baseline(result, attendance, directory, limits, before)
        result = result.model_copy(update={"baseline": report})
        self._write(result, directory, attendance.warn)
        return result

    def measure_baseline(
        self,
        result: RunResult,
        attendance: Attendance,
        directory: Path | None,
        limits: LimitSettings,
        before: Parent | None = None,
    ) -> BaselineReport:
        """Answer the run's task with one direct call, in its own folder below `directory` and
        within `limits`, and compare the two answers. Answers to an earlier direct call, `before`,
        are reused. Raises ArtefactError and StoreFailed."""
        shared = make_direct_process(self.shared, limits, result, before)
        work = replace(self.work, plan=None, judged=None, rival=result.answer)
        folder = find_free_folder(directory) if directory else None
        direct = Run(shared, work).to_end(
            Attendance(control=attendance.control, warn=attendance.warn), RunPlace(directory=folder)
        )
        return report_baseline(result, direct, folder)

    def _write(
        self, result: RunResult, directory: Path | None, warn: Callable[[str], None]
    ) -> None:
        if directory is None:
            return
        artefacts.write(result, directory)
        if not self._settings.observability.report:
            return
        try:
            from aeon.report.page.build import write_report  # only for runs that leave a page

            write_report(directory, result)
        except Exception as error:  # the run is over: a failing report must not fail it
            warn(
                f"report.html: {type(error).__name__}: {error}; "
                f"`aeon inspect {directory}` writes it again"
            )

    def plan(self, attendance: Attendance, place: RunPlace) -> Planned:
        """Make the plan, review and refine it, and run no step; if a budget or a person ends this
        early, the plan so far is returned. Raises the error of a failing model, ArtefactError and
        StoreFailed."""
        cut_short = ""
        deferral = self._make_deferral(place)
        attendance = self._let_answer(attendance, deferral)
        with self._under_way(attendance, place) as (kernel, _):
            try:
                kernel.plan(self.work.task, self.work.context)
            except LimitReached as end:
                cut_short = end.message
            except TTLExpired:
                cut_short = "the TTL is used up"
            except StopRequested as stop:
                cut_short = stop.reason
            state = kernel.state
        return Planned(
            plan=state.plan,
            synthetic=self.shared.synthetic,
            calls=kernel.forecast(state.plan) if state.plan else 0,
            advisories=state.advisories,
            cut_short=cut_short,
            interrupted=cut_short == "interrupted",
            waits_for=deferral.posted if deferral else (),
        )

    @contextmanager
    def _under_way(
        self, attendance: Attendance, place: RunPlace
    ) -> Iterator[tuple[Orchestrator, Session]]:
        """Announce the start of the run, and yield its kernel and its use of the store; both are
        closed at the end."""
        if place.directory is not None and self._begun_in != place.directory:
            with artefacts.as_artefact_error(place.directory, IN_RUN):
                self.begin(place.directory)
        with ExitStack() as opened:
            observers = [
                opened.enter_context(closing(QueuedObserver(observer)))
                for observer in attendance.observers
            ]
            sinks = opened.enter_context(
                open_sinks(self._settings.observability, place.directory, attendance.warn)
            )
            stream = EventStream((self._ledger, *sinks, *observers))
            session = self._open_session(attendance.warn, place, opened)
            memory = self._open_memory(attendance.warn, session, opened)
            kernel = wiring.build_kernel(
                self.shared, self.work, stream, attendance, session, memory, self.run_id
            )
            if attendance.on_start:
                attendance.on_start(kernel)
            stream.emit(
                RunStarted(
                    run_id=self.run_id,
                    task=self.work.task,
                    provider=self._settings.provider.display_name,
                    synthetic=self.shared.synthetic,
                )
            )
            yield kernel, session
        for finding in stack.findings(self.shared.adapter, only_new=True):
            attendance.warn(finding)

    def _open_session(
        self, warn: Callable[[str], None], place: RunPlace, opened: ExitStack
    ) -> Session:
        store = self._settings.store
        parent = self.shared.parent
        paths = parent.directories if parent else ()
        answers = [
            opened.enter_context(closing(open_source(path, store.own_backend))) for path in paths
        ]
        ended_well = [
            source for source, path in zip(answers, paths, strict=True) if has_ended_well(path)
        ]
        session = open_session(
            store,
            directory=place.directory,
            parents=answers,
            ended_well=ended_well,
            of_multirun=place.of_multirun,
            keep=place.keep,
            warn=warn,
        )
        return opened.enter_context(closing(session))

    def _open_memory(
        self, warn: Callable[[str], None], session: Session, opened: ExitStack
    ) -> RunMemory:
        def report(problem: str) -> None:
            warn(f"memory: {problem}")

        given = self.shared.job.own.memory  # its caller's: it stays open
        memory = self._make_own_memory(opened) if given is None else given
        if memory is None:
            memory = opened.enter_context(closing(open_memory(self._settings.memory, self.run_id)))
        # What is known to be empty is not stored as what memory held at the start.
        begins_empty = given is None and isinstance(memory, InMemory)
        read = None if begins_empty else partial(GuardedMemory(memory, report).search, "")
        of_run = RunMemory(memory, store_memory(read, session))
        for key, value in self._settings.memory.entries.items():
            GuardedMemory(of_run, report).write(key, value)
        return of_run

    def _make_own_memory(self, opened: ExitStack) -> Memory | None:
        offered = offer_memory(self.shared, self.run_id)
        memory: Memory | None = self.shared.own_components.make("memory", offered)
        opened.callback(close, memory)
        return memory
