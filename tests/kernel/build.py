"""A kernel on a scripted model, with whatever a test wants to be different."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.adaptive.table import load_packaged_table
from aeon.checks.interface import NO_CHECKS, AnswerChecks
from aeon.convergence.comparison import Comparer
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain import events
from aeon.domain.history import Outcome
from aeon.domain.request import LLMAdapter
from aeon.execution.event_stream import EventStream
from aeon.execution.gate import AnswerGate
from aeon.execution.samples import Sampler
from aeon.execution.steps import StepExecutor
from aeon.execution.tool_steps import list_step_tools
from aeon.execution.worker import StepWorker
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.kernel.settings import RunOptions
from aeon.memory.interface import Memory
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.settings import RefinementSettings
from aeon.refinement.refiner import Refiner
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.registry import ToolRegistry
from aeon.validation.semantic import SemanticValidator

TASK = "make tea"


def kernel(
    model: LLMAdapter,
    *,
    ttl: int | None = None,
    refinement: RefinementSettings | None = None,
    seen: list[events.Recorded] | None = None,
    answer_schema: dict[str, Any] | None = None,
    max_steps: int = 100,
    ask: Any = None,
    registry: ToolRegistry | None = None,
    inputs: dict[str, str] | None = None,
    memory: Memory | None = None,
    control: RunControl | None = None,
    checks: AnswerChecks = NO_CHECKS,
    step_tools: Sequence[str] = (),
    **options: Any,
) -> Orchestrator:
    """An orchestrator; `ttl` fixes the allocation, `seen` collects the events, `options` are those of RunOptions."""
    stream = EventStream([seen.append] if seen is not None else [])
    offered = list_step_tools(step_tools, registry.list() if registry else ())
    structured = StructuredCaller(model, emit=stream.emit, shared={"step_tools": offered})
    planner = RecursivePlanner(
        model, registry, structured=structured, answer_schema=answer_schema, max_steps=max_steps
    )
    validator = SemanticValidator(model, registry, structured=structured)
    execution = options.get("execution")
    sampler = execution and Sampler(
        execution, comparer=Comparer(structured), check=options.pop("check", None)
    )
    rival = options.pop("rival", None)
    has_gate = rival is not None or (refinement is not None and refinement.accept == "not_worse")
    limit = {} if ttl is None else {"global_ttl_limit": ttl}
    final = answer_schema is not None
    return Orchestrator(
        model,
        ConvergenceEngine(model, structured=structured),
        validator,
        planner,
        AdaptiveDepth(model, structured=structured, table=load_packaged_table(), **limit),
        executor=StepExecutor(
            StepWorker(
                model,
                structured=structured,
                registry=registry,
                answer_schema=answer_schema,
                inputs=inputs,
                emit=stream.emit,
                direct=options.get("mode") == "single",
                step_tools=step_tools,
            ),
            stream.emit,
            sampler,
        ),
        refiner=Refiner(
            planner, validator, refinement, ask=ask, one_final_step=final, max_steps=max_steps
        ),
        stream=stream,
        memory=memory,
        control=control,
        checks=checks,
        gate=AnswerGate(Comparer(structured), rival) if has_gate else None,
        options=RunOptions(requires_final_step=final, **options),
    )


def run(model: LLMAdapter, **options: Any) -> Outcome:
    return kernel(model, **options).run(TASK)


def phases(outcome: Outcome, number: int) -> list[str]:
    """The phases of a pass, those not done with their outcome."""
    record = outcome.history.passes[number]
    return [p.phase if p.outcome == "done" else f"{p.phase} {p.outcome}" for p in record.phases]


def statuses(outcome: Outcome) -> dict[str, str]:
    plan = outcome.state.plan
    return {step.step_id: step.status for step in plan.steps} if plan else {}


def advisories(outcome: Outcome, kind: str) -> list[str]:
    return [a.message for a in outcome.state.advisories if a.kind == kind]


def names(seen: Sequence[events.Recorded]) -> list[str]:
    return [type(recorded.event).__name__ for recorded in seen]
