"""The kernel: profile, plan, then passes, until the answer is good enough or the budget is spent.

    A  profile the task                      -> a budget (TTL) and a reasoning mode
    B  plan -> validate -> refine            before a single step runs
    C  execute -> evaluate -> decide -> refine, pass after pass
    D  profile anew, at the end of a pass, when all signals say that the first profile was wrong

The model emits structured signals; every decision about what happens next is made here, from those signals, the
configured thresholds and the budget (FR-088). Each structured call is charged to the TTL in one place:
`OpenRun.call`.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from aeon.adaptive.heuristics import AdaptiveDepth, is_small
from aeon.convergence.engine import ConvergenceEngine
from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.errors import AeonError, LimitReached, LLMError, StopRequested, Unexpected, ValidationError
from aeon.domain.graph import final_steps, layers, pending_steps
from aeon.domain.history import EvaluationResults, Outcome, Phase, RunState, TerminationReason
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.report import UNREVIEWED, SemanticValidationReport, ValidationIssue
from aeon.domain.request import CallName, LLMAdapter
from aeon.execution.forecast import forecast
from aeon.execution.worker import StepWorker
from aeon.kernel import history
from aeon.kernel.control import RunControl
from aeon.kernel.executor import Batches, StepExecutor
from aeon.kernel.log import RunLog
from aeon.kernel.open_run import OpenRun
from aeon.kernel.profiling import Profiling, least_limit
from aeon.kernel.recorder import OpenPass, OpenPhase
from aeon.kernel.settings import ONE_STEP, ExecutionSettings, Mode
from aeon.kernel.ttl import TTL, TTLExpired
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.guarded import GuardedMemory
from aeon.memory.in_memory import InMemory
from aeon.memory.interface import Memory
from aeon.memory.shown import ShownMemory
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.transitions import with_errors
from aeon.plan.triggers import Trigger, issue_triggers, pass_triggers
from aeon.plan.views import current_outputs
from aeon.refinement.models import Occasion
from aeon.refinement.refiner import Refiner
from aeon.refinement.signatures import accepted_arguments
from aeon.refinement.verdicts import is_stuck
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")
logger = logging.getLogger(__name__)
UNAVAILABLE = ConvergenceAssessment(
    converged=False, reason_codes=("evaluation_unavailable",), explanation="This pass could not be evaluated."
)


class Orchestrator:
    """Runs tasks, one at a time; needs one instance per run that is to overlap with another.

    `criteria` are the custom convergence criteria, `base_ttl` is the base of the TTL table, in core mode the whole TTL;
    no run gets more than `ttl_limit`, the limit of `adaptive_depth` or `limits.max_llm_calls`. `requires_final_step`
    says that the answer must be one step's output; `one_step` is what the step of a small task is told in mode auto.
    """

    def __init__(
        self,
        llm: LLMAdapter,
        convergence_engine: ConvergenceEngine,
        semantic_validator: SemanticValidator,
        recursive_planner: RecursivePlanner,
        adaptive_depth: AdaptiveDepth,
        *,
        executor: StepExecutor | None = None,
        memory: Memory | None = None,
        refiner: Refiner | None = None,
        execution: ExecutionSettings | None = None,
        limits: LimitSettings | None = None,
        criteria: Mapping[str, Any] | None = None,
        base_ttl: int = 10,
        ttl_limit: int | None = None,
        requires_final_step: bool = False,
        stream: events.EventStream | None = None,
        control: RunControl | None = None,
        configuration: Mapping[str, Any] | None = None,
        mode: Mode = "adaptive",
        one_step: str = ONE_STEP,
        plan: Plan | None = None,
        answer_mark: str = "",
    ) -> None:
        self.convergence_engine = convergence_engine
        self.semantic_validator = semantic_validator
        self.recursive_planner = recursive_planner
        self.adaptive_depth = adaptive_depth
        self._memory = GuardedMemory(memory or InMemory(), lambda said: self._run.advise("memory_failure", said))
        shown = ShownMemory(lambda: self._memory.search(""))
        self.executor = executor or StepExecutor(StepWorker(llm, memory=shown))
        self._execution = execution or ExecutionSettings()
        self._refiner = refiner or Refiner(recursive_planner, semantic_validator, max_steps=self._execution.max_steps)
        self._limits = limits or LimitSettings()
        self._criteria = dict(criteria or {})
        self._base_ttl, self._ttl_limit = base_ttl, least_limit(ttl_limit, adaptive_depth, self._limits)
        self._requires_final_step = requires_final_step
        self._stream, self._log = stream or events.EventStream(), RunLog()
        self._stream.subscribe(self._log)
        self._control = control or RunControl()
        self._configuration = dict(configuration or {})
        self._core, self._auto, self._one_step = mode == "core", mode == "auto", one_step
        self._given_plan = plan
        self._answer_mark = answer_mark
        self._begin()

    @property
    def state(self) -> RunState:
        """The run as it stands; may be read while it runs, from any thread (Sprint 1, US2-3)."""
        return self._run.state.model_copy(update=self._log.fields())

    def run(self, task: str, context: dict[str, Any] | None = None, run_id: str | None = None) -> Outcome:
        """Run a task to its end, whatever end that is; errors of the model's side become the outcome's `error`."""
        self._begin()
        error: AeonError | None = None
        try:
            reason = self._lifecycle(task, context)
        except TTLExpired:
            reason = "ttl_expired"
        except LimitReached as reached:
            reason = reached.limit  # type: ignore[assignment]
        except StopRequested:
            reason = "interrupted"
        except AeonError as failure:
            reason, error = "failed", failure
        except Exception as failure:  # a defect must not cost what was already paid for
            logger.debug("unexpected", exc_info=True)
            reason, error = "failed", Unexpected(f"{type(failure).__name__}: {failure}")
        finally:
            self._run.workers.close()
        if error is None and reason != "interrupted" and not self._log.has_answers:
            # Every call failed in the same way: that is what there is to tell, not how the run came to its end.
            error = self._run.common_error()
            reason = "failed" if error else reason
        return self._outcome(task, run_id or uuid.uuid4().hex, reason, error)

    def plan(self, task: str, context: dict[str, Any] | None = None) -> Plan:
        """Phases A and B alone: the reviewed and refined plan, no step executed. Raises what ends them early."""
        self._begin()
        try:
            self._plan_whole(task, context)
        finally:
            self._run.workers.close()
        return self._run.plan

    def _plan_whole(self, task: str, context: dict[str, Any] | None) -> None:
        """Phases A and B; core mode has no profile, its budget is the base."""
        if self._core:
            self._run.allocate(TTL(allocated=min(self._base_ttl, self._ttl_limit)))
        else:
            self._profiling.infer(task, context)
            self._run.small = self._auto and self._is_small()
        self._plan(task, context)

    def _is_small(self) -> bool:
        """Whether the task needs no planner: nobody gave a plan, its profile is small, and it is to use no tools."""
        profile = self._run.state.profile
        if profile is None or self._given_plan is not None or not is_small(profile):
            return False
        return profile.expected_tool_usage == "none" or not self.executor.worker.has_tools

    def _begin(self) -> None:
        self._log.clear()
        self._run = OpenRun(self._stream, self._control, self._execution, self._limits, self._answer_mark)
        self._batches = Batches(self.executor, self._run, self._memory, core=self._core)
        self._profiling = Profiling(self._run, self.adaptive_depth, self._base_ttl, self._ttl_limit)

    def _lifecycle(self, task: str, context: dict[str, Any] | None) -> TerminationReason:
        self._plan_whole(task, context)
        if not self._run.affordable():
            self._run.cut_off()
            return "ttl_expired"
        for number in itertools.count(1):
            if end := self._execution_pass(number):
                return end
        raise AssertionError("unreachable")

    def _execution_pass(self, number: int) -> TerminationReason | None:
        """One pass; the reason to end the run after it, or None. A spent budget ends it before any other reason but
        convergence."""
        with self._pass(number) as this:
            self._execute(this)
            if self._core:
                return self._step_done(this)
            report, assessment = self._evaluate(this)
            if self._is_converged(assessment):
                return "converged"
            if not self._run.affordable():
                return "ttl_expired"
            if number == self._limits.max_passes:
                return "max_passes"
            stuck = self._refine_pass(this, report.issues if report else (), assessment)
            if stuck and assessment.evaluated and self._run.affordable():
                return "stalled"
            self._profiling.update(this, report, assessment)
        return None if self._run.affordable() else "ttl_expired"

    @contextmanager
    def _pass(self, number: int) -> Iterator[OpenPass]:
        plan = self._run.state.plan
        ready = tuple(step.step_id for step in self._batches.runnable(plan)) if plan else ()
        with self._run.open_pass(number, ready, brief=self._core and number > 0) as this:
            yield this

    def _step_done(self, this: OpenPass) -> TerminationReason | None:
        """Core mode: no evaluation; the run ends when nothing is pending, or nothing is left to spend (Sprint 1,
        FR-004, FR-005)."""
        plan = self._run.plan
        this.complete = True
        if not pending_steps(plan):
            return "completed" if all(step.status == "complete" for step in plan.steps) else "step_failed"
        if not self._run.affordable():
            return "ttl_expired"
        return "max_passes" if this.number == self._limits.max_passes else None

    # Phase B

    def _plan(self, task: str, context: dict[str, Any] | None) -> None:
        with self._pass(0) as this:
            with self._run.phase("B", "PLAN"):
                plan = self._given_plan or self._make_plan(task, context)
                this.plan = plan.model_copy(update={"task": task})
                this.plan = self._look_for_tools(this.plan)
                self._run.update(plan=this.plan)
            if not self._core:
                self._review_plan(this)
            this.complete = True
        plan = self._run.plan
        self._stream.emit(events.PlanMade(plan=plan, layers=len(layers(plan)), expected_calls=self.forecast(plan)))

    def _make_plan(self, task: str, context: dict[str, Any] | None) -> Plan:
        if self._run.small:
            return Plan(
                goal=self._one_step, steps=(PlanStep(step_id="answer", description=self._one_step, agent="llm"),)
            )
        return self._run.call("plan", lambda: self.recursive_planner.generate_plan(task, context))

    def forecast(self, plan: Plan) -> int:
        """About how many cycles a plan will take; a tool step with arguments of its own takes none."""
        if self._run.small:
            return len(plan.steps) + 1
        return forecast(plan, lambda step: self.executor.worker.cost(step, {}), core=self._core)

    def _look_for_tools(self, plan: Plan) -> Plan:
        """Note missing tools as soon as a plan names them: an advisory each, and an error of its step (Sprint 1,
        FR-064, FR-071)."""
        missing = dict(self.executor.worker.missing_tools(plan))
        for step_id, message in missing.items():
            self._run.advise("unknown_tool", f"Step {step_id}: {message}", step_id)
        return with_errors(plan, missing)

    def _review_plan(self, this: OpenPass) -> None:
        if self._run.small:
            self._skip("B", "EVALUATE")
            self._skip("B", "REFINE")
            return
        with self._run.phase("B", "EVALUATE") as phase:
            report = self._review(phase, lambda: self.semantic_validator.validate("plan", plan=this.plan))
            this.evaluation = EvaluationResults(validation_report=report)
        issues = report.issues if report else ()
        self._refine(this, "B", issues, issue_triggers(issues), is_clean=report is not None and not issues)

    # Phase C

    def _execute(self, this: OpenPass) -> None:
        with self._run.phase("C", "EXECUTE" if this.number == 1 else "RE_EXECUTE"):
            self._batches.carry_out(this)

    def _evaluate(self, this: OpenPass) -> tuple[SemanticValidationReport | None, ConvergenceAssessment]:
        with self._run.phase("C", "EVALUATE") as phase:
            plan, memory = self._run.plan, self._memory.search("")
            outputs, steps = current_outputs(plan.steps), list(plan.steps)
            this.answer = self._run.state.answer
            unreviewed = self._run.small and this.number == 1
            report, assessment = None, None
            if not unreviewed:
                report = self._review(
                    phase, lambda: self.semantic_validator.validate("cross_phase", plan, steps, outputs, memory)
                )
            if unreviewed or report is not None:
                given, assess = report or UNREVIEWED, self.convergence_engine.assess
                more = accepted_arguments(assess, left_to_person=self._run.state.conflicts)
                assessment = self._available(
                    phase, "convergence", lambda: assess(given, plan, steps, outputs, self._criteria, **more)
                )
            this.evaluation = EvaluationResults(validation_report=report, convergence=assessment or UNAVAILABLE)
            this.complete = assessment is not None or self._run.affordable()
            misses = 0 if assessment else self._run.state.unavailable_evaluations + 1
            self._run.update(unavailable_evaluations=misses, assessment=assessment or UNAVAILABLE)
            self._stream.emit(
                events.Assessed(pass_number=this.number, cycle=self._run.ttl.used, assessment=assessment or UNAVAILABLE)
            )
            return report, assessment or UNAVAILABLE

    def _review(
        self, phase: OpenPhase, validate: Callable[[], SemanticValidationReport]
    ) -> SemanticValidationReport | None:
        report = self._available(phase, "semantic_validation", validate)
        if report is not None:
            self._stream.emit(
                events.Validated(pass_number=self._run.state.pass_number, cycle=self._run.ttl.used, report=report)
            )
        return report

    def _available(self, phase: OpenPhase, call: CallName, ask: Callable[[], T]) -> T | None:
        """An evaluating call's value; None when it is unavailable, and its error when that happens twice running."""
        try:
            return self._run.call(call, ask)
        except (LLMError, ValidationError) as error:
            phase.outcome = "unavailable"
            self._run.advise("evaluation_unavailable", f"{call}: {error.message}")
            if self._run.state.unavailable_evaluations:
                raise
            return None

    def _is_converged(self, assessment: ConvergenceAssessment) -> bool:
        """Converged ends the run even with steps pending, but an answer of a given schema needs its final step."""
        final_done = all(step.status == "complete" for step in final_steps(self._run.plan))
        return assessment.converged and (final_done or not self._requires_final_step)

    def _refine_pass(
        self, this: OpenPass, issues: Sequence[ValidationIssue], assessment: ConvergenceAssessment
    ) -> bool:
        """Refine when there is a reason to; whether the run is stuck afterwards."""
        before = self._run.plan
        state = self._run.state
        triggers = pass_triggers(before, issues, assessment, state.manual_intervention, state.raised_triggers)
        exhausted = not self._refiner.may_refine(self._run.attempts)
        if exhausted and triggers:
            self._run.advise(
                "refinement_limit", "No more refinements are allowed in this run; work goes on with the plan."
            )
        if exhausted or not self._refiner.is_due(triggers):
            self._skip("C", "REFINE")
        else:
            self._refine(this, "C", issues, triggers, assessment)
        verdict = this.refinement.supervisor if this.refinement else None
        return verdict.blocking if verdict else is_stuck(before, self._run.plan)

    def _skip(self, stage: str, phase: Phase) -> None:
        with self._run.phase(stage, phase) as note:
            note.outcome = "skipped"

    def _refine(
        self,
        this: OpenPass,
        stage: str,
        issues: Sequence[ValidationIssue],
        triggers: Sequence[Trigger],
        assessment: ConvergenceAssessment | None = None,
        is_clean: bool = False,
    ) -> None:
        run = self._run
        with run.phase(stage, "REFINE") as phase:
            occasion = Occasion(issues, triggers, run.state.manual_intervention, assessment, is_clean)
            refined = self._refiner.refine(run.plan, occasion, run.attempts, run)
            this.refinement = refined.record
            refined = replace(refined, plan=self._look_for_tools(refined.plan))
            self._run.take(refined)
            if refined.record is None:
                phase.outcome = "unavailable"
            else:
                self._stream.emit(events.Refined(pass_number=this.number, refinement=refined.record, plan=refined.plan))

    def _outcome(self, task: str, run_id: str, reason: TerminationReason, error: AeonError | None) -> Outcome:
        self._run.record_start()
        seconds = self._run.watch.seconds
        outcome = history.outcome(run_id, task, self._configuration, self.state, reason, error, seconds)
        self._stream.emit(
            events.RunFinished(
                termination_reason=reason,
                converged=outcome.converged,
                passes=outcome.history.overall_statistics.total_passes,
                ttl_used=self._run.ttl.used,
                ttl_allocated=self._run.ttl.allocated,
            )
        )
        return outcome
