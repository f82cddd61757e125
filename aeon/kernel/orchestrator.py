"""The kernel: profile, plan, then passes, until the answer is good enough or the budget is spent.

    A  profile the task                      -> a budget (TTL) and a reasoning mode
    B  plan -> validate -> refine            before a single step runs
    C  execute -> evaluate -> decide -> refine, pass after pass
    D  profile anew, at the end of a pass, when all signals say that the first profile was wrong

The model emits structured signals; every decision about what happens next is made here, from those signals, the
configured thresholds and the budget (FR-088). Each structured call is charged to the TTL in one place: `call`.
"""

from __future__ import annotations

import itertools
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

from aeon import events
from aeon.adaptive.heuristics import AdaptiveDepth, complexity_mismatch, depth_configuration, revised_ttl
from aeon.adaptive.models import DEFAULT_PROFILE
from aeon.convergence.engine import ConvergenceEngine
from aeon.convergence.models import ConvergenceAssessment
from aeon.errors import AeonError, LimitReached, LLMError, StopRequested, Unexpected, ValidationError
from aeon.execution.forecast import forecast
from aeon.execution.worker import Situation, StepWorker
from aeon.kernel import history
from aeon.kernel.control import RunControl, Workers, as_done
from aeon.kernel.executor import Dispatch, Executed, StepExecutor
from aeon.kernel.log import RunLog
from aeon.kernel.recorder import OpenPass, OpenPhase
from aeon.kernel.settings import ExecutionSettings, LimitSettings
from aeon.kernel.state import (
    Advisory,
    AdvisoryKind,
    EvaluationResults,
    ExpirationPoint,
    Outcome,
    Phase,
    ProfileTransition,
    RunState,
    TerminationReason,
)
from aeon.kernel.ttl import TTL, TTLExpired
from aeon.llm.interface import CallName, CallSite, LLMAdapter, at_site
from aeon.memory.guarded import GuardedMemory
from aeon.memory.in_memory import InMemory
from aeon.memory.interface import Memory
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.graph import final_steps, layers, pending_steps, ready_steps
from aeon.plan.models import Plan, PlanStep
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.transitions import cut_off, incoming_context, started
from aeon.plan.triggers import Trigger, issue_triggers, pass_triggers
from aeon.plan.views import current_outputs, step_key
from aeon.refinement.refiner import Refiner
from aeon.refinement.verdicts import is_stuck
from aeon.validation.models import SemanticValidationReport, ValidationIssue
from aeon.validation.semantic import SemanticValidator

T = TypeVar("T")
logger = logging.getLogger(__name__)
UNAVAILABLE = ConvergenceAssessment(
    converged=False, reason_codes=("evaluation_unavailable",), explanation="This pass could not be evaluated."
)


