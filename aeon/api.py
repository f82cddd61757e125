"""Aeon from Python: settings in, results out."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any
from uuid import uuid4

from aeon import artefacts, rehearsal, wiring
from aeon.config import Settings, compose, configuration_hash, environment
from aeon.config_files import checked_text
from aeon.errors import ConfigError, TaskTextError
from aeon.events import EventStream, RunStarted, Subscriber
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.state import Outcome, RunState
from aeon.llm.settings import SimulatedProvider
from aeon.memory.build import build as build_memory
from aeon.memory.build import close as close_memory
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.journal import Expendable
from aeon.observability.ledger import Ledger
from aeon.observability.observers import detached
from aeon.plan.models import Plan
from aeon.plan.workflow import Workflow
from aeon.refinement.refiner import Ask
from aeon.rehearsal import Rendered
from aeon.result import Hashes, ProviderReport, RunResult, Timings, TTLReport, versions
from aeon.store.session import open_session
from aeon.tools.approval import Approve
from aeon.tools.registry import Tool
from aeon.wiring import Process

_log = logging.getLogger("aeon")


class Aeon:
    """Runs tasks with one configuration; many runs may share it, also at the same time.

    `environ` is where keys are found by name; the process environment and `.env` unless given. `tools` are offered
    beside those of the configuration: `aeon.tool` makes one of a function. Raises ConfigError when the provider, the
    prompts, the schemas or the tools cannot be used.
    """

    def __init__(
        self, settings: Settings, environ: Mapping[str, str] | None = None, *, tools: Sequence[Tool] = ()
    ) -> None:
        self._process = wiring.process(settings, environment() if environ is None else environ, tools)
        try:
            rehearsal.check(self._process)
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_config(
        cls,
        overrides: Sequence[str] = (),
        *,
        config_dir: str | Path | None = None,
        environ: Mapping[str, str] | None = None,
        tools: Sequence[Tool] = (),
    ) -> Aeon:
        """Compose the configuration with Hydra overrides, as on the command line. Raises ConfigError."""
        return cls(compose(overrides, config_dir), environ, tools=tools)

    @property
    def settings(self) -> Settings:
        """The settings in force, with a definite provider."""
        return self._process.settings

    @property
    def synthetic(self) -> bool:
        """Whether no model is called."""
        return isinstance(self.settings.provider, SimulatedProvider)

    def run(
        self,
        task: str | None = None,
        *,
        inputs: Mapping[str, str] | None = None,
        context: Mapping[str, Any] | None = None,
        directory: Path | None = None,
        observers: Sequence[Subscriber] = (),
        control: RunControl | None = None,
        ask: Ask | None = None,
        approve: Approve | None = None,
        on_start: Callable[[Orchestrator], None] | None = None,
        warn: Callable[[str], None] = _log.warning,
    ) -> RunResult:
        """Run a task to its end, whatever end that is, and give back everything it has.

        `inputs` is material to work on, by name; `context` what is known already, as JSON values. With a
        `directory`, the artefacts are written there, the journals as things happen. `observers` are told of every
        event, each in a thread of its own: a slow or failing one neither slows nor fails the run.
        `control` stops the run, `ask` puts follow-up questions to a person, `on_start` is given the kernel, whose
        `state` may be read while the run goes on. A journal that cannot be written any more is given up and the run
        goes on; `warn` is told so, once. Raises TaskTextError for a task that is empty or not valid Unicode,
        ArtefactError when the directory cannot be written; if that is so at the end, the error holds the `result`. A
        failing model is not raised but told in the result's `error`.
        """
        task = self._task(task)
        given = {name: checked_text(text, f"inputs.{name}") for name, text in (inputs or {}).items()}
        plan = self._given_plan(task, given)
        run = _Run(self._process, task, given, observers, directory, control or RunControl(), ask, approve, plan, warn)
        return run.to_end(dict(context) if context else None, self.synthetic, on_start)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a person should know before a run: tools that are missing, servers that did not start."""
        return self._process.warnings

    @property
    def workflow(self) -> Workflow | None:
        """The plan file in force, if there is one."""
        return self._process.workflow

    def check_inputs(self, names: Collection[str]) -> None:
        """ConfigError when the plan file needs an input that is not among `names`."""
        missing = [name for name in self.workflow.input_names if name not in names] if self.workflow else []
        if missing:
            raise ConfigError(
                f"plan_file={self.settings.plan_file}: it needs {', '.join(f'inputs.{name}' for name in missing)}",
                hint=f'Give inputs.{missing[0]}="..." or input_files.{missing[0]}=path.',
            )

    def _task(self, task: str | None) -> str:
        if task is None and self.workflow is not None:
            return self.workflow.task
        if not checked_text(task or "", "task").strip():
            raise TaskTextError("the task is empty", hint="Say what is to be done.")
        return task or ""

    def _given_plan(self, task: str, inputs: Mapping[str, str]) -> Plan | None:
        self.check_inputs(inputs)
        return self.workflow.plan(task, inputs) if self.workflow else None

    def render(self, call: str, task: str, inputs: Mapping[str, str] | None = None) -> Rendered:
        """One call as it would be sent, in a small worked example. Raises ConfigError for an unknown call."""
        return rehearsal.render(self._process, call, task, inputs or {})

    def close(self) -> None:
        """Close connections. Not needed at the end of a process."""
        wiring.close(self._process)

    def __enter__(self) -> Aeon:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def render(
    settings: Settings, call: str, task: str = "An example task.", inputs: Mapping[str, str] | None = None
) -> Rendered:
    """One call as these settings would send it. Raises ConfigError."""
    with Aeon(settings) as aeon:
        return aeon.render(call, task, inputs)


