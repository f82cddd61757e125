"""One run: its subscribers, its kernel, its use of the store, and the result made of what they saw."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from uuid import uuid4

from aeon import artefacts, lineage, wiring
from aeon.config import configuration_hash
from aeon.errors import ArtefactError
from aeon.events import EventStream, RunStarted, Subscriber
from aeon.kernel.control import RunControl
from aeon.kernel.history import latest_assessed
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.state import Outcome, RunState
from aeon.lineage import Parent, Work
from aeon.llm import findings
from aeon.llm.prices import price_book
from aeon.llm.settings import goes_by
from aeon.memory.build import build as build_memory
from aeon.memory.build import close as close_memory
from aeon.memory.guarded import GuardedMemory
from aeon.memory.in_memory import InMemory
from aeon.memory.interface import Memory
from aeon.memory.of_run import RunMemory
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.journal import Expendable
from aeon.observability.ledger import Ledger
from aeon.observability.observers import detached
from aeon.origin import Composition
from aeon.refinement.refiner import Ask
from aeon.result import Hashes, ProviderReport, RunResult, Timings, TTLReport, versions
from aeon.store.remembered import stored_memory
from aeon.store.session import Session, open_session
from aeon.store.source import open_source
from aeon.tools.approval import Approve
from aeon.wiring import Process

_NOT_SHOWN = {"task", "task_file", "inputs", "input_files", "resume"}


class Run:
    """One run, of `work`; its settings are composed of `composition`; what `parent` was answered is not asked.

    Without a `directory` nothing is written. `warn` is told of files that can no longer be written.
    """

    def __init__(
        self,
        shared: Process,
        work: Work,
        *,
        composition: Composition | None,
        parent: Parent | None,
        observers: Sequence[Subscriber],
        directory: Path | None,
        control: RunControl,
        ask: Ask | None,
        approve: Approve | None,
        memory: Memory | None,
        warn: Callable[[str], None],
    ) -> None:
        self._shared, self._work, self._composition, self._parent = shared, work, composition, parent
        self._directory, self._control, self._ask = directory, control, ask
        self._observers, self._approve, self._memory = observers, approve, memory
        self._warn = warn
        self._ledger = Ledger(price_book(shared.settings.provider))
        self._run_id = uuid4().hex[:12]

    def to_end(self, synthetic: bool, on_start: Callable[[Orchestrator], None] | None) -> RunResult:
        """Run it. Raises ArtefactError when its directory cannot be written, StoreFailed when its store cannot be."""
        started, began = datetime.now(UTC), perf_counter()
        with ExitStack() as journals:
            watching = [journals.enter_context(detached(observer)) for observer in self._observers]
            stream = EventStream((self._ledger, *self._journals(journals), *watching))
            session = self._session(journals)
            memory = self._recalled(session, journals)
            self._write_origin(started)
            kernel = wiring.orchestrator(
                self._shared,
                self._work.inputs,
                stream,
                self._control,
                self._ask,
                memory=memory,
                plan=self._work.plan,
                approve=self._approve,
                session=session,
            )
            if on_start:
                on_start(kernel)
            provider = goes_by(self._shared.settings.provider)
            stream.emit(RunStarted(run_id=self._run_id, task=self._work.task, provider=provider, synthetic=synthetic))
            outcome = kernel.run(self._work.task, self._work.context, self._run_id)
        for finding in findings.untold(self._shared.adapter):
            self._warn(finding)
        result = self._result(outcome, session, synthetic, started, perf_counter() - began)
        if self._directory is not None:
            artefacts.write(result, self._directory)
        return result

    def _recalled(self, session: Session, opened: ExitStack) -> RunMemory:
        """The run's memory: what was there, and the entries that the settings give it."""
        memory = self._memory
        if memory is None:
            memory = build_memory(self._shared.settings.memory, self._run_id)
            opened.callback(close_memory, memory)
        guarded = GuardedMemory(memory, lambda problem: self._warn(f"memory: {problem}"))
        read = None if isinstance(memory, InMemory) and self._memory is None else lambda: guarded.search("")
        recalled = RunMemory(memory, stored_memory(read, session))
        seeded = GuardedMemory(recalled, lambda problem: self._warn(f"memory: {problem}"))
        for key, value in self._shared.settings.memory.entries.items():
            seeded.write(key, value)
        return recalled

    def _session(self, opened: ExitStack) -> Session:
        """The run's use of the store; what its parent was answered comes first."""
        settings = self._shared.settings.store
        answers = open_source(self._parent.path) if self._parent else None
        if answers is not None:
            opened.callback(answers.close)
        session = open_session(settings, directory=self._directory, parent=answers, warn=self._warn)
        opened.callback(session.close)
        return session

    def _write_origin(self, started: datetime) -> None:
        """Where the run comes from: once its store is there, and before the first call."""
        if self._directory is None:
            return
        origin = lineage.origin_of(
            self._run_id, self._shared, self._work, self._composition, self._parent, started.isoformat()
        )
        try:
            artefacts.write_origin(origin, self._directory)
        except ArtefactError as error:
            self._warn(f"{error.message}; the run goes on, and cannot be resumed")

    def _journals(self, journals: ExitStack) -> list[Subscriber]:
        if self._directory is None:
            return []
        artefacts.prepare(self._directory)
        wanted = self._shared.settings.observability
        made: list[Subscriber] = []
        for kind, name, on in ((EventLog, "events.jsonl", wanted.events), (CycleLog, "cycles.jsonl", wanted.cycles)):
            if on:
                log = Expendable(kind(self._directory / name), self._warn)
                journals.callback(log.close)
                made.append(log)
        return made

    def _result(
        self, outcome: Outcome, session: Session, synthetic: bool, started: datetime, seconds: float
    ) -> RunResult:
        settings, state = self._shared.settings, outcome.state
        assessment, assessed = state.assessment, latest_assessed(state.passes)
        scored = assessed.evaluation_results.convergence if assessed else None
        return RunResult(
            run_id=self._run_id,
            parent=lineage.report(settings, self._parent, session),
            synthetic=synthetic,
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
                end_time=datetime.now(UTC).isoformat(),
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
                findings=findings.findings(self._shared.adapter),
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
