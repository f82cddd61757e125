"""One run: its subscribers, its kernel, its use of the store, and the result made of what they saw."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from aeon.app import artefacts, lineage, wiring
from aeon.app.lineage import Parent, Work
from aeon.app.surroundings import Planned, Surroundings
from aeon.app.wiring import Process
from aeon.config import origin as origins
from aeon.config.origin import Composition
from aeon.config.settings import configuration_hash
from aeon.domain.errors import ArtefactError, LimitReached, StopRequested
from aeon.domain.events import RunStarted, Subscriber
from aeon.domain.history import Outcome, RunState
from aeon.domain.outcome import latest_assessed
from aeon.domain.result import Hashes, ProviderReport, RunResult, Timings, TTLReport, versions
from aeon.kernel.budget import TTLExpired
from aeon.kernel.event_stream import EventStream
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.prices import price_book
from aeon.llm.settings import goes_by
from aeon.llm.stack import findings
from aeon.memory.interface import Memory
from aeon.memory.run_memory import GuardedMemory, InMemory, RunMemory
from aeon.memory.settings import open_memory
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.journal import Expendable
from aeon.observability.ledger import Ledger
from aeon.observability.observers import detached
from aeon.store.opening import check_own_store, create_store, open_session, open_source
from aeon.store.session import Session, stored_memory

_NOT_SHOWN = {"task", "task_file", "inputs", "input_files", "resume"}


class Run:
    """One run, of `work`; its settings are composed of `composition`; what `parent` was answered is not asked.

    `memory` is used instead of the one that is configured, and stays the caller's.
    """

    def __init__(
        self,
        shared: Process,
        work: Work,
        *,
        composition: Composition | None = None,
        parent: Parent | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._shared, self._work, self._composition, self._parent = shared, work, composition, parent
        self._memory = memory
        self._ledger = Ledger(price_book(shared.settings.provider))
        self._run_id = uuid4().hex[:12]
        self._begun: Path | None = None
        self._unrecorded = ""

    def begin(self, directory: Path, claim: Callable[[Path], object] = lambda _: None) -> None:
        """Make the run's directory, in which what the run can be resumed from stands before anything else is done.

        `claim` marks the directory as this run's, and raises FileExistsError when it is another's. Raises OSError,
        StoreFailed, and ConfigError when answers are to be kept elsewhere.
        """
        check_own_store(self._shared.settings.store)
        started = datetime.now(UTC).isoformat()
        origin = lineage.origin_of(
            self._run_id, self._shared, self._work, self._composition, self._parent, started, directory
        )

        def fill(folder: Path) -> None:
            claim(folder)
            create_store(folder, self._shared.settings.store)
            try:
                artefacts.write_origin(origin, folder)
            except ArtefactError as error:
                cause = getattr(error.__cause__, "strerror", None) or error.message
                self._unrecorded = (
                    f"{directory / origins.FILE} cannot be written: {cause}; the run goes on, and cannot be resumed"
                )

        artefacts.appear(directory, fill)
        self._begun = directory

    def to_end(self, around: Surroundings) -> RunResult:
        """Run it. Raises ArtefactError when its directory cannot be written, StoreFailed when its store cannot be."""
        started, began = datetime.now(UTC), perf_counter()
        with self._under_way(around) as (kernel, session):
            outcome = kernel.run(self._work.task, self._work.context, self._run_id)
        for finding in findings.new_findings(self._shared.adapter):
            around.warn(finding)
        result = self._result(around, outcome, session, started, perf_counter() - began)
        if around.directory is not None:
            artefacts.write(result, around.directory)
        return result

    def plan(self, around: Surroundings) -> Planned:
        """Make the plan, review and refine it, and run no step.

        A budget or a person that ends it early leaves the plan as far as it came. Raises the error of a failing model,
        and ArtefactError and StoreFailed as `to_end` does.
        """
        with self._under_way(around) as (kernel, _):
            cut_short, interrupted = self._plan_with(kernel)
            state = kernel.state
        for finding in findings.new_findings(self._shared.adapter):
            around.warn(finding)
        return Planned(
            plan=state.plan,
            synthetic=self._synthetic,
            calls=kernel.forecast(state.plan) if state.plan else 0,
            advisories=state.advisories,
            cut_short=cut_short,
            interrupted=interrupted,
        )

    def _plan_with(self, kernel: Orchestrator) -> tuple[str, bool]:
        """What cut it short, if anything, and whether that was a person."""
        try:
            kernel.plan(self._work.task, self._work.context)
        except LimitReached as end:
            return end.message, False
        except TTLExpired:
            return "the TTL is used up", False
        except StopRequested:
            return "interrupted", True
        return "", False

    @contextmanager
    def _under_way(self, around: Surroundings) -> Iterator[tuple[Orchestrator, Session]]:
        """The kernel, its journals and its store open, and the start of the run announced."""
        with ExitStack() as opened:
            self._begin_in(around)
            watching = [opened.enter_context(detached(observer)) for observer in around.observers]
            stream = EventStream((self._ledger, *self._journals(around, opened), *watching))
            session = self._session(around, opened)
            memory = self._recalled(around, session, opened)
            kernel = wiring.orchestrator(
                self._shared,
                self._work.inputs,
                stream,
                around.control,
                around.ask,
                memory=memory,
                plan=self._work.plan,
                approve=around.approve,
                session=session,
            )
            if around.on_start:
                around.on_start(kernel)
            provider = goes_by(self._shared.settings.provider)
            stream.emit(
                RunStarted(run_id=self._run_id, task=self._work.task, provider=provider, synthetic=self._synthetic)
            )
            yield kernel, session

    def _recalled(self, around: Surroundings, session: Session, opened: ExitStack) -> RunMemory:
        """The run's memory: what was there, and the entries that the settings give it."""
        memory = self._memory
        if memory is None:
            memory = own = open_memory(self._shared.settings.memory, self._run_id)
            opened.callback(own.close)
        guarded = GuardedMemory(memory, lambda problem: around.warn(f"memory: {problem}"))
        read = None if isinstance(memory, InMemory) and self._memory is None else lambda: guarded.search("")
        recalled = RunMemory(memory, stored_memory(read, session))
        seeded = GuardedMemory(recalled, lambda problem: around.warn(f"memory: {problem}"))
        for key, value in self._shared.settings.memory.entries.items():
            seeded.write(key, value)
        return recalled

    @property
    def _synthetic(self) -> bool:
        return self._shared.synthetic

    def _begin_in(self, around: Surroundings) -> None:
        directory = around.directory
        if directory is not None and self._begun != directory:
            if directory.exists():
                artefacts.prepare(directory)
            with artefacts.problems(directory):
                self.begin(directory)
        if self._unrecorded:
            around.warn(self._unrecorded)

    def _session(self, around: Surroundings, opened: ExitStack) -> Session:
        """The run's use of the store; what the runs that it stands on were answered comes first."""
        backend = self._shared.settings.store.backend
        answers = [open_source(path, backend) for path in (self._parent.directories if self._parent else ())]
        for source in answers:
            opened.callback(source.close)
        session = open_session(
            self._shared.settings.store,
            directory=around.directory,
            parents=answers,
            of_multirun=around.of_multirun,
            warn=around.warn,
        )
        opened.callback(session.close)
        return session

    def _journals(self, around: Surroundings, opened: ExitStack) -> list[Subscriber]:
        if around.directory is None:
            return []
        wanted = self._shared.settings.observability
        made: list[Subscriber] = []
        for kind, name, on in ((EventLog, "events.jsonl", wanted.events), (CycleLog, "cycles.jsonl", wanted.cycles)):
            if on:
                log = Expendable(kind(around.directory / name), around.warn)
                opened.callback(log.close)
                made.append(log)
        return made

    def _result(
        self, around: Surroundings, outcome: Outcome, session: Session, started: datetime, seconds: float
    ) -> RunResult:
        settings, state = self._shared.settings, outcome.state
        assessment, assessed = state.assessment, latest_assessed(state.passes)
        scored = assessed.evaluation_results.convergence if assessed else None
        return RunResult(
            run_id=self._run_id,
            parent=lineage.report(settings, self._parent, session, around.of_multirun),
            synthetic=self._synthetic,
            task=self._work.task,
            answer=outcome.answer,
            converged=outcome.converged,
            termination_reason=outcome.termination_reason,
            error=outcome.error,
            scores=scored.scores if scored else None,
            assessed_pass=assessed.pass_number if assessed else None,
            reason_codes=assessment.reason_codes if assessment else (),
            explanation=assessment.explanation if assessment else "",
            best_pass=outcome.best_pass,
            passes=outcome.history.overall_statistics.total_passes,
            ttl=_ttl(state),
            ttl_expiration=outcome.ttl_expiration,
            usage=self._ledger.usage(),
            repairs=self._ledger.repairs(),
            advisories=state.advisories,
            follow_up_questions=state.plan.questions if state.plan else (),
            refused_actions=state.refused,
            timings=Timings(
                start_time=started.isoformat(),
                end_time=(started + timedelta(seconds=seconds)).isoformat(),
                total_seconds=seconds,
                seconds_by_call=self._ledger.seconds_by_call(),
                seconds_by_phase=self._ledger.seconds_by_phase(),
            ),
            versions=versions(),
            provider=ProviderReport(
                kind=settings.provider.kind,
                base_url=getattr(settings.provider, "base_url", None),
                models=self._ledger.models(),
                endpoints=self._ledger.endpoints(),
                findings=findings.all_findings(self._shared.adapter),
            ),
            hashes=self._hashes(),
            configuration=settings.model_dump(mode="json", exclude=_NOT_SHOWN),
            history=outcome.history,
        )

    def _hashes(self) -> Hashes:
        return Hashes(
            task=sha256(self._work.task),
            inputs={name: sha256(text) for name, text in sorted(self._work.inputs.items())},
            prompts=self._shared.prompts_digest,
            schemas=self._shared.schemas_digest,
            configuration=configuration_hash(self._shared.settings),
        )


def _ttl(state: RunState) -> TTLReport:
    remaining = max(0, state.ttl_allocated - state.ttl_used)
    return TTLReport(allocated=state.ttl_allocated, used=state.ttl_used, remaining=remaining)


def sha256(text: str) -> str:
    """SHA-256 of a text's UTF-8 bytes, hex."""
    return hashlib.sha256(text.encode()).hexdigest()