class _Run:
    """One run: its subscribers, its kernel, and the result made of what they saw."""

    def __init__(
        self,
        shared: Process,
        task: str,
        inputs: Mapping[str, str],
        observers: Sequence[Subscriber],
        directory: Path | None,
        control: RunControl,
        ask: Ask | None,
        approve: Approve | None,
        plan: Plan | None,
        warn: Callable[[str], None],
    ) -> None:
        self._shared, self._task, self._inputs = shared, task, inputs
        self._directory, self._control, self._ask = directory, control, ask
        self._observers, self._approve, self._plan = observers, approve, plan
        self._warn = warn
        self._ledger = Ledger(shared.settings.provider.prices)
        self._run_id = uuid4().hex[:12]

    def to_end(
        self,
        context: dict[str, Any] | None,
        synthetic: bool,
        on_start: Callable[[Orchestrator], None] | None,
    ) -> RunResult:
        started, began = datetime.now(UTC), perf_counter()
        with ExitStack() as journals:
            watching = [journals.enter_context(detached(observer)) for observer in self._observers]
            stream = EventStream((self._ledger, *self._journals(journals), *watching))
            memory = build_memory(self._shared.settings.memory, self._run_id)
            journals.callback(close_memory, memory)
            session = open_session(self._shared.settings.store, directory=self._directory, warn=self._warn)
            journals.callback(session.close)
            kernel = wiring.orchestrator(
                self._shared,
                self._inputs,
                stream,
                self._control,
                self._ask,
                memory=memory,
                plan=self._plan,
                approve=self._approve,
                session=session,
            )
            if on_start:
                on_start(kernel)
            kind = self._shared.settings.provider.kind
            stream.emit(RunStarted(run_id=self._run_id, task=self._task, provider=kind, synthetic=synthetic))
            outcome = kernel.run(self._task, context, self._run_id)
        result = self._result(outcome, synthetic, started, perf_counter() - began)
        if self._directory is not None:
            artefacts.write(result, self._directory)
        return result

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

    def _result(self, outcome: Outcome, synthetic: bool, started: datetime, seconds: float) -> RunResult:
        settings, state = self._shared.settings, outcome.state
        assessment = state.assessment
        return RunResult(
            run_id=self._run_id,
            synthetic=synthetic,
            task=self._task,
            answer=outcome.answer,
            converged=outcome.converged,
            termination_reason=outcome.termination_reason,
            error=outcome.error,
            scores=assessment.scores if assessment else None,
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
            ),
            hashes=self._hashes(),
            configuration=settings.model_dump(mode="json", exclude={"task", "task_file", "inputs", "input_files"}),
            history=outcome.history,
        )

    def _hashes(self) -> Hashes:
        return Hashes(
            task=sha256(self._task),
            inputs={name: sha256(text) for name, text in sorted(self._inputs.items())},
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
