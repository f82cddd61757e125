"""Settings -> objects: the only place where the rooms are put together.

Two lifetimes. A `Process` holds what many runs share: the provider's adapter, templates, validators. `orchestrator`
builds what one run owns: its limits, its five components, its kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.app import tools
from aeon.app.adapters import build_adapter, is_synthetic, settle_provider
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
from aeon.llm.prompts import PromptLibrary
from aeon.llm.schemas import SchemaLibrary
from aeon.llm.settings import parameters_for
from aeon.llm.stack import build as stack
from aeon.memory.run_memory import InMemory, RunMemory, ShownMemory
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.workflow.load import Workflow, load_workflow, located
from aeon.refinement.models import Ask
from aeon.refinement.refiner import Refiner
from aeon.store.opening import check_store
from aeon.store.session import Session, stored_ask
from aeon.supervisor.repair import Supervisor
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.approval import Approve
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.stored import StoredInvoker
from aeon.validation.semantic import SemanticValidator


@dataclass(frozen=True, slots=True)
class Process:
    """What many runs share. `settings` name a definite provider, `warnings` what a person should know before a run.

    `synthetic` says that no model is called.
    """

    settings: Settings
    adapter: LLMAdapter
    prompts: PromptLibrary
    schemas: SchemaLibrary
    registry: ToolRegistry
    workflow: Workflow | None
    warnings: tuple[str, ...]
    prompts_digest: str
    schemas_digest: str
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Components:
    """What one run asks a model through."""

    convergence: ConvergenceEngine
    validator: SemanticValidator
    planner: RecursivePlanner
    adaptive: AdaptiveDepth
    executor: StepExecutor


def process(
    settings: Settings,
    environ: Mapping[str, str],
    own_tools: Sequence[Tool] = (),
    own_adapter: LLMAdapter | None = None,
) -> Process:
    """Resolve the provider, load prompts and schemas, start tools; `own_tools` come after the configured ones.

    `own_adapter` is asked instead of the configured provider, and stays the caller's. Raises ConfigError for whatever
    cannot be used.
    """
    check_store(settings.store)
    settings = settle_provider(settings, environ, own_adapter)
    prompts = PromptLibrary(settings.prompts.dir, settings.prompts.set)
    schemas = SchemaLibrary(
        settings.schemas.dir,
        settings.ttl.levels,
        {name: dimension.answer_schema for name, dimension in settings.ttl.dimensions.items()},
    )
    schemas.check()
    warnings: list[str] = []
    registry = tools.build(settings.tools, environ, report=warnings.append)
    try:
        for made in own_tools:
            registry.register(made)
        workflow = _workflow(settings, tools.build_run_registry(registry, InMemory(), settings=settings.tools))
        adapter = build_adapter(settings, environ, own_adapter)
    except BaseException:
        registry.close()
        raise
    if workflow is not None:
        warnings += (located(workflow.path, problem) for problem in workflow.warnings)
    return Process(
        settings=settings,
        adapter=adapter,
        prompts=prompts,
        schemas=schemas,
        registry=registry,
        workflow=workflow,
        warnings=tuple(warnings),
        prompts_digest=prompts.digest(),
        schemas_digest=schemas.digest(),
        synthetic=is_synthetic(settings, adapter),
    )


def _workflow(settings: Settings, registry: ToolRegistry) -> Workflow | None:
    if settings.plan_file is None:
        return None
    return load_workflow(
        settings.plan_file,
        tool_names={tool.name: tool.input_schema for tool in registry.list()},
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        unavailable=registry.unavailable,
    )


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

    `session` keeps what tools give; `stop` says whether the run is asked to stop.
    """
    settings = shared.settings
    registry = tools.build_run_registry(shared.registry, memory, settings=settings.tools)

    def parameters(role: Role, mode: ReasoningMode | None) -> Parameters:
        return parameters_for(settings.roles, settings.reasoning, role, mode)

    structured = StructuredCaller(
        llm,
        prompts=shared.prompts,
        schemas=shared.schemas,
        parameters=parameters,
        shared={"inputs": dict(inputs)},
        emit=stream.emit,
    )
    answer_schema = settings.answer.json_schema
    shown = ShownMemory(memory.notes, settings.memory.max_characters)
    invoker = (
        ToolInvoker(registry, settings.tools, approve=approve)
        if session is None
        else StoredInvoker(registry, settings.tools, approve=approve, session=session, stop=stop)
    )
    return Components(
        convergence=ConvergenceEngine(
            llm,
            {name: getattr(settings.convergence, name) for name in ("completeness", "coherence", "consistency")},
            structured=structured,
            memory=shown,
        ),
        validator=SemanticValidator(
            llm, registry, structured=structured, max_steps=settings.execution.max_steps, memory=shown
        ),
        planner=RecursivePlanner(
            llm,
            registry,
            settings.refinement.max_nesting_depth,
            structured=structured,
            max_steps=settings.execution.max_steps,
            answer_schema=answer_schema,
            memory=shown,
        ),
        adaptive=AdaptiveDepth(
            llm,
            settings.ttl.limit,
            settings.limits.model_dump(),
            table=settings.ttl,
            structured=structured,
            tools=registry.describe(),
        ),
        executor=StepExecutor(
            StepWorker(
                llm,
                structured=structured,
                supervisor=Supervisor(
                    llm, prompts=shared.prompts, schemas=shared.schemas, parameters=parameters, emit=stream.emit
                ),
                registry=registry,
                invoker=invoker,
                answer_schema=answer_schema,
                inputs=inputs if shared.workflow else None,
                emit=stream.emit,
                memory=shown,
                outline_steps=settings.prompts.outline_steps,
            ),
            stream.emit,
        ),
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
    """The kernel of one run, with everything it needs; `plan` is run in place of a generated one.

    `memory` is one that lasts as long as the run unless given. `session` is its use of
    the store, of whoever closes it; without one nothing is kept. Raises StoreFailed.
    """
    settings = shared.settings

    over = Event()
    stream.subscribe(lambda told: over.set() if isinstance(told.event, RunFinished) else None)

    def stop() -> bool:
        # A call that still waits when the run is over must not go out.
        return control.stop_requested or over.is_set()

    if ask is not None and session is not None:
        ask = stored_ask(ask, session, stop)
    llm = stack.run_stack(
        shared.adapter,
        limits=settings.limits,
        emit=stream.emit,
        stop=stop,
        session=session,
        store=settings.store,
        provider=settings.provider,
    )
    memory = memory or RunMemory()
    parts = components(shared, llm, inputs, stream, memory, approve, session=session, stop=stop)
    one_final_step = settings.answer.json_schema is not None
    return Orchestrator(
        llm,
        parts.convergence,
        parts.validator,
        parts.planner,
        parts.adaptive,
        executor=parts.executor,
        memory=memory,
        refiner=Refiner(
            parts.planner,
            parts.validator,
            settings.refinement,
            max_steps=settings.execution.max_steps,
            one_final_step=one_final_step,
            ask=ask,
        ),
        stream=stream,
        control=control,
        options=RunOptions(
            mode=settings.mode.kind,
            one_step=settings.mode.one_step,
            plan=plan,
            execution=settings.execution,
            limits=settings.limits,
            base_ttl=settings.ttl.base,
            ttl_limit=settings.ttl.limit,
            criteria=settings.convergence.criteria,
            requires_final_step=one_final_step,
            answer_mark=answer_mark(settings, synthetic=shared.synthetic),
            configuration=history_configuration(settings, synthetic=shared.synthetic),
        ),
    )


def history_configuration(settings: Settings, *, synthetic: bool) -> dict[str, Any]:
    """What the history says of a run's configuration (data model, ExecutionHistory)."""
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


def close(shared: Process) -> None:
    """Close what a process holds open."""
    stack.close(shared.adapter)
    shared.registry.close()
