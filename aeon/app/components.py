"""Builds the components of one run from settings: the packaged ones, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from aeon.adaptive.heuristics import AdaptiveDepth
from aeon.app import tools
from aeon.app.process import Process
from aeon.checks.interface import NO_CHECKS, AnswerChecks
from aeon.convergence.comparison import Comparer
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.request import InputFile, LLMAdapter
from aeon.domain.values import JsonMapping
from aeon.execution.event_stream import EventStream
from aeon.execution.samples import Sampler
from aeon.execution.steps import StepExecutor
from aeon.execution.tool_steps import list_step_tools
from aeon.execution.worker import StepWorker
from aeon.llm.roles import parameters_for
from aeon.memory.run_memory import RunMemory, ShownMemory
from aeon.plan.recursive import RecursivePlanner
from aeon.refinement.components import Depth, Engine, Planner, Validator
from aeon.store.session import DoStep
from aeon.supervisor.own import Repairs
from aeon.supervisor.repair import Supervisor
from aeon.supervisor.structured import StructuredCaller
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry
from aeon.tools.settings import ToolSettings
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Components:
    """The components of one run that ask a model."""

    convergence: Engine
    validator: Validator
    planner: Planner
    adaptive_depth: Depth
    executor: StepExecutor


@dataclass(slots=True)
class Packaged:
    """Makes the packaged components of one run, each over any adapter. Once `supervisor`, the
    user's own, is set, it repairs for every component made afterwards."""

    shared: Process
    inputs: Mapping[str, str]
    stream: EventStream
    memory: RunMemory
    make_invoker: Callable[[ToolRegistry, ToolSettings], ToolInvoker] = ToolInvoker
    context: JsonMapping | None = None
    do_step: DoStep | None = None
    checks: AnswerChecks = NO_CHECKS
    files: Mapping[str, InputFile] = field(default_factory=dict)
    supervisor: Repairs | None = None
    registry: ToolRegistry = field(init=False)
    shown: ShownMemory = field(init=False)

    def __post_init__(self) -> None:
        settings = self.shared.settings
        self.registry = tools.build_run_registry(
            self.shared.registry, self.memory, settings=settings.tools
        )
        self.shown = ShownMemory(
            self.memory.notes, settings.memory.max_characters, self.memory.handoffs
        )

    def make_convergence(self, llm: LLMAdapter) -> ConvergenceEngine:
        """The judge of whether the task is done."""
        return ConvergenceEngine(
            llm,
            self.thresholds(),
            structured=self._make_caller(llm),
            memory=self.shown,
            shows_drafts=not self.shared.settings.evaluates_whole_answers,
        )

    def make_validator(self, llm: LLMAdapter) -> SemanticValidator:
        """The reviewer of plans and results."""
        return SemanticValidator(
            llm,
            self.registry,
            max_steps=self.shared.settings.execution.max_steps,
            structured=self._make_caller(llm),
            memory=self.shown,
        )

    def make_planner(self, llm: LLMAdapter) -> RecursivePlanner:
        """The maker of plans and of changes to them."""
        settings = self.shared.settings
        return RecursivePlanner(
            llm,
            self.registry,
            settings.refinement.max_nesting_depth,
            max_steps=settings.execution.max_steps,
            answer_schema=settings.answer.json_schema,
            binding_severity=settings.refinement.binding_severity,
            structured=self._make_caller(llm),
            memory=self.shown,
        )

    def make_adaptive_depth(self, llm: LLMAdapter) -> AdaptiveDepth:
        """The profiler of the task, which sets its budget."""
        settings = self.shared.settings
        return AdaptiveDepth(
            llm,
            settings.ttl.limit,
            settings.limits.model_dump(),
            table=settings.ttl,
            structured=self._make_caller(llm),
            tools=self.registry.describe(),
        )

    def make_supervisor(self, llm: LLMAdapter) -> Supervisor:
        """The repairer of malformed answers."""
        return self._make_caller(llm)

    def make_comparer(self, llm: LLMAdapter) -> Comparer:
        """The judge of which of two answers is better."""
        return Comparer(self._make_caller(llm))

    def make_executor(self, llm: LLMAdapter) -> StepExecutor:
        """The executor of steps."""
        workflow = self.shared.workflow
        settings = self.shared.settings
        worker = StepWorker(
            llm,
            structured=self._make_caller(llm),
            registry=self.registry,
            invoker=self.make_invoker(self.registry, settings.tools),
            answer_schema=settings.answer.json_schema,
            inputs=workflow.read_inputs(self.inputs) if workflow else None,
            emit=self.stream.emit,
            memory=self.shown,
            outline_steps=settings.prompts.outline_steps,
            needs_tools=settings.tools.missing == "fail",
            direct=settings.mode.kind == "single",
            context=self.context,
            do_step=self.do_step,
            step_tools=settings.execution.step_tools,
            max_tool_rounds=settings.execution.max_tool_rounds,
            max_parallel=settings.execution.max_parallel,
            max_steps=settings.execution.max_steps,
        )
        if settings.execution.samples == 1:
            return StepExecutor(worker, self.stream.emit)
        comparer = self.make_comparer(llm)
        check = self.checks.run_on_sample
        sampler = Sampler(settings.execution, comparer=comparer, check=check)
        return StepExecutor(worker, self.stream.emit, sampler)

    def thresholds(self) -> dict[str, float]:
        """The scores that a run must reach to converge."""
        configured = self.shared.settings.convergence
        return {
            "completeness": configured.completeness,
            "coherence": configured.coherence,
            "consistency": configured.consistency,
        }

    def _make_caller(self, llm: LLMAdapter) -> StructuredCaller:
        settings = self.shared.settings
        step_tools = list_step_tools(settings.execution.step_tools, self.registry.list())
        workflow = self.shared.workflow
        return StructuredCaller(
            llm,
            shared={
                "inputs": dict(self.inputs),
                "step_tools": step_tools,
                "lists_tools": workflow is not None and workflow.lists_tools,
            },
            files=self.files,
            supervisor=self.supervisor,
            emit=self.stream.emit,
            prompts=self.shared.prompts,
            schemas=self.shared.schemas,
            parameters=partial(parameters_for, settings.roles, settings.reasoning),
            max_repairs=settings.schemas.repair_attempts,
        )


