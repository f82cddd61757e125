"""The model's judgements of a run: the task's profile, which determines the budget, its plan, and
each pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from aeon.adaptive.heuristics import (
    UPDATE_SIGNALS,
    complexity_mismatch,
    configure_depth,
    make_transition,
    planning_signals,
)
from aeon.checks.decision import block, describe_rubrics, describe_unjudged, read_rubrics
from aeon.checks.interface import NO_CHECKS, AnswerChecks
from aeon.convergence.margin import settle_judgement
from aeon.domain import events
from aeon.domain.assessment import AWAITED, UNAVAILABLE, ConvergenceAssessment
from aeon.domain.checks import CheckOutcome, find_failed_codes
from aeon.domain.errors import LLMError, ValidationError, go_on_without
from aeon.domain.graph import (
    answer_text,
    current_outputs,
    find_shared_steps,
    is_answer_awaited,
    is_answer_complete,
)
from aeon.domain.history import EvaluationResults
from aeon.domain.profile import TaskProfile
from aeon.domain.report import UNREVIEWED, SemanticValidationReport
from aeon.domain.request import CallName
from aeon.domain.values import JsonObject
from aeon.execution.gate import AnswerGate
from aeon.execution.recorder import OpenPass, OpenPhase
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from aeon.memory.interface import Memory
from aeon.refinement import components as contracts
from aeon.refinement.components import Depth, Engine, Validator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Profiles one run's task, and evaluates its plan and passes, as far as its budget allows."""

    run: OpenRun
    options: RunOptions
    depth: Depth
    validator: Validator
    engine: Engine
    memory: Memory
    checks: AnswerChecks = NO_CHECKS
    gate: AnswerGate | None = None

    @property
    def limit(self) -> int:
        """The most cycles of the run; a cycle is at least one call (FR-077)."""
        caps = (self.options.ttl_limit, self.options.limits.max_llm_calls)
        return contracts.find_limit(self.depth, caps)

    def infer_profile(self, task: str, context: JsonObject | None) -> None:
        """Phase A: set the inferred or default profile and its allocation. The only call without a
        cycle."""
        run = self.run
        failure = ""
        default = self.options.default_profile
        with run.phase("A", "PROFILE"):
            try:
                profile = run.call(
                    "task_profile",
                    lambda: contracts.INFER_PROFILE.call(self.depth, task, context),
                    cycles=0,
                )
            except (LLMError, ValidationError) as error:
                go_on_without(error)
                profile = default
                failure = error.message
            is_default = profile is default
            source = "default_profile" if is_default else "task_profile"
            allocated = min(self.limit, self._allocate(profile))
            depth = configure_depth(profile, allocated, contracts.find_table(self.depth), source)
            run.update(ttl_allocated=allocated, profile=profile, depth=depth)
            if is_default:
                run.advise("profile_fallback", f"The default profile is used: {failure}")
            run.stream.emit(
                events.ProfileInferred(profile=profile, depth=depth, fallback=is_default)
            )

    def review(self, phase: OpenPhase, *artefacts: Any) -> SemanticValidationReport | None:
        """Return the report on artefacts; None if it is unavailable or not affordable."""
        validate = partial(contracts.VALIDATE.call, self.validator, *artefacts)
        report = self._ask(phase, "semantic_validation", validate)
        if report is not None:
            state = self.run.state
            self.run.stream.emit(
                events.Validated(pass_number=state.pass_number, cycle=state.ttl_used, report=report)
            )
        return report

    def evaluate(
        self, this: OpenPass, phase: OpenPhase, *, is_reviewed: bool
    ) -> tuple[SemanticValidationReport | None, ConvergenceAssessment]:
        """Return the report on a pass (none unless `is_reviewed`), and its assessment or
        `UNAVAILABLE`; a pass whose evaluation is not affordable is not complete. Checks come before
        the judge, and may replace it."""
        run = self.run
        this.answer = run.state.answer
        checks = self.check(this)
        if self.options.evaluates_whole_answers and is_answer_awaited(run.plan):
            return self._review_shared(this, phase, checks)
        if before := self.gate and self.gate.set_back(run, this, checks, self.memory):
            return before.validation_report, before.convergence or UNAVAILABLE
        if self.options.skip_judge_when_checks_fail and find_failed_codes(checks):
            found = describe_unjudged(checks)
            self._record(this, EvaluationResults(convergence=found, checks=checks))
            return None, found
        report, assessment = self._judge(phase, checks, is_reviewed=is_reviewed)
        checks = (*checks, *read_rubrics(assessment, self.checks.rubrics))
        found = block(assessment or UNAVAILABLE, checks)
        if phase.outcome != "abandoned":
            misses = 0 if assessment else run.state.unavailable_evaluations + 1
            results = EvaluationResults(validation_report=report, convergence=found, checks=checks)
            self._record(this, results, misses)
        return report, found

    def _review_shared(
        self, this: OpenPass, phase: OpenPhase, checks: tuple[CheckOutcome, ...]
    ) -> tuple[SemanticValidationReport | None, ConvergenceAssessment]:
        """Review the outputs that several steps use, without an assessment, in a pass that does not
        give the answer."""
        plan = self.run.plan
        shared = find_shared_steps(plan, this.results)
        report = None
        if not shared:
            phase.outcome = "skipped"
        else:
            outputs = current_outputs(shared)
            report = self.review(phase, "cross_phase", plan, shared, outputs, None)
        found = block(AWAITED, checks)
        if phase.outcome != "abandoned":
            results = EvaluationResults(validation_report=report, convergence=found, checks=checks)
            self._record(this, results)
        return report, found

    def _judge(
        self, phase: OpenPhase, checks: tuple[CheckOutcome, ...], *, is_reviewed: bool
    ) -> tuple[SemanticValidationReport | None, ConvergenceAssessment | None]:
        run = self.run
        settings = self.options.convergence
        report = assessment = None
        work = (run.plan, list(run.plan.steps), current_outputs(run.plan.steps))
        if is_reviewed:
            report = self.review(phase, "cross_phase", *work, self.memory.search(""))
        if report or not is_reviewed:
            assess = partial(
                contracts.ASSESS.call,
                self.engine,
                report or UNREVIEWED,
                *work,
                {**settings.criteria, **describe_rubrics(self.checks.rubrics)},
                left_to_person=run.state.conflicts,
                checks=checks,
            )
            cycles = run.assessment_cycles
            assessment = self._ask(phase, "convergence", assess, cycles)
            assessment = assessment and settle_judgement(assessment, settings, run, assess, cycles)
        return report, assessment

    def check(self, this: OpenPass) -> tuple[CheckOutcome, ...]:
        """Run the checks on the current answer; this costs no cycle."""
        run = self.run
        this.answer_complete = is_answer_complete(run.plan)
        if self.checks is NO_CHECKS:
            return ()
        site = run.charge(0)
        found = run.wait_for(partial(self.checks.run, run.plan, answer_text(run.plan), site))
        if found:
            this.evaluation = EvaluationResults(checks=found)
            run.stream.emit(events.ChecksDone(pass_number=this.number, checks=found), site)
        return found

    def _record(self, this: OpenPass, results: EvaluationResults, misses: int = 0) -> None:
        run = self.run
        found = results.convergence or UNAVAILABLE
        this.complete = not misses or run.affordable()
        this.evaluation = results = results.model_copy(update={"comparison": this.comparison})
        if not misses or this.comparison is not None:
            run.accept_answer(results)
        run.update(unavailable_evaluations=misses, assessment=found)
        run.stream.emit(
            events.Assessed(pass_number=this.number, cycle=run.state.ttl_used, assessment=found)
        )

    def _ask(
        self, phase: OpenPhase, call: CallName, ask: Callable[[], T], cycles: int = 1
    ) -> T | None:
        """Return an evaluating call's value; None if it is not affordable or unavailable. Raises
        its error after too many unavailable evaluations in a row."""
        run = self.run
        if not run.affordable(cycles):
            phase.outcome = "abandoned"
            return None
        try:
            return run.call(call, ask, cycles=cycles)
        except (LLMError, ValidationError) as error:
            go_on_without(error)
            phase.outcome = "unavailable"
            run.advise("evaluation_unavailable", f"{call}: {error.message}")
            if run.state.unavailable_evaluations + 1 >= self.options.convergence.max_unavailable:
                raise
            return None

    def update_profile(
        self,
        this: OpenPass,
        report: SemanticValidationReport | None,
        assessment: ConvergenceAssessment,
    ) -> None:
        """Phase D: update the profile if all signals show a mismatch, as the pass's last act
        (FR-094)."""
        run = self.run
        before = run.state.profile
        issues = list(report.issues) if report else []
        states = [result.clarity_state for result in this.results.values() if result.clarity_state]
        mismatch = complexity_mismatch(not assessment.converged, issues, states)
        if before is None or not run.affordable() or not mismatch:
            return
        signals = {"reason_codes": assessment.reason_codes, "planning": planning_signals(run.state)}
        with run.phase("D", "PROFILE") as phase:
            try:
                after = run.call(
                    "task_profile",
                    lambda: contracts.UPDATE_PROFILE.call(
                        self.depth, before, True, issues, states, run.plan.task, **signals
                    ),
                )
            except (LLMError, ValidationError) as error:
                go_on_without(error)
                phase.outcome = "unavailable"
                run.advise("profile_fallback", f"The profile stays as it is: {error.message}")
                return
            if after is not None:
                self._reallocate(this.number, before, after)

    def _allocate(self, profile: TaskProfile) -> int:
        units: int = contracts.ALLOCATE_TTL.call(self.depth, profile, self.options.base_ttl)
        return units

    def _reallocate(self, pass_number: int, before: TaskProfile, after: TaskProfile) -> None:
        run = self.run
        least = run.state.ttl_used + self.options.least_after_update
        allocated = min(self.limit, max(self._allocate(after), least))
        transition = make_transition(pass_number, before, after, run.state.ttl_allocated, allocated)
        depth = configure_depth(after, allocated, contracts.find_table(self.depth), *UPDATE_SIGNALS)
        transitions = (*run.state.transitions, transition)
        run.update(ttl_allocated=allocated, profile=after, depth=depth, transitions=transitions)
        run.stream.emit(events.ProfileUpdated(transition=transition))
