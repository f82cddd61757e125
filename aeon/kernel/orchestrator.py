"""The public kernel: five components in, the outcome of a run out."""

from __future__ import annotations

import uuid
from dataclasses import KW_ONLY, dataclass, field

from aeon.checks.interface import NO_CHECKS, AnswerChecks
from aeon.domain.history import Outcome, RunState
from aeon.domain.plan import Plan
from aeon.domain.request import LLMAdapter
from aeon.domain.values import JsonObject
from aeon.execution.event_stream import EventStream
from aeon.execution.gate import AnswerGate
from aeon.execution.steps import StepExecutor
from aeon.execution.worker import StepWorker
from aeon.kernel.control import RunControl
from aeon.kernel.evaluation import Evaluation
from aeon.kernel.executor import Batches
from aeon.kernel.loop import Loop
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.memory.interface import Memory
from aeon.memory.run_memory import GuardedMemory, InMemory, ShownMemory
from aeon.refinement.components import Depth, Engine, Planner, Validator, WithCycles
from aeon.refinement.refiner import Refiner


@dataclass(eq=False, repr=False)
class Orchestrator:
    """Runs tasks with five components, one at a time; runs that overlap need separate instances.
    Missing parts are created: an executor of LLM steps, a refiner, a memory in this process."""

    llm: LLMAdapter
    convergence_engine: Engine
    semantic_validator: Validator
    recursive_planner: Planner
    adaptive_depth: Depth
    _: KW_ONLY
    options: RunOptions | None = None
    executor: StepExecutor | None = None
    refiner: Refiner | None = None
    memory: Memory | None = None
    checks: AnswerChecks = NO_CHECKS
    gate: AnswerGate | None = None
    stream: EventStream | None = None
    control: RunControl | None = None
    _loop: Loop | None = field(default=None, init=False)

    @property
    def state(self) -> RunState:
        """The state of the latest run; may be read during the run, from any thread."""
        return self._loop.state if self._loop else RunState()

    def forecast(self, plan: Plan) -> int:
        """Estimate the cycles of a plan, in the latest run."""
        return (self._loop or self._make_loop()).forecast(plan)

    def run(
        self, task: str, context: JsonObject | None = None, run_id: str | None = None
    ) -> Outcome:
        """Run a task to its end, whatever the end is; errors of the model's side become the
        outcome's `error`."""
        self._loop = self._make_loop()
        return self._loop.run(task, context, run_id or uuid.uuid4().hex)

    def plan(self, task: str, context: JsonObject | None = None) -> Plan:
        """Run phases A and B and return the reviewed and refined plan. Raises TTLExpired,
        LimitReached, StopRequested and the errors of the model's side."""
        self._loop = self._make_loop()
        return self._loop.plan(task, context)

    def _make_loop(self) -> Loop:
        options = self.options or RunOptions()
        planner = self.recursive_planner
        validator = self.semantic_validator
        engine = self.convergence_engine
        cycles = engine.cycles if isinstance(engine, WithCycles) else 1
        stream = self.stream or EventStream()
        control = self.control or RunControl()
        run = OpenRun(stream, control, options, assessment_cycles=cycles)
        self.memory = self.memory or InMemory()
        memory = GuardedMemory(self.memory, lambda problem: run.advise("memory_failure", problem))
        shown = ShownMemory(lambda: memory.search(""))
        executor = self.executor or StepExecutor(StepWorker(self.llm, memory=shown))
        max_steps = options.execution.max_steps
        refiner = self.refiner or Refiner(planner, validator, max_steps=max_steps)
        batches = Batches(executor, run, memory, core=options.is_core)
        evaluation = Evaluation(
            run, options, self.adaptive_depth, validator, engine, memory, self.checks, self.gate
        )
        return Loop(run, options, planner, refiner, batches, evaluation)