def build_components(packaged: Packaged, llm: LLMAdapter) -> Components:
    """Return the components of one run over its adapter, the user's own where there are any. Raises
    ConfigError for one that cannot be made, or that lacks a method of its interface."""
    own = packaged.shared.own_components

    def choose(name: str, make: Callable[[LLMAdapter], T]) -> T:
        mine = own.make(name, _offer(packaged, llm, make))
        component: T = make(llm) if mine is None else mine
        return component

    # First, since every component made afterwards repairs with it.
    packaged.supervisor = own.make("supervisor", _offer(packaged, llm, packaged.make_supervisor))
    return Components(
        convergence=choose("convergence", packaged.make_convergence),
        validator=choose("validator", packaged.make_validator),
        planner=choose("planner", packaged.make_planner),
        adaptive_depth=choose("adaptive_depth", packaged.make_adaptive_depth),
        executor=packaged.make_executor(llm),
    )


def _offer(
    packaged: Packaged, llm: LLMAdapter, build: Callable[[LLMAdapter], object]
) -> dict[str, object]:
    """Return what a user's own factory may take as arguments: those of the published constructors,
    the settings, and `build`, which makes the packaged component over an adapter."""
    settings = packaged.shared.settings
    return {
        "llm": llm,
        "build": build,
        "settings": settings,
        "tool_registry": packaged.registry,
        "default_thresholds": packaged.thresholds(),
        "max_nesting_depth": settings.refinement.max_nesting_depth,
        "global_ttl_limit": settings.ttl.limit,
        "global_resource_caps": settings.limits.model_dump(),
    }


def offer_memory(shared: Process, run_id: str) -> dict[str, object]:
    """Return what the factory of a memory may take as arguments."""
    namespace = shared.settings.memory.namespace
    return {"settings": shared.settings, "run_id": run_id, "namespace": namespace}
