"""Parses the model's answers about plans into values: `tool: null` becomes `agent: llm`, and JSON
text is parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from aeon.domain.graph import sort_by_dependencies
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, DeclinedIssue, Refinement, RefinementAction
from aeon.domain.report import Severity, ValidationIssue
from aeon.domain.values import JsonMapping
from aeon.llm.exchange import InvalidAnswer, locate_errors, require_few
from aeon.plan.structural import MOST_TIMES_TOO_LARGE, StructuralFinding, check_steps
from aeon.plan.triggers import find_unanswered, open_issues
from aeon.schema.validators import FieldError
from aeon.supervisor.faithful import read_arguments

MAX_ACTIONS = 300
"""Most changes in one refinement: each is checked against all others."""


def parse_plan(answer: JsonMapping, task: str, *, max_steps: int, one_final_step: bool) -> Plan:
    """Parse a plan and sort its steps. Raises InvalidAnswer naming every structural fault (Sprint 1
    FR-010)."""
    # A plan that is far too large may have too many other faults to list.
    require_few(len(answer["steps"]), "/steps", "steps", MOST_TIMES_TOO_LARGE * max_steps)
    steps = [_step(raw, f"/steps/{index}") for index, raw in enumerate(answer["steps"])]
    findings = check_steps(steps, max_steps=max_steps, one_final_step=one_final_step)
    _require_none(findings, "/steps")
    return Plan(goal=answer["goal"], steps=sort_by_dependencies(steps), task=task)


def parse_subplan(answer: JsonMapping, parent: PlanStep, level: int) -> Subplan:
    """Parse the subplan of a step. Raises InvalidAnswer for structural faults."""
    require_few(len(answer["substeps"]), "/substeps", "substeps")
    steps = []
    for index, raw in enumerate(answer["substeps"]):
        step = _step(raw, f"/substeps/{index}")
        own = tuple(
            dependency for dependency in step.dependencies if dependency not in parent.dependencies
        )
        steps.append(step.model_copy(update={"dependencies": own}))
    _require_none(check_steps(steps), "/substeps")
    goal = answer["subplan_goal"]
    return Subplan(
        parent_step_id=parent.step_id, subplan_goal=goal, substeps=tuple(steps), depth_level=level
    )


def parse_refinement(
    answer: JsonMapping,
    issues: Sequence[ValidationIssue],
    closed: Collection[str] = (),
    binding: Severity = "HIGH",
) -> Refinement:
    """Parse the actions, the questions and the answers to `issues`. Raises InvalidAnswer."""
    require_few(len(answer["actions"]), "/actions", "changes", MAX_ACTIONS)
    require_few(len(answer["questions"]), "/questions", "questions")
    by_id = {issue.issue_id: issue for issue in issues}
    actions = tuple(
        _action(raw, f"/actions/{index}", by_id) for index, raw in enumerate(answer["actions"])
    )
    questions = []
    for index, raw in enumerate(answer["questions"]):
        with locate_errors(f"/questions/{index}"):
            questions.append(FollowUpQuestion.model_validate(raw))
    declined = tuple(
        DeclinedIssue(issue_id=raw["issue_id"], reason=raw["reason"].strip())
        for raw in answer.get("declined_issues", ())
        if raw["issue_id"] in by_id and raw["reason"].strip()
    )
    return Refinement(
        actions=actions,
        questions=tuple(questions),
        declined=declined,
        unanswered=find_unanswered(open_issues(issues, closed), actions, declined, binding),
    )


def require_answers(refinement: Refinement, issues: Sequence[ValidationIssue]) -> None:
    """Raise InvalidAnswer if a refinement ignores an issue that must be answered."""
    errors = [
        FieldError(
            "/declined_issues",
            f"issue {issue.issue_id} ({issue.severity}: {issue.description}) is neither "
            "in addresses_issues of an"
            " action nor in declined_issues with a reason",
        )
        for issue in issues
        if issue.issue_id in refinement.unanswered
    ]
    if errors:
        raise InvalidAnswer(errors)


def _action(
    raw: JsonMapping, pointer: str, issues: Mapping[str, ValidationIssue]
) -> RefinementAction:
    rule = ACTIONS[raw["action_type"]]
    answered = tuple(raw.get("addresses_issues", ()))
    is_given = rule.needs_new_step and raw["new_step"]
    new_step = _step(raw["new_step"], f"{pointer}/new_step") if is_given else None
    with locate_errors(pointer):
        return RefinementAction(
            action_type=raw["action_type"],
            target_step_id=raw["target_step_id"] if rule.needs_target else None,
            new_step=new_step,
            justification=raw["justification"],
            inconsistency_detected=raw["inconsistency_detected"],
            addresses_issues=answered,
            overrides_issues=tuple(
                issue_id for issue_id in raw.get("overrides_issues", ()) if issue_id in issues
            ),
            semantic_validation_input=tuple(
                issues[issue_id] for issue_id in answered if issue_id in issues
            ),
        )


def _step(raw: JsonMapping, pointer: str) -> PlanStep:
    tool = raw.get("tool")
    given = raw.get("arguments")
    with locate_errors(pointer):
        return PlanStep(
            step_id=raw["step_id"],
            description=raw["description"],
            dependencies=tuple(dict.fromkeys(raw["dependencies"])),
            provides=tuple(raw["provides"]),
            incoming_context="",
            handoff_to_next=raw["handoff_to_next"],
            tool=tool,
            agent=None if tool else "llm",
            arguments=read_arguments(given, f"{pointer}/arguments") if tool else None,
        )


def _require_none(findings: Sequence[StructuralFinding], place: str) -> None:
    if findings:
        raise InvalidAnswer(
            FieldError(place + each.pointer.removeprefix("/steps"), each.message)
            for each in findings
        )
