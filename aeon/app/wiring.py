"""Settings -> objects: the kernel of one run, with its components, its store and its limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event

from aeon.app.attendance import Attendance
from aeon.app.components import MakeInvoker, Packaged, build_components
from aeon.app.process import Process
from aeon.app.record import Work
from aeon.checks.interface import NO_CHECKS, AnswerChecks
from aeon.checks.runner import RunChecks
from aeon.checks.selection import CheckAccess
from aeon.config.settings import Settings
from aeon.domain.events import RunFinished
from aeon.domain.request import LLMAdapter
from aeon.domain.result import SIMULATED_LINE
from aeon.execution.event_stream import EventStream
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.llm.stack import build as stack
from aeon.llm.watching import Watched
from aeon.memory.run_memory import RunMemory
from aeon.observability.sinks import CallTracer
from aeon.refinement.gate import Gate
from aeon.refinement.refiner import Refiner
from aeon.store.session import Session, store_answers_of
from aeon.tools.registry import ToolRegistry
from aeon.tools.stored import StoredInvoker


def build_kernel(
    shared: Process,
    work: Work,
    stream: EventStream,
    attendance: Attendance,
    session: Session,
    memory: RunMemory,
) -> Orchestrator:
    """The kernel of one run; `session` is its use of the store, which the caller closes. Raises
    StoreFailed."""
    settings = shared.settings
    stop = _watch_for_end(stream, attendance)
    make_invoker = partial(StoredInvoker, approve=attendance.approve, session=session, stop=stop)
    llm: LLMAdapter = stack.run_stack(
        shared.adapter,
        limits=settings.limits,
        emit=stream.emit,
        stop=stop,
        session=session,
        store=settings.store,
        provider=settings.provider,
    )
    llm = Watched(llm, attendance.watcher) if attendance.watcher else llm
    for sink in stream.subscribers:
        llm = sink.trace_calls(llm, settings.provider) if isinstance(sink, CallTracer) else llm
    packaged = Packaged(shared, work.inputs, stream, memory, make_invoker, work.context)
    packaged.checks = _make_checks(shared, work, session, make_invoker, packaged.registry, stop)
    parts = build_components(packaged, llm)
    has_gate = settings.refinement.accept == "not_worse" or work.rival is not None
    refiner = Refiner(
        parts.planner,
        parts.validator,
        settings.refinement,
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        ask=store_answers_of(attendance.ask, session, stop) if attendance.ask else None,
    )
    return Orchestrator(
        llm,
        parts.convergence,
        parts.validator,
        parts.planner,
        parts.adaptive_depth,
        executor=parts.executor,
        memory=memory,
        refiner=refiner,
        checks=packaged.checks,
        gate=Gate(packaged.make_comparer(llm)) if has_gate else None,
        stream=stream,
        control=attendance.control,
        options=_options(settings, work, synthetic=shared.synthetic),
    )


def _takes_best(settings: Settings) -> bool:
    """Whether the answer is that of the best pass: asked for, or where more than scores judges it."""
    source = settings.answer.source
    is_judged = settings.refinement.accept == "not_worse" or bool(settings.convergence.checks)
    return source == "best" or (source is None and is_judged)


def _make_checks(
    shared: Process,
    work: Work,
    session: Session,
    make_invoker: MakeInvoker,
    registry: ToolRegistry,
    stop: Callable[[], bool],
) -> AnswerChecks:
    of = shared.checks if work.checks is None else shared.checks.for_row(work.checks)
    if not of.checks and not of.rubrics:
        return NO_CHECKS
    access = CheckAccess(make_invoker(registry, shared.settings.tools), stop)
    return RunChecks(of, work.task, work.inputs, session, access, work.row)


def _watch_for_end(stream: EventStream, attendance: Attendance) -> Callable[[], bool]:
    """Whether the run is asked to stop, or over: a call that still waits then must not go out."""
    over = Event()
    stream.subscribers.append(
        lambda recorded: over.set() if isinstance(recorded.event, RunFinished) else None
    )
    return lambda: attendance.control.stop_requested or over.is_set()


def _skips_judge(settings: Settings) -> bool:
    configured = settings.evaluation.skip_judge_when_checks_fail
    return settings.mode.kind == "auto" if configured is None else configured


def _options(settings: Settings, work: Work, *, synthetic: bool) -> RunOptions:
    dumped = settings.model_dump(mode="json")
    return RunOptions(
        mode=settings.mode.kind,
        one_step=settings.mode.one_step,
        small=settings.mode.small,
        plan=work.plan,
        execution=settings.execution,
        limits=settings.limits,
        base_ttl=settings.ttl.base,
        ttl_limit=settings.ttl.limit,
        default_profile=settings.ttl.default_profile,
        least_after_update=settings.ttl.least_after_update,
        convergence=settings.convergence,
        skip_judge_when_checks_fail=_skips_judge(settings),
        requires_final_step=settings.answer.json_schema is not None,
        judges_answer=settings.answer.judge,
        takes_best=_takes_best(settings),
        rival=work.rival,
        # Nothing is put before JSON of the person's schema.
        answer_mark=f"{SIMULATED_LINE}\n"
        if synthetic and settings.answer.json_schema is None
        else "",
        configuration={
            "convergence_criteria": dumped["convergence"],
            "ttl": settings.ttl.base,
            "adaptive_depth_settings": {
                "reasoning": dumped["reasoning"],
                "ttl_table": dumped["ttl"],
            },
            "refinement": dumped["refinement"],
            "limits": dumped["limits"],
            "provider": settings.provider.kind,
            "synthetic": synthetic,
        },
    )
