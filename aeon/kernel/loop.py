"""The kernel: profile, plan, then passes, until the answer is good enough or the budget is used up.

    A  profile the task                      -> a budget (TTL) and a reasoning mode
    B  plan -> validate -> refine            before a single step runs
    C  execute -> evaluate -> decide -> refine, pass after pass
    D  update the profile at the end of a pass, if all signals say that the first one was wrong

Every decision about what happens next is made here, from the model's signals, thresholds and the
budget (FR-088).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from aeon.checks.decision import make_issues
from aeon.domain import events
from aeon.domain.assessment import ConvergenceAssessment
from aeon.domain.checks import find_failed_codes
from aeon.domain.errors import AeonError, LimitReached, StopRequested
from aeon.domain.graph import find_pending_steps, is_answer_complete, layers
from aeon.domain.history import EvaluationResults, Outcome, Phase, RunState, TerminationReason
from aeon.domain.outcome import build_outcome, has_plateau, is_stopped, make_finished_event
from aeon.domain.plan import Plan, plan_one_step
from aeon.domain.report import ValidationIssue
from aeon.domain.values import JsonObject
from aeon.execution.forecast import forecast
from aeon.execution.outcome import find_common_error
from aeon.execution.recorder import OpenPass
from aeon.files.shortage import explain_defect
from aeon.kernel.budget import TTLExpired
from aeon.kernel.evaluation import Evaluation
from aeon.kernel.executor import Batches
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.plan.transitions import cut_off, with_errors
from aeon.plan.triggers import issue_triggers, pass_triggers
from aeon.refinement.components import Planner, generate_plan
from aeon.refinement.models import Occasion
from aeon.refinement.refiner import Refiner, is_stuck


@dataclass(frozen=True, slots=True)
class Loop:
    """One run of a task; used once."""

    _run: OpenRun
    _options: RunOptions
    _planner: Planner
    _refiner: Refiner
    _batches: Batches
    _evaluation: Evaluation

    @property
    def state(self) -> RunState:
        """The current state of the run; may be read during the run, from any thread."""
        return self._run.snapshot()

    @property
    def is_small(self) -> bool:
        """Whether the task needs no planner: no plan was given, and its profile is that of a small
        task."""
        options = self._options
        profile = self._run.state.profile
        if options.mode != "auto" or options.plan or profile is None:
            return False
        return options.small.fits(profile, has_tools=self._batches.worker.has_tools)

    def forecast(self, plan: Plan) -> int:
        """Estimate the cycles of a plan; a tool step with its own arguments takes none."""
        if self.is_small:
            return len(plan.steps) + 1
        return forecast(
            plan,
            lambda step: self._batches.executor.count_cycles(step, plan),
            core=self._options.is_core,
        )

    def run(self, task: str, context: JsonObject | None, run_id: str) -> Outcome:
        """Run the task to its end, whatever the end is."""
        run = self._run
        error: AeonError | None = None
        try:
            reason = self._lifecycle(task, context)
        except LimitReached as reached:
            reason = reached.limit  # type: ignore[assignment]
        except TTLExpired:
            reason = "ttl_expired"
        except StopRequested as stop:
            reason = stop.reason
        except Exception as failure:  # a defect must not lose what was already paid for
            reason = "failed"
            error = failure if isinstance(failure, AeonError) else explain_defect(failure)
        finally:
            run.close()
        if error is None and not is_stopped(reason):
            error = None if run.answers.are_of_model else find_common_error(run.step_errors)
            reason = "failed" if error else reason
        reason, error = run.settle_mending(reason, error)
        if not run.state.passes:  # it ended before it began, but each call belongs to a pass
            run.update(passes=(OpenPass(0, run.state, watch=run.watch).close(run.state),))
        ended = build_outcome(
            run_id,
            task,
            self._options.configuration,
            self.state,
            reason,
            error,
            run.watch.seconds,
            takes_best=self._options.takes_best,
            converged_pass=run.converged_pass,
        )
        run.stream.emit(make_finished_event(ended))
        return ended

    def plan(self, task: str, context: JsonObject | None) -> Plan:
        """Run only phases A and B. Raises what ends them early."""
        try:
            self._plan(task, context)
        finally:
            self._run.close()
        if not self._run.state.passes[0].complete:
            raise TTLExpired
        return self._run.plan

    def _lifecycle(self, task: str, context: JsonObject | None) -> TerminationReason:
        self._plan(task, context)
        if not self._run.affordable():
            self._run.update(plan=cut_off(self._run.plan))
            return "ttl_expired"
        for number in itertools.count(1):
            if end := self._execution_pass(number):
                return end
        raise AssertionError("unreachable")

    def _execution_pass(self, number: int) -> TerminationReason | None:
        """Make one pass and return the reason to end the run after it, if any: a spent budget
        precedes every reason but convergence."""
        run = self._run
        with self._pass(number) as this:
            with run.phase("C", "EXECUTE" if number == 1 else "RE_EXECUTE"):
                self._batches.carry_out(this)
            if self._options.is_core:
                return self._step_done(this)
            with run.phase("C", "EVALUATE") as phase:
                reviewed = not self.is_small or number > 1
                report, assessment = self._evaluation.evaluate(this, phase, is_reviewed=reviewed)
            if end := self._decide_end(this, assessment):
                return end
            issues = report.issues if report else ()
            issues = (*issues, *make_issues(this.evaluation.checks, run.plan))
            stuck = self._refine_pass(this, issues, assessment)
            if stuck and not run.state.unavailable_evaluations and run.affordable():
                return "stalled"
            self._evaluation.update_profile(this, report, assessment)
        return None if run.affordable() else "ttl_expired"

    def _decide_end(
        self, this: OpenPass, assessment: ConvergenceAssessment
    ) -> TerminationReason | None:
        run = self._run
        convergence = self._options.convergence
        is_last = this.number == self._options.limits.max_passes
        if mended := run.decide_mended(assessment):
            return mended
        if assessment.converged and self._has_answer():
            severity = None if is_last else convergence.open_severity
            return None if run.begin_mending(this, severity) else "converged"
        if not (this.complete and run.affordable()):
            return "ttl_expired"
        if is_last:
            return "max_passes"
        passes = (*run.state.passes, this.close(run.state))
        return "plateau" if has_plateau(passes, convergence) else None

    def _has_answer(self) -> bool:
        # An answer with a schema, or one that must be complete, needs its final step; otherwise
        # convergence ends the run even with pending steps.
        if not self._options.requires_final_step and self._options.convergence.when == "any":
            return True
        return is_answer_complete(self._run.plan)

    def _pass(self, number: int) -> AbstractContextManager[OpenPass]:
        plan = self._run.state.plan
        ready = tuple(step.step_id for step in self._batches.runnable(plan)) if plan else ()
        return self._run.open_pass(number, ready, brief=self._options.is_core and number > 0)

    def _step_done(self, this: OpenPass) -> TerminationReason | None:
        plan = self._run.plan
        this.complete = True
        if not find_pending_steps(plan):
            if any(not step.is_done for step in plan.steps):
                self._evaluation.check(this)
                return "step_failed"
            return self._check_answer(this)
        if not self._run.affordable():
            return "ttl_expired"
        return "max_passes" if this.number == self._options.limits.max_passes else None

    def _check_answer(self, this: OpenPass) -> TerminationReason:
        """Return how a run without passes ends, once its answer exists."""
        if self._options.judges_answer:
            with self._run.phase("C", "EVALUATE") as phase:
                self._evaluation.evaluate(this, phase, is_reviewed=False)
            this.complete = True
        else:
            self._evaluation.check(this)
        if self._evaluation.gate is not None:
            self._evaluation.gate.compare_rival(self._run, this)
        return "check_failed" if find_failed_codes(this.evaluation.checks) else "completed"

    def _plan(self, task: str, context: JsonObject | None) -> None:
        run = self._run
        if self._options.is_core:
            run.update(ttl_allocated=min(self._options.base_ttl, self._evaluation.limit))
        else:
            self._evaluation.infer_profile(task, context)
        with self._pass(0) as this:
            with run.phase("B", "PLAN"):
                plan = self._options.plan or self._make_plan(task, context)
                this.plan = self._look_for_tools(plan.model_copy(update={"task": task}))
                run.update(plan=this.plan)
            this.complete = self._options.is_core or self._review_plan(this)
        if this.complete:
            plan = run.plan
            expected = self.forecast(plan)
            run.stream.emit(
                events.PlanMade(plan=plan, layers=len(layers(plan)), expected_calls=expected)
            )

    def _make_plan(self, task: str, context: JsonObject | None) -> Plan:
        one_step = self._options.one_step
        if self.is_small or self._options.mode == "single":
            return plan_one_step(one_step)
        limits = {
            "max_steps": self._options.execution.max_steps,
            "one_final_step": self._options.requires_final_step,
        }
        return self._run.call("plan", lambda: generate_plan(self._planner, task, context, **limits))

    def _look_for_tools(self, plan: Plan) -> Plan:
        missing = dict(self._batches.worker.find_missing_tools(plan))
        for step_id, message in missing.items():
            self._run.advise("unknown_tool", f"Step {step_id}: {message}", step_id)
        return self._batches.worker.settle_steps(with_errors(plan, missing), self._run.state)

    def _review_plan(self, this: OpenPass) -> bool:
        """Validate and refine the plan. Returns whether the budget sufficed."""
        if self.is_small:
            self._skip("B", "EVALUATE")
            self._skip("B", "REFINE")
            return True
        with self._run.phase("B", "EVALUATE") as phase:
            report = self._evaluation.review(phase, "plan", this.plan)
            this.evaluation = EvaluationResults(validation_report=report)
        if phase.outcome == "abandoned":
            return False
        issues = report.issues if report else ()
        occasion = Occasion(
            issues, issue_triggers(issues), is_clean=report is not None and not issues
        )
        return self._refine(this, "B", occasion)

    def _refine_pass(
        self, this: OpenPass, issues: Sequence[ValidationIssue], assessment: ConvergenceAssessment
    ) -> bool:
        """Refine if there is a reason to. Returns whether the run is stuck afterwards."""
        run = self._run
        refiner = self._refiner
        before = run.plan
        closed = run.state.manual_intervention
        found = pass_triggers(before, issues, assessment, closed, run.state.raised)
        triggers = (*found, *run.taken_back)
        may_refine = refiner.may_refine(run.attempts)
        if triggers and not may_refine:
            message = "No more refinements are allowed in this run; work goes on with the plan."
            run.advise("refinement_limit", message)
            run.take(refiner.give_up(before, triggers, run.attempts))
        failed_before = run.refinement_error
        run.refinement_error = None
        if may_refine and refiner.is_due(triggers):
            self._refine(this, "C", Occasion(issues, triggers, closed, assessment))
        else:
            self._skip("C", "REFINE")
        verdict = this.refinement.supervisor if this.refinement else None
        stuck = verdict.blocking if verdict else is_stuck(before, run.plan)
        if stuck and run.refinement_error and failed_before:
            raise run.refinement_error
        return stuck and not run.refinement_error  # the next pass tries again (FR-067)

    def _skip(self, stage: str, phase: Phase) -> None:
        with self._run.phase(stage, phase) as note:
            note.outcome = "skipped"

    def _refine(self, this: OpenPass, stage: str, occasion: Occasion) -> bool:
        """Refine the plan. Returns whether the budget sufficed."""
        run = self._run
        refiner = self._refiner
        with run.phase(stage, "REFINE") as phase:
            if refiner.asks_model(run.plan, occasion) and not run.affordable():
                phase.outcome = "abandoned"
                return False
            refined = refiner.refine(run.plan, occasion, run.attempts, run)
            refined = replace(refined, plan=self._look_for_tools(refined.plan))
            run.take(refined)
            this.refinement = record = refined.record
            if record is None:
                phase.outcome = "unavailable"
            else:
                run.stream.emit(
                    events.Refined(pass_number=this.number, refinement=record, plan=refined.plan)
                )
        return True
