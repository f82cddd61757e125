"""Settings -> objects: the only place where the rooms are put together.

It builds what one run owns: its limits, its five components, its kernel. What many runs share is a `Process`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.app import tools
from aeon.app.process import Process
from aeon.config.settings import Settings
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.events import RunFinished
from aeon.domain.plan import Plan
from aeon.domain.request import LLMAdapter, Parameters, ReasoningMode, Role
from aeon.domain.result import SIMULATED_LINE
from aeon.execution.worker import StepWorker
from aeon.kernel.control import RunControl
from aeon.kernel.event_stream import EventStream
from aeon.kernel.executor import StepExecutor
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.llm.roles import parameters_for
from aeon.llm.stack import build as stack
from aeon.memory.run_memory import RunMemory, ShownMemory
from aeon.plan.recursive import RecursivePlanner
from aeon.refinement.models import Ask
from aeon.refinement.refiner import Refiner
from aeon.store.session import Session, stored_ask
from aeon.supervisor.repair import Supervisor
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.approval import Approve
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.stored import StoredInvoker
from aeon.validation.semantic import SemanticValidator


@dataclass(frozen=True, slots=True)
class Components:
    """What one run asks a model through."""

    convergence: ConvergenceEngine
    validator: SemanticValidator
    planner: RecursivePlanner
    adaptive: AdaptiveDepth
    executor: StepExecutor


def components(
    shared: Process,
    llm: LLMAdapter,
    inputs: Mapping[str, str],
    stream: EventStream,
    memory: RunMemory,
    approve: Approve | None = None,
    *,
    session: Session | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Components:
    """The components of one run, all on one structured caller; `approve` is asked for tools that need it.

    `session` stores what tools return; `stop` says whether the run is asked to stop.
    """
    settings, max_steps = shared.settings, shared.settings.execution.max_steps
    registry = tools.build_run_registry(shared.registry, memory, settings=settings.tools)
    structured = _structured_caller(shared, llm, inputs, stream)
    shown = ShownMemory(memory.notes, settings.memory.max_characters)
    thresholds = {name: getattr(settings.convergence, name) for name in ("completeness", "coherence", "consistency")}
    planner = _planner(settings, llm, registry, structured, shown)
    invoker = (
        ToolInvoker(registry, settings.tools, approve=approve)
        if session is None
        else StoredInvoker(registry, settings.tools, approve=approve, session=session, stop=stop)
    )
    worker = _worker(shared, llm, structured, registry, invoker, inputs, stream, shown)
    return Components(
        convergence=ConvergenceEngine(llm, thresholds, structured=structured, memory=shown),
        validator=SemanticValidator(llm, registry, structured=structured, max_steps=max_steps, memory=shown),
        planner=planner,
        adaptive=_adaptive_depth(settings, llm, registry, structured),
        executor=StepExecutor(worker, stream.emit),
    )


def _structured_caller(
    shared: Process, llm: LLMAdapter, inputs: Mapping[str, str], stream: EventStream
) -> StructuredCaller:
    return StructuredCaller(
        llm,
        prompts=shared.prompts,
        schemas=shared.schemas,
        parameters=_parameters(shared.settings),
        shared={"inputs": dict(inputs)},
        emit=stream.emit,
    )


def _planner(
    settings: Settings, llm: LLMAdapter, registry: ToolRegistry, structured: StructuredCaller, memory: ShownMemory
) -> RecursivePlanner:
    return RecursivePlanner(
        llm,
        registry,
        settings.refinement.max_nesting_depth,
        structured=structured,
        max_steps=settings.execution.max_steps,
        answer_schema=settings.answer.json_schema,
        memory=memory,
    )


def _adaptive_depth(
    settings: Settings, llm: LLMAdapter, registry: ToolRegistry, structured: StructuredCaller
) -> AdaptiveDepth:
    return AdaptiveDepth(
        llm,
        settings.ttl.limit,
        settings.limits.model_dump(),
        table=settings.ttl,
        structured=structured,
        tools=registry.describe(),
    )


def _parameters(settings: Settings) -> Callable[[Role, ReasoningMode | None], Parameters]:
    return lambda role, mode: parameters_for(settings.roles, settings.reasoning, role, mode)


def _worker(
    shared: Process,
    llm: LLMAdapter,
    structured: StructuredCaller,
    registry: ToolRegistry,
    invoker: ToolInvoker,
    inputs: Mapping[str, str],
    stream: EventStream,
    memory: ShownMemory,
) -> StepWorker:
    settings = shared.settings
    supervisor = Supervisor(
        llm, prompts=shared.prompts, schemas=shared.schemas, parameters=_parameters(settings), emit=stream.emit
    )
    return StepWorker(
        llm,
        structured=structured,
        supervisor=supervisor,
        registry=registry,
        invoker=invoker,
        answer_schema=settings.answer.json_schema,
        inputs=inputs if shared.workflow else None,
        emit=stream.emit,
        memory=memory,
        outline_steps=settings.prompts.outline_steps,
    )


def orchestrator(
    shared: Process,
    inputs: Mapping[str, str],
    stream: EventStream,
    control: RunControl,
    ask: Ask | None = None,
    *,
    memory: RunMemory | None = None,
    plan: Plan | None = None,
    approve: Approve | None = None,
    session: Session | None = None,
) -> Orchestrator:
    """The kernel of one run, with everything it needs; `plan` is run instead of a generated one.

    `memory` lasts as long as the run unless given. `session` is the run's use of the store, which the caller closes;
    without one nothing is stored. Raises StoreFailed.
    """
    settings, memory = shared.settings, memory or RunMemory()
    stop = _stop_signal(stream, control)
    if ask is not None and session is not None:
        ask = stored_ask(ask, session, stop)
    llm = _run_stack(shared, stream, stop, session)
    parts = components(shared, llm, inputs, stream, memory, approve, session=session, stop=stop)
    return Orchestrator(
        llm,
        parts.convergence,
        parts.validator,
        parts.planner,
        parts.adaptive,
        executor=parts.executor,
        memory=memory,
        refiner=_refiner(settings, parts, ask),
        stream=stream,
        control=control,
        options=_options(shared, plan),
    )


def _run_stack(shared: Process, stream: EventStream, stop: Callable[[], bool], session: Session | None) -> LLMAdapter:
    settings = shared.settings
    return stack.run_stack(
        shared.adapter,
        limits=settings.limits,
        emit=stream.emit,
        stop=stop,
        session=session,
        store=settings.store,
        provider=settings.provider,
    )


def _refiner(settings: Settings, parts: Components, ask: Ask | None) -> Refiner:
    return Refiner(
        parts.planner,
        parts.validator,
        settings.refinement,
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        ask=ask,
    )


def _stop_signal(stream: EventStream, control: RunControl) -> Callable[[], bool]:
    """Says whether the run is asked to stop, or over: a call that still waits then must not go out."""
    over = Event()
    stream.subscribers.append(lambda recorded: over.set() if isinstance(recorded.event, RunFinished) else None)
    return lambda: control.stop_requested or over.is_set()


def _options(shared: Process, plan: Plan | None) -> RunOptions:
    settings = shared.settings
    return RunOptions(
        mode=settings.mode.kind,
        one_step=settings.mode.one_step,
        plan=plan,
        execution=settings.execution,
        limits=settings.limits,
        base_ttl=settings.ttl.base,
        ttl_limit=settings.ttl.limit,
        convergence=settings.convergence,
        requires_final_step=settings.answer.json_schema is not None,
        answer_mark=answer_mark(settings, synthetic=shared.synthetic),
        configuration=history_configuration(settings, synthetic=shared.synthetic),
    )


def history_configuration(settings: Settings, *, synthetic: bool) -> dict[str, Any]:
    """What the history records of a run's configuration."""
    dumped = settings.model_dump(mode="json")
    return {
        "convergence_criteria": dumped["convergence"],
        "ttl": settings.ttl.base,
        "adaptive_depth_settings": {"reasoning": dumped["reasoning"], "ttl_table": dumped["ttl"]},
        "refinement": dumped["refinement"],
        "limits": dumped["limits"],
        "provider": settings.provider.kind,
        "synthetic": synthetic,
    }


def answer_mark(settings: Settings, *, synthetic: bool) -> str:
    """What is put before an answer that no model gave; nothing before JSON of the person's schema."""
    return f"{SIMULATED_LINE}\n" if synthetic and settings.answer.json_schema is None else ""
