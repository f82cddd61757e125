"""Refinement: request changes, screen them, validate them, apply them (FR-004, FR-013, FR-049,
FR-067, FR-079).

- propose: the planner, with the issues as constraints
- admit: attempt limits, per fragment and in total
- decompose: a subplan for each action that decomposes a step
- draft: the structurally sound actions, applied to a draft of the plan
- validate: everything that the draft changes, once
- apply: the actions that were not refused, to the plan
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from aeon.domain.errors import (
    AeonError,
    LLMError,
    PersonAwaited,
    PlanError,
    ValidationError,
    go_on_without,
)
from aeon.domain.graph import by_id, current_outputs, nesting_level, ready_steps
from aeon.domain.plan import EXECUTED, FollowUpQuestion, Plan, PlanStep, Subplan
from aeon.domain.refinement import (
    Refinement,
    RefinementAction,
    RefinementRecord,
    RefusedAction,
    SupervisorAssessment,
)
from aeon.domain.report import SemanticValidationReport, Severity, ValidationIssue, reaches
from aeon.domain.request import Budget
from aeon.plan import attempts as counting
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.deltas import DeltaResult, apply_actions
from aeon.plan.draft import is_changeable
from aeon.plan.settings import RefinementSettings
from aeon.plan.structural import MAX_NESTING_DEPTH
from aeon.plan.transitions import leave_to_person
from aeon.plan.triggers import Trigger, find_unanswered, fragment_of, open_issues
from aeon.refinement.components import (
    CREATE_SUBPLAN,
    REFINE,
    REFINE_PLAN,
    VALIDATE,
    Planner,
    Validator,
    WithNestingDepth,
)
from aeon.refinement.conflicts import find_conflicts
from aeon.refinement.models import Ask, Occasion, Proposer, RefinementOutcome, Remark

UNUSABLE = (LLMError, ValidationError, PlanError)


class TooDeep(PlanError):
    """A subplan would nest deeper than allowed (FR-083)."""


class BudgetShort(PlanError):
    """The budget leaves no room for a call that a change needs."""


@dataclass
class _Screened:
    refused: list[RefusedAction]
    sound: list[RefinementAction] = field(default_factory=list)
    subplans: dict[str, Subplan] = field(default_factory=dict)
    too_deep: list[str] = field(default_factory=list)
    errors: list[AeonError] = field(default_factory=list)


class Refiner:
    """Refines plans. `ask` puts a question to the user; `one_final_step` requires a single final
    step. With `has_person`, a person does the steps left to them."""

    def __init__(
        self,
        planner: Planner,
        validator: Validator,
        settings: RefinementSettings | None = None,
        *,
        max_steps: int = 100,
        one_final_step: bool = False,
        ask: Ask | None = None,
        has_person: bool = False,
    ) -> None:
        self._planner = planner
        self._proposer = planner if isinstance(planner, Proposer) else None
        self._validator = validator
        self._settings = settings or RefinementSettings()
        own_depth = (
            planner.max_nesting_depth
            if isinstance(planner, WithNestingDepth)
            else MAX_NESTING_DEPTH
        )
        self._max_nesting_depth = min(self._settings.max_nesting_depth, own_depth)
        self._max_steps = max_steps
        self._one_final_step = one_final_step
        self._ask = ask
        self._leave = partial(leave_to_person, asks=has_person)

    def may_refine(self, attempts: RefinementAttempts) -> bool:
        """Whether the run may be refined once more (FR-066)."""
        return counting.may_refine(attempts, self._settings)

    def is_due(self, triggers: Sequence[Trigger]) -> bool:
        """Whether a pass with these triggers is refined."""
        return bool(triggers) or self._settings.when == "always"

    def asks_model(self, plan: Plan, occasion: Occasion) -> bool:
        """Whether the planner needs a model: not for a plan of one step whose review found nothing,
        if nobody could answer a question."""
        nothing_to_do = occasion.is_clean and len(plan.steps) == 1 and self._ask is None
        return not nothing_to_do or self._settings.when == "always" or self._proposer is None

    def refine(
        self, plan: Plan, occasion: Occasion, attempts: RefinementAttempts, budget: Budget
    ) -> RefinementOutcome:
        """Refine a plan. Raises what `budget.call` raises to end the run."""
        asks = self.asks_model(plan, occasion)
        proposal = Refinement()
        try:
            if asks:
                proposal = budget.call("refinement", lambda: self._propose(plan, occasion))
        except UNUSABLE as error:
            go_on_without(error)
            return _without(plan, attempts, error)
        return self._apply_proposal(plan, proposal, occasion, attempts, budget, model_asked=asks)

    def _apply_proposal(
        self,
        plan: Plan,
        proposal: Refinement,
        occasion: Occasion,
        attempts: RefinementAttempts,
        budget: Budget,
        *,
        model_asked: bool,
    ) -> RefinementOutcome:
        admission = counting.admit(proposal.actions, attempts, self._settings)
        screened = self._decompose(plan, admission, occasion.closed, budget)
        draft = self._apply(plan, screened.sound, screened.subplans)
        report, rejected = self._review(plan, draft, occasion, budget, screened.errors)
        gone = [refusal.action for refusal in rejected]
        sound = [action for action in draft.accepted if action not in gone]
        final = self._apply(plan, sound, screened.subplans)
        refused = (*screened.refused, *draft.refused, *rejected, *final.refused)
        questions = self._new_questions(plan, proposal.questions)
        handed_over = (*admission.exhausted_fragments, *screened.too_deep)
        refined = self._leave(_with_questions(final.plan, questions), handed_over)
        alone = open_issues(occasion.issues, occasion.closed)
        attempts, conflicts = counting.leave_alone(
            admission.attempts, alone, proposal.actions, self._settings, is_stuck(plan, refined)
        )
        refined = self._leave(refined, [fragment_of(issue) for issue in conflicts])
        supervisor = SupervisorAssessment(
            blocking=is_stuck(plan, refined),
            issues=tuple(each.reason for each in refused),
            repairs=final.accepted,
        )
        record = RefinementRecord(
            triggers=tuple(str(trigger) for trigger in occasion.triggers),
            accepted=final.accepted,
            refused=refused,
            changes=final.changes,
            questions=questions,
            subplans=tuple(each for each in refined.subplans if each not in plan.subplans),
            declined=proposal.declined,
            unanswered=proposal.unanswered,
            fragment_report=report,
            supervisor=supervisor,
            model_asked=model_asked,
        )
        remarks = _make_remarks(record, occasion.issues)
        error = next(iter(screened.errors), None)
        return RefinementOutcome(refined, attempts, record, remarks, handed_over, conflicts, error)

    def give_up(
        self, plan: Plan, triggers: Sequence[Trigger], attempts: RefinementAttempts
    ) -> RefinementOutcome:
        """Return the outcome at the limit of a run's refinements: the steps behind the triggers are
        left to a person, as at the limit of a fragment, so that their dependents use the best
        available output (FR-066)."""
        steps = by_id(plan.steps)
        left = tuple(trigger.about for trigger in triggers if trigger.about in steps)
        return RefinementOutcome(self._leave(plan, left), attempts, handed_over=left)

    def _propose(self, plan: Plan, occasion: Occasion) -> Refinement:
        issues = list(open_issues(occasion.issues, occasion.closed))
        executed = [step.step_id for step in plan.steps if step.status in EXECUTED]
        if self._proposer is not None:
            why = issues, occasion.triggers, executed, occasion.closed
            proposal: Refinement = REFINE.call(
                self._proposer, plan, *why, assessment=occasion.assessment
            )
            return proposal
        blocked = [step.step_id for step in plan.steps if step.blocked]
        codes = list(occasion.assessment.reason_codes) if occasion.assessment else []
        actions = tuple(REFINE_PLAN.call(self._planner, plan, issues, codes, blocked, executed))
        binding = self._settings.binding_severity
        unanswered = find_unanswered(issues, actions, binding=binding)
        return Refinement(actions=actions, unanswered=unanswered)

    def _decompose(
        self, plan: Plan, admission: counting.Admission, closed: Sequence[str], budget: Budget
    ) -> _Screened:
        steps = by_id(plan.steps)
        screened = _Screened(list(admission.refused))
        for action in admission.admitted:
            if action.fragment in closed:
                reason = f"step '{action.fragment}' is left to a person"
                screened.refused.append(RefusedAction(action=action, reason=reason))
                continue
            step = steps.get(action.fragment) if action.rule.decomposes else None
            try:
                if (
                    step is not None
                    and is_changeable(step)
                    and step.step_id not in screened.subplans
                ):
                    screened.subplans[step.step_id] = self._make_subplan(step, plan, budget)
                screened.sound.append(action)
            except UNUSABLE as error:
                go_on_without(error)
                screened.errors += [] if isinstance(error, PlanError) else [error]
                screened.refused.append(_refuse(action, error.message, error))
                screened.too_deep += [action.fragment] if isinstance(error, TooDeep) else []
        return screened

    def _make_subplan(self, step: PlanStep, plan: Plan, budget: Budget) -> Subplan:
        level = nesting_level(by_id(plan.steps), step.step_id) + 1
        if level > self._max_nesting_depth:
            raise TooDeep(
                f"level {level} is deeper than refinement.max_nesting_depth, or the planner, allows"
            )
        if not budget.affordable():
            raise BudgetShort(f"the budget does not allow a subplan of step {step.step_id}")
        try:
            subplan: Subplan = budget.call(
                "subplan", lambda: CREATE_SUBPLAN.call(self._planner, step, plan, level)
            )
        except PlanError as error:  # by the published interface: deeper than the planner allows
            raise TooDeep(error.message) from error
        return subplan

    def _apply(
        self, plan: Plan, actions: Sequence[RefinementAction], subplans: Mapping[str, Subplan]
    ) -> DeltaResult:
        return apply_actions(
            plan,
            actions,
            subplans=subplans,
            max_steps=self._max_steps,
            max_nesting_depth=self._max_nesting_depth,
            one_final_step=self._one_final_step,
        )

    def _review(
        self,
        plan: Plan,
        draft: DeltaResult,
        occasion: Occasion,
        budget: Budget,
        errors: list[AeonError],
    ) -> tuple[SemanticValidationReport | None, tuple[RefusedAction, ...]]:
        if not draft.changes or not self._needs_review(draft):
            return None, ()
        steps = [step for change in draft.changes if (step := change.after or change.before)]
        outputs = _select_outputs(plan, draft)
        try:
            if not budget.affordable():
                raise BudgetShort("the budget does not allow it")
            report: SemanticValidationReport = budget.call(
                "semantic_validation",
                lambda: VALIDATE.call(
                    self._validator,
                    "step",
                    draft.plan,
                    steps,
                    outputs,
                    delta=draft,
                    reasons=occasion.triggers,
                ),
            )
        except UNUSABLE as error:
            go_on_without(error)
            errors += [] if isinstance(error, PlanError) else [error]
            reason = f"the change could not be validated: {error.message}"
            return None, tuple(_refuse(action, reason, error) for action in draft.accepted)
        return report, _reject_actions(report, plan, draft, self._settings.reject_severity)

    def _needs_review(self, draft: DeltaResult) -> bool:
        before = (change.before for change in draft.changes)
        touches_executed = any(step is not None and step.status in EXECUTED for step in before)
        return touches_executed or self._settings.review == "always"

    def _new_questions(
        self, plan: Plan, questions: Sequence[FollowUpQuestion]
    ) -> tuple[FollowUpQuestion, ...]:
        known = {question.question for question in plan.questions}
        new = tuple(question for question in questions if question.question not in known)
        return tuple(_ask_each(self._ask, new)) if self._ask else new


def _refuse(action: RefinementAction, reason: str, error: AeonError) -> RefusedAction:
    for_budget = isinstance(error, BudgetShort)
    return RefusedAction(action=action, reason=reason, for_budget=for_budget)


def _ask_each(ask: Ask, questions: Sequence[FollowUpQuestion]) -> list[FollowUpQuestion]:
    """Return the questions with their answers. Raises PersonAwaited after all have been asked, so
    that they can be answered together."""
    answered: list[FollowUpQuestion] = []
    awaited: PersonAwaited | None = None
    for question in questions:
        try:
            answered.append(question.model_copy(update={"answer": ask(question)}))
        except PersonAwaited as waits:
            awaited = waits
    if awaited is not None:
        raise awaited
    return answered


def _without(plan: Plan, attempts: RefinementAttempts, error: AeonError) -> RefinementOutcome:
    remark = Remark("refinement_unavailable", f"The plan stays as it is: {error.message}")
    return RefinementOutcome(plan, counting.count_failure(attempts), remarks=(remark,), error=error)


def _with_questions(plan: Plan, new: tuple[FollowUpQuestion, ...]) -> Plan:
    return plan.model_copy(update={"questions": (*plan.questions, *new)}) if new else plan


def _select_outputs(plan: Plan, draft: DeltaResult) -> dict[str, str]:
    changed = {change.step_id for change in draft.changes}
    versions = [
        version for change in draft.changes for version in (change.before, change.after) if version
    ]
    concerned = changed | {
        dependency for version in versions for dependency in version.dependencies
    }
    concerned |= _dependents(plan, changed)
    return {
        step_id: output
        for step_id, output in current_outputs(plan.steps).items()
        if step_id in concerned
    }


def _reject_actions(
    report: SemanticValidationReport, plan: Plan, draft: DeltaResult, reject_severity: Severity
) -> tuple[RefusedAction, ...]:
    """Return the draft's actions that an issue refuses, by the severity the model gave it: an issue
    at a step that the action concerns, or at a step that depends on one of these before or after
    the change. An issue about no step refuses all."""
    grave = {i.step_id: i for i in report.issues if reaches(i.severity, reject_severity)}
    refused = []
    for action in draft.accepted:
        about = draft.find_changed_steps(action)
        concerned = {None, *about, *_dependents(plan, about), *_dependents(draft.plan, about)}
        issue = next((issue for step_id, issue in grave.items() if step_id in concerned), None)
        if issue is not None:
            refused.append(
                RefusedAction(action=action, reason=f"{issue.severity} issue: {issue.description}")
            )
    return tuple(refused)


def _dependents(plan: Plan, step_ids: Collection[str]) -> set[str]:
    return {step.step_id for step in plan.steps if not set(step_ids).isdisjoint(step.dependencies)}


def is_stuck(before: Plan, after: Plan) -> bool:
    """Whether nothing changed and nothing can run. An unanswered question, or leaving a step to a
    person, is no change."""
    is_answered = any(
        question.answer is not None for question in after.questions[len(before.questions) :]
    )
    is_same = len(before.steps) == len(after.steps) and all(
        map(_differ_in_mark_alone, before.steps, after.steps)
    )
    return is_same and not is_answered and not ready_steps(after)


def _differ_in_mark_alone(one: PlanStep, other: PlanStep) -> bool:
    return one is other or other == one.model_copy(
        update={"manual_intervention": other.manual_intervention}
    )


def _make_remarks(
    record: RefinementRecord, issues: Sequence[ValidationIssue]
) -> tuple[Remark, ...]:
    remarks = [
        Remark(
            "refused_action",
            f"{action.action_type} {action.fragment}: {refused.reason}",
            action.fragment,
        )
        for refused in record.refused
        for action in [refused.action]
    ]
    for issue in issues:
        if issue.issue_id in record.unanswered:
            message = (
                f"{issue.severity} issue {issue.issue_id} got neither a change nor "
                f"a reason: {issue.description}"
            )
            remarks.append(Remark("unanswered_issue", message, issue.step_id))
    remarks += [_describe_conflict(*conflict) for conflict in find_conflicts(record, issues)]
    return tuple(remarks)


def _describe_conflict(action: RefinementAction, issue: ValidationIssue) -> Remark:
    done = f"{action.action_type} {action.fragment}"
    message = f"{done} was applied instead of what validation proposed for {issue.issue_id}"
    if repair := issue.proposed_repair:
        message += f": {repair.action} {repair.target}"
    return Remark("conflict", message, action.fragment)
