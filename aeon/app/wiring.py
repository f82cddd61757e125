"""Builds the kernel of one run from settings, with its components, its store and its limits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from threading import Event

from aeon.app.attendance import Attendance
from aeon.app.components import Components, Packaged, build_components
from aeon.app.parent import Parent
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
from aeon.execution.gate import AnswerGate
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.llm.stack import build as stack
from aeon.llm.stack.limits import LimitSettings
from aeon.llm.watching import Watched
from aeon.memory.run_memory import RunMemory
from aeon.observability.sinks import CallTracer
from aeon.refinement.models import Ask
from aeon.refinement.refiner import Refiner
from aeon.store.session import Session, store_answers_of, store_steps_of
from aeon.tools.stored import StoredInvoker

_NO_TIME = 1e-6  # seconds; a limit is above 0


def build_kernel(
    shared: Process,
    work: Work,
    stream: EventStream,
    attendance: Attendance,
    session: Session,
    memory: RunMemory,
    run_id: str,
) -> Orchestrator:
    """Return the kernel of one run; `session` is its use of the store, which the caller closes.
    Raises StoreFailed."""
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
        run_id=run_id,
    )
    llm = _watch_calls(llm, settings, stream, attendance)
    do_step = attendance.do_step and store_steps_of(attendance.do_step, session, stop)
    packaged = Packaged(shared, work.inputs, stream, memory, make_invoker, work.context, do_step)
    packaged.files = work.files
    packaged.checks = _make_checks(packaged, work, session, stop)
    parts = build_components(packaged, llm)
    ask = store_answers_of(attendance.ask, session, stop) if attendance.ask else None
    return Orchestrator(
        llm,
        parts.convergence,
        parts.validator,
        parts.planner,
        parts.adaptive_depth,
        executor=parts.executor,
        memory=memory,
        refiner=_make_refiner(parts, settings, ask, has_person=do_step is not None),
        checks=packaged.checks,
        gate=_make_gate(packaged, work, llm),
        stream=stream,
        control=attendance.control,
        options=_options(shared, work),
    )


def _make_refiner(
    parts: Components, settings: Settings, ask: Ask | None, *, has_person: bool
) -> Refiner:
    return Refiner(
        parts.planner,
        parts.validator,
        settings.refinement,
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        ask=ask,
        has_person=has_person,
    )


def _make_gate(packaged: Packaged, work: Work, llm: LLMAdapter) -> AnswerGate | None:
    accept = packaged.shared.settings.refinement.accept
    if accept == "always" and work.rival is None:
        return None
    return AnswerGate(packaged.make_comparer(llm), work.rival)


def _takes_best(settings: Settings, work: Work) -> bool:
    """Check whether the answer comes from the best pass: where it is configured, or where more than
    scores judges it."""
    source = settings.answer.source
    has_checks = bool(settings.convergence.checks or work.checks)
    is_judged = settings.refinement.accept == "not_worse" or has_checks
    return source == "best" or (source is None and is_judged)


def _watch_calls(
    llm: LLMAdapter, settings: Settings, stream: EventStream, attendance: Attendance
) -> LLMAdapter:
    """Wrap the model in the watcher that sees its text as it streams, and in the sinks that trace
    its calls."""
    llm = Watched(llm, attendance.watcher) if attendance.watcher else llm
    for sink in stream.subscribers:
        llm = sink.trace_calls(llm, settings.provider) if isinstance(sink, CallTracer) else llm
    return llm


def _make_checks(
    packaged: Packaged, work: Work, session: Session, stop: Callable[[], bool]
) -> AnswerChecks:
    shared = packaged.shared
    of = shared.checks if work.checks is None else shared.checks.for_row(work.checks)
    if not of.checks and not of.rubrics:
        return NO_CHECKS
    invoker = packaged.make_invoker(packaged.registry, shared.settings.tools)
    access = CheckAccess(invoker, stop)
    waits = shared.settings.evaluates_whole_answers
    return RunChecks(of, work.task, work.inputs, session, access, work.row, waits)


def _watch_for_end(stream: EventStream, attendance: Attendance) -> Callable[[], bool]:
    """Return a check whether the run is asked to stop, or over: a waiting call must not be sent
    then."""
    over = Event()
    stream.subscribers.append(
        lambda recorded: over.set() if isinstance(recorded.event, RunFinished) else None
    )
    return lambda: attendance.control.stop_requested or over.is_set()


def _skips_judge(settings: Settings) -> bool:
    configured = settings.evaluation.skip_judge_when_checks_fail
    return settings.mode.kind == "auto" if configured is None else configured


def _leave_seconds(limits: LimitSettings, parent: Parent | None) -> LimitSettings:
    """Return the limits minus the seconds that the run took before it waited for a person: a
    resumed run does not start afresh."""
    if limits.max_seconds is None or parent is None:
        return limits
    left = max(limits.max_seconds - parent.count_seconds_before_waiting(), _NO_TIME)
    return limits.model_copy(update={"max_seconds": left})


def _options(shared: Process, work: Work) -> RunOptions:
    settings = shared.settings
    synthetic = shared.synthetic
    dumped = settings.model_dump(mode="json")
    return RunOptions(
        mode=settings.mode.kind,
        one_step=settings.mode.one_step,
        small=settings.mode.small,
        plan=work.plan,
        execution=settings.execution,
        limits=_leave_seconds(settings.limits, shared.parent),
        base_ttl=settings.ttl.base,
        ttl_limit=settings.ttl.limit,
        default_profile=settings.ttl.default_profile,
        least_after_update=settings.ttl.least_after_update,
        convergence=settings.convergence,
        skip_judge_when_checks_fail=_skips_judge(settings),
        evaluates_whole_answers=settings.evaluates_whole_answers,
        requires_final_step=settings.answer.json_schema is not None,
        judges_answer=settings.answer.judge,
        takes_best=_takes_best(settings, work),
        # JSON of the user's schema gets no line before it.
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
