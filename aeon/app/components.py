"""Settings -> objects: the components of one run, which a rehearsal has too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.app import tools
from aeon.app.process import Process
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.request import LLMAdapter
from aeon.execution.steps import StepExecutor
from aeon.execution.worker import StepWorker
from aeon.kernel.event_stream import EventStream
from aeon.llm.roles import parameters_for
from aeon.memory.run_memory import RunMemory, ShownMemory
from aeon.plan.recursive import RecursivePlanner
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.invoke import ToolInvoker
from aeon.validation.semantic import SemanticValidator


@dataclass(frozen=True, slots=True)
class Components:
    """What one run asks a model through."""

    convergence: ConvergenceEngine
    validator: SemanticValidator
    planner: RecursivePlanner
    adaptive: AdaptiveDepth
    executor: StepExecutor


def build_components(
    shared: Process,
    llm: LLMAdapter,
    inputs: Mapping[str, str],
    stream: EventStream,
    memory: RunMemory,
    build_invoker: Callable[..., ToolInvoker] = ToolInvoker,
) -> Components:
    """The components of one run; `build_invoker` is given its tools and their settings."""
    settings, schema = shared.settings, shared.settings.answer.json_schema
    max_steps, bars = settings.execution.max_steps, settings.convergence
    registry = tools.build_run_registry(shared.registry, memory, settings=settings.tools)
    structured = StructuredCaller(
        llm,
        shared={"inputs": dict(inputs)},
        emit=stream.emit,
        prompts=shared.prompts,
        schemas=shared.schemas,
        parameters=partial(parameters_for, settings.roles, settings.reasoning),
        max_repairs=settings.schemas.repair_attempts,
    )
    shown = ShownMemory(memory.notes, settings.memory.max_characters)
    both: dict[str, Any] = {"structured": structured, "memory": shown}
    ttl, limits, refinement = settings.ttl, settings.limits.model_dump(), settings.refinement
    worker = StepWorker(
        llm,
        registry=registry,
        invoker=build_invoker(registry, settings.tools),
        answer_schema=schema,
        inputs=inputs if shared.workflow else None,
        emit=stream.emit,
        outline_steps=settings.prompts.outline_steps,
        needs_tools=settings.tools.missing == "fail",
        **both,
    )
    thresholds = {
        name: getattr(bars, name) for name in ("completeness", "coherence", "consistency")
    }
    return Components(
        convergence=ConvergenceEngine(llm, thresholds, **both),
        validator=SemanticValidator(llm, registry, max_steps=max_steps, **both),
        planner=RecursivePlanner(
            llm,
            registry,
            refinement.max_nesting_depth,
            max_steps=max_steps,
            answer_schema=schema,
            binding_severity=refinement.binding_severity,
            **both,
        ),
        adaptive=AdaptiveDepth(
            llm, ttl.limit, limits, table=ttl, structured=structured, tools=registry.describe()
        ),
        executor=StepExecutor(worker, stream.emit),
    )