class Orchestrator:
    """Runs tasks, one at a time; needs one instance per run that is to overlap with another.

    `criteria` are the custom convergence criteria, `base_ttl` is the base of the TTL
    table and `ttl_limit` the most it may give, `requires_final_step`
    says that the answer must be one step's output.
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
        ttl_limit: int = 100,
        requires_final_step: bool = False,
        stream: events.EventStream | None = None,
        control: RunControl | None = None,
        configuration: Mapping[str, Any] | None = None,
        mode: Literal["adaptive", "core"] = "adaptive",
        plan: Plan | None = None,
        answer_mark: str = "",
    ) -> None:
        self.convergence_engine = convergence_engine
        self.semantic_validator = semantic_validator
        self.recursive_planner = recursive_planner
        self.adaptive_depth = adaptive_depth
        self.executor = executor or StepExecutor(StepWorker(llm))
        self._memory = GuardedMemory(memory or InMemory(), lambda said: self._advise("memory_failure", said))
        self._execution = execution or ExecutionSettings()
        self._refiner = refiner or Refiner(recursive_planner, semantic_validator, max_steps=self._execution.max_steps)
        self._limits = limits or LimitSettings()
        self._criteria = dict(criteria or {})
        self._base_ttl, self._ttl_limit = base_ttl, ttl_limit
        self._requires_final_step = requires_final_step
        self._stream, self._log = stream or events.EventStream(), RunLog()
        self._stream.subscribe(self._log)
        self._control = control or RunControl()
        self._configuration = dict(configuration or {})
        self._core = mode == "core"
        self._given_plan = plan
        self._answer_mark = answer_mark
        self._state = RunState()

    @property
    def state(self) -> RunState:
        """The run as it stands; may be read while it runs, from any thread (Sprint 1, US2-3)."""
        return self._state.model_copy(update=self._log.fields())

    def run(self, task: str, context: dict[str, Any] | None = None, run_id: str | None = None) -> Outcome:
        """Run a task to its end, whatever end that is; errors of the model's side become the outcome's `error`."""
        self._begin()
        point, error = None, None
        try:
            reason = self._lifecycle(task, context)
        except TTLExpired as expired:
            reason, point = "ttl_expired", expired.point
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
            self._workers.close()
        return self._outcome(task, run_id or uuid.uuid4().hex, reason, point, error)

    def plan(self, task: str, context: dict[str, Any] | None = None) -> Plan:
        """Phases A and B alone: the reviewed and refined plan, no step executed. Raises what ends them early."""
        self._begin()
        try:
            self._plan_whole(task, context)
        finally:
            self._workers.close()
        return self._current_plan

    def _plan_whole(self, task: str, context: dict[str, Any] | None) -> None:
        """Phases A and B; core mode has no profile, its budget is the base."""
        if self._core:
            self._ttl = TTL(allocated=self._base_ttl)
            self._update(ttl_allocated=self._base_ttl)
        else:
            self._profile(task, context)
        self._plan(task, context)

    def _begin(self) -> None:
        self._log.clear()
        self._state, self._ttl = RunState(answer_mark=self._answer_mark), TTL(allocated=0)
        self._attempts = RefinementAttempts()
        self._pass: OpenPass | None = None
        self._started, self._workers = time.monotonic(), Workers(self._execution.max_parallel)

    def _lifecycle(self, task: str, context: dict[str, Any] | None) -> TerminationReason:
        self._plan_whole(task, context)
        for number in itertools.count(1):
            if end := self._execution_pass(number):
                return end
        raise AssertionError("unreachable")

    def _execution_pass(self, number: int) -> TerminationReason | None:
        """One pass; the reason to end the run after it, or None."""
        with self._open_pass(number) as this:
            self._execute(this)
            if self._core:
                return self._step_done(this)
            report, assessment = self._evaluate(this)
            if self._is_converged(assessment):
                return "converged"
            if not self.affordable():
                raise TTLExpired("phase_boundary" if this.complete else "mid_phase")
            if number == self._limits.max_passes:
                return "max_passes"
            stuck = self._refine_pass(this, report.issues if report else (), assessment)
            if stuck and assessment.evaluated:
                return "stalled"
            self._update_profile(this, report, assessment)
        return None

    def _step_done(self, this: OpenPass) -> TerminationReason | None:
        """Core mode: no evaluation; the run ends when nothing is pending (Sprint 1, FR-004)."""
        plan = self._current_plan
        this.complete = True
        if pending_steps(plan):
            return "max_passes" if this.number == self._limits.max_passes else None
        return "completed" if all(step.status == "complete" for step in plan.steps) else "step_failed"

    # Phase A

    def _profile(self, task: str, context: dict[str, Any] | None) -> None:
        with self._phase("A", "PROFILE"):
            fallback = None
            try:
                site = CallSite(phase="PROFILE", sequence=self._stream.reserve())
                profile = self._dispatch(
                    site, "task_profile", lambda: self.adaptive_depth.infer_task_profile(task, context)
                )
            except (LLMError, ValidationError) as error:
                profile, fallback = DEFAULT_PROFILE, error
            self._ttl = TTL(allocated=self.adaptive_depth.allocate_ttl(profile, self._base_ttl))
            depth = depth_configuration(profile, self._ttl.allocated, profile.raw_inference)
            self._update(profile=profile, depth=depth, ttl_allocated=self._ttl.allocated)
            if fallback:
                self._advise("profile_fallback", f"The default profile is used: {fallback.message}")
            self._stream.emit(events.ProfileInferred(profile=profile, depth=depth, fallback=fallback is not None))

    # Phase B

    def _plan(self, task: str, context: dict[str, Any] | None) -> None:
        with self._open_pass(0) as this:
            with self._phase("B", "PLAN"):
                plan = self._given_plan or self.call(
                    "plan", lambda: self.recursive_planner.generate_plan(task, context)
                )
                this.plan = plan.model_copy(update={"task": task})
                self._update(plan=this.plan)
                self._look_for_tools(this.plan)
            if not self._core:
                self._review_plan(this)
            this.complete = True
        plan = self._current_plan
        self._stream.emit(events.PlanMade(plan=plan, layers=len(layers(plan)), expected_calls=self.forecast(plan)))

    def forecast(self, plan: Plan) -> int:
        """About how many cycles a plan will take; a tool step with arguments of its own takes none."""
        return forecast(plan, lambda step: self.executor.worker.cost(step, {}), core=self._core)

    def _look_for_tools(self, plan: Plan) -> None:
        """Tell of missing tools as soon as a plan names them (Sprint 1, FR-071)."""
        for step_id, message in self.executor.worker.missing_tools(plan):
            self._advise("unknown_tool", message, step_id)

    def _review_plan(self, this: OpenPass) -> None:
        with self._phase("B", "EVALUATE") as phase:
            report = self._review(phase, lambda: self.semantic_validator.validate("plan", plan=this.plan))
            this.evaluation = EvaluationResults(validation_report=report)
        issues = report.issues if report else ()
        self._refine(this, "B", issues, issue_triggers(issues))

    # Phase C

    def _execute(self, this: OpenPass) -> None:
        with self._phase("C", "EXECUTE" if this.number == 1 else "RE_EXECUTE"):
            batch = self._start_batch()
            carried_out = self.executor.run_batch(batch, self._workers, self._stopping, self._execution.grace_seconds)
            done = {executed.step.step_id: self._store(this, executed) for executed in carried_out}
            self._conclude([done[dispatch.step.step_id] for dispatch in batch])
            self._check_stop()

    def _start_batch(self) -> list[Dispatch]:
        """Charge and number as many ready steps as the budget allows, in step order, and mark them running."""
        self._check_stop()
        plan, results, allowed = self._current_plan, self._state.results, self._ttl.batch_size
        chosen: list[tuple[PlanStep, CallSite]] = []
        for step in self._runnable(plan):
            cost = self.executor.worker.cost(step, results)
            if cost and not allowed:
                continue
            if cost:
                allowed, self._ttl = allowed - 1, self._ttl.charged()
            context = "" if self._core else incoming_context(plan, step, results)
            chosen.append((started(step, context), self._site(step.step_id, free=not cost)))
        for step, _ in chosen:
            plan = plan.with_step(step)
        self._update(plan=plan, ttl_used=self._ttl.used)
        for _, site in chosen:
            self._announce(site, "step" if site.cycle else "tool")
        left = self._ttl.remaining if self._core else None
        return [Dispatch(step, site, Situation(plan, results, left, free=not site.cycle)) for step, site in chosen]

    def _runnable(self, plan: Plan) -> Sequence[PlanStep]:
        """The steps that may start now: all that are ready, or in core mode the next one, whatever came before it."""
        return pending_steps(plan)[:1] if self._core else ready_steps(plan)

    def _next_is_free(self) -> bool:
        """In core mode a tool step that takes no cycle may run when the budget is spent."""
        steps = pending_steps(self._state.plan)[:1] if self._core and self._state.plan else ()
        return any(self.executor.worker.cost(step, self._state.results) == 0 for step in steps)

    def _store(self, this: OpenPass, executed: Executed) -> Executed:
        step, worked = executed.step, executed.worked
        self._update(plan=self._current_plan.with_step(step))
        if worked is not None:
            this.results[step.step_id] = worked.result
            self._update(results={**self._state.results, step.step_id: worked.result})
        return executed

    def _conclude(self, batch: Sequence[Executed]) -> None:
        """What follows from a batch, in step order, whichever of its steps ended first (FR-053)."""
        for executed in batch:
            step_id, worked = executed.step.step_id, executed.worked
            if worked is not None:
                self._memory.write(step_key(step_id, "output"), worked.remembered)
                self._memory.write(step_key(step_id, "handoff"), worked.result.handoff)
            for kind, message in worked.remarks if worked else ():
                self._advise(kind, message, step_id)
        for executed in batch:
            if executed.ended_by is not None:
                raise executed.ended_by

    def _evaluate(self, this: OpenPass) -> tuple[SemanticValidationReport | None, ConvergenceAssessment]:
        with self._phase("C", "EVALUATE") as phase:
            plan, memory = self._current_plan, self._memory.search("")
            outputs, steps = current_outputs(plan.steps), list(plan.steps)
            this.answer = self._state.answer
            report = self._review(
                phase, lambda: self.semantic_validator.validate("cross_phase", plan, steps, outputs, memory)
            )
            assessment = None
            if report is not None:
                assessment = self._available(
                    phase,
                    "convergence",
                    lambda: self.convergence_engine.assess(report, plan, steps, outputs, self._criteria),
                )
            this.evaluation = EvaluationResults(validation_report=report, convergence=assessment or UNAVAILABLE)
            this.complete = assessment is not None or self.affordable()
            misses = 0 if assessment else self._state.unavailable_evaluations + 1
            self._update(unavailable_evaluations=misses, assessment=assessment or UNAVAILABLE)
            self._stream.emit(
                events.Assessed(pass_number=this.number, cycle=self._ttl.used, assessment=assessment or UNAVAILABLE)
            )
            return report, assessment or UNAVAILABLE

    def _review(
        self, phase: OpenPhase, validate: Callable[[], SemanticValidationReport]
    ) -> SemanticValidationReport | None:
        report = self._available(phase, "semantic_validation", validate)
        if report is not None:
            self._stream.emit(
                events.Validated(pass_number=self._state.pass_number, cycle=self._ttl.used, report=report)
            )
        return report

    def _available(self, phase: OpenPhase, call: CallName, ask: Callable[[], T]) -> T | None:
        """An evaluating call's value; None when it is unavailable, and its error when that happens twice running."""
        try:
            return self.call(call, ask)
        except (LLMError, ValidationError) as error:
            phase.outcome = "unavailable"
            self._advise("evaluation_unavailable", f"{call}: {error.message}")
            if self._state.unavailable_evaluations:
                raise
            return None

    def _is_converged(self, assessment: ConvergenceAssessment) -> bool:
        """Converged ends the run even with steps pending, but an answer of a given schema needs its final step."""
        final_done = all(step.status == "complete" for step in final_steps(self._current_plan))
        return assessment.converged and (final_done or not self._requires_final_step)

    def _refine_pass(
        self, this: OpenPass, issues: Sequence[ValidationIssue], assessment: ConvergenceAssessment
    ) -> bool:
        """Refine when there is a reason to; whether the run is stuck afterwards."""
        before = self._current_plan
        triggers = pass_triggers(before, issues, assessment, self._state.manual_intervention)
        exhausted = not self._refiner.may_refine(self._attempts)
        if exhausted and triggers:
            self._advise("refinement_limit", "No more refinements are allowed in this run; work goes on with the plan.")
        if exhausted or not self._refiner.is_due(triggers):
            with self._phase("C", "REFINE") as phase:
                phase.outcome = "skipped"
        else:
            self._refine(this, "C", issues, triggers)
        return is_stuck(before, self._current_plan)

    def _refine(
        self, this: OpenPass, stage: str, issues: Sequence[ValidationIssue], triggers: Sequence[Trigger]
    ) -> None:
        with self._phase(stage, "REFINE") as phase:
            closed = self._state.manual_intervention
            refined = self._refiner.refine(self._current_plan, issues, triggers, self._attempts, closed, self)
            self._attempts, this.refinement = refined.attempts, refined.record
            refused = refined.record.refused if refined.record else ()
            self._update(
                plan=refined.plan,
                refused=(*self._state.refused, *refused),
                attempts=dict(refined.attempts.by_fragment),
                refinements=refined.attempts.total,
            )
            self._look_for_tools(refined.plan)
            for remark in refined.remarks:
                self._advise(remark.kind, remark.message, remark.step_id)
            self._hand_over(refined.handed_over)
            if refined.record is None:
                phase.outcome = "unavailable"
            else:
                self._stream.emit(events.Refined(pass_number=this.number, refinement=refined.record, plan=refined.plan))

    def _hand_over(self, fragments: Sequence[str]) -> None:
        """Leave fragments to a person: no more refinement of them, the run goes on (FR-065)."""
        for step_id in fragments:
            if step_id not in self._state.manual_intervention:
                self._update(manual_intervention=(*self._state.manual_intervention, step_id))
                self._advise("manual_intervention", f"Step {step_id} needs a person's attention.", step_id)

    # Phase D

    def _update_profile(
        self, this: OpenPass, report: SemanticValidationReport | None, assessment: ConvergenceAssessment
    ) -> None:
        """Profile anew when every signal speaks of a mismatch, as the pass's last act (FR-094)."""
        issues, states = list(report.issues) if report else [], list(this.clarity_states.values())
        before, task = self._state.profile, self._current_plan.task
        # A component of one's own may have the published signature and no more.
        more = {"reason_codes": assessment.reason_codes} if isinstance(self.adaptive_depth, AdaptiveDepth) else {}
        mismatch = complexity_mismatch(not assessment.converged, issues, states)
        if before is None or not mismatch or not self.affordable():
            return
        with self._phase("D", "PROFILE") as phase:
            try:
                after = self.call(
                    "task_profile",
                    lambda: self.adaptive_depth.update_task_profile(before, True, issues, states, task, **more),
                )
            except (LLMError, ValidationError) as error:
                phase.outcome = "unavailable"
                self._advise("profile_fallback", f"The profile stays as it is: {error.message}")
                return
            if after is None:
                return
            by_table = self.adaptive_depth.allocate_ttl(after, self._base_ttl)
            allocated = revised_ttl(by_table, self._ttl.used, self._ttl_limit)
            transition = ProfileTransition(
                pass_number=this.number,
                from_version=before.profile_version,
                to_version=after.profile_version,
                reason=after.raw_inference,
                before=before,
                after=after,
                ttl_before=self._ttl.allocated,
                ttl_after=allocated,
            )
            self._ttl = self._ttl.reallocated(allocated)
            self._update(
                profile=after,
                depth=depth_configuration(after, allocated, after.raw_inference),
                transitions=(*self._state.transitions, transition),
                ttl_allocated=allocated,
            )
            self._stream.emit(events.ProfileUpdated(transition=transition))

    # Calls, budget, boundaries

    def affordable(self) -> bool:
        """Whether the TTL allows one more call."""
        return self._ttl.remaining > 0

    def call(self, name: CallName, ask: Callable[[], T]) -> T:
        """One structured call: charged to the TTL, numbered, dispatched, waited for."""
        self._check_stop()
        self._ttl = self._ttl.charged()
        self._update(ttl_used=self._ttl.used)
        return self._dispatch(self._site(), name, ask)

    def _dispatch(self, site: CallSite, call: CallName, ask: Callable[[], T]) -> T:
        def at() -> T:
            with at_site(site):
                return ask()

        self._announce(site, call)
        for future in as_done([self._workers.submit(at)], self._stopping, self._execution.grace_seconds):
            return future.result()
        self._check_stop()
        raise AssertionError("a call is only abandoned when the run is stopping")

    def _site(self, step_id: str | None = None, free: bool = False) -> CallSite:
        return CallSite(
            pass_number=self._state.pass_number,
            phase=self._state.phase,
            cycle=0 if free else self._ttl.used,
            sequence=self._stream.reserve(),
            step_id=step_id,
            mode=self._state.depth.reasoning_mode if self._state.depth else None,
        )

    def _announce(self, site: CallSite, call: str) -> None:
        used = site.cycle or self._ttl.used
        remaining = self._ttl.allocated - used if self._ttl.allocated else None
        self._stream.emit(
            events.CycleStarted(site=site, call=call, ttl_remaining=remaining, plan=self._state.plan), site
        )

    def _stopping(self) -> bool:
        return self._control.stop_requested or self._out_of_time()

    def _out_of_time(self) -> bool:
        limit = self._limits.max_seconds
        return limit is not None and time.monotonic() - self._started >= limit

    def _check_stop(self) -> None:
        """A safe boundary: nothing is under way here. Raises StopRequested or LimitReached."""
        if self._control.stop_requested:
            raise StopRequested("the run was asked to stop")
        if self._out_of_time():
            raise LimitReached("max_seconds", f"the run has taken {self._limits.max_seconds:g} seconds")

    # Records

    @property
    def _current_plan(self) -> Plan:
        plan = self._state.plan
        if plan is None:
            raise AssertionError("there is no plan before phase B")
        return plan

    def _update(self, **changes: Any) -> None:
        self._state = self._state.model_copy(update=changes)

    def _advise(self, kind: AdvisoryKind, message: str, step_id: str | None = None) -> None:
        advisory = Advisory(kind=kind, message=message, pass_number=self._state.pass_number, step_id=step_id)
        # A tool is missing from the plan on, and again when its step is carried out.
        again = {"pass_number"} if kind == "unknown_tool" else set()
        known = (told.model_dump(exclude=again) for told in self._state.advisories)
        if advisory.model_dump(exclude=again) not in known:
            self._update(advisories=(*self._state.advisories, advisory))
            self._stream.emit(events.AdvisoryRaised(advisory=advisory))

    @contextmanager
    def _open_pass(self, number: int) -> Iterator[OpenPass]:
        state = self._state
        ready = tuple(step.step_id for step in self._runnable(state.plan)) if state.plan else ()
        if not self.affordable() and not self._next_is_free():
            if number > 1:
                raise TTLExpired("phase_boundary")
            self._update(plan=cut_off(state.plan) if state.plan else None)
            raise TTLExpired("mid_phase")
        brief = self._core and number > 0
        this = OpenPass(number, state.plan, self._ttl, state.profile, state.depth, brief)
        self._pass = this
        self._update(pass_number=number)
        self._stream.emit(events.PassStarted(pass_number=number, ttl_remaining=self._ttl.remaining, ready=ready))
        try:
            yield this
        except BaseException:
            if not this.complete and self._state.plan is not None:
                self._update(plan=cut_off(self._state.plan))
            raise
        finally:
            self._update(passes=(*self._state.passes, this.closed(self._state.plan, self._ttl)))
            self._stream.emit(
                events.PassFinished(pass_number=number, ttl_remaining=self._ttl.remaining, complete=this.complete)
            )

    @contextmanager
    def _phase(self, stage: str, phase: Phase | Literal["PROFILE"]) -> Iterator[OpenPhase]:
        number = self._state.pass_number
        self._update(phase=phase)
        self._stream.emit(events.PhaseStarted(stage=stage, phase=phase, pass_number=number))
        timed = self._pass.phase(phase) if self._pass and phase != "PROFILE" else untimed()
        note = OpenPhase("abandoned")
        try:
            with timed as note:
                yield note
        finally:
            self._stream.emit(events.PhaseFinished(stage=stage, phase=phase, pass_number=number, outcome=note.outcome))

    def _outcome(
        self,
        task: str,
        run_id: str,
        reason: TerminationReason,
        point: ExpirationPoint | None,
        error: AeonError | None,
    ) -> Outcome:
        seconds = time.monotonic() - self._started
        outcome = history.outcome(run_id, task, self._configuration, self.state, reason, point, error, seconds)
        self._stream.emit(
            events.RunFinished(
                termination_reason=reason,
                converged=outcome.converged,
                passes=outcome.history.overall_statistics.total_passes,
                ttl_used=self._ttl.used,
                ttl_allocated=self._ttl.allocated,
            )
        )
        return outcome


@contextmanager
def untimed() -> Iterator[OpenPhase]:
    """A phase outside any pass."""
    yield OpenPhase()
