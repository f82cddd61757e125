"""Parses the model's answers about plans into values: `tool: null` becomes `agent: llm`, JSON text is parsed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from aeon.domain.graph import topological
from aeon.domain.plan import FollowUpQuestion, Plan, PlanStep, Subplan
from aeon.domain.refinement import ACTIONS, DeclinedIssue, Refinement, RefinementAction, missing_field
from aeon.domain.report import ValidationIssue
from aeon.llm.exchange import InvalidAnswer, located
from aeon.llm.extract import ExtractError, read_json
from aeon.plan.structural import check_steps
from aeon.plan.triggers import open_issues, unanswered
from aeon.schema.violations import FieldError

MAX_ACTIONS = 300
"""How many changes one refinement may propose: each is checked against all others."""


def parse_plan(answer: Mapping[str, Any], task: str, *, max_steps: int, one_final_step: bool) -> Plan:
    """Parse a plan; its steps are put in stable topological order.

    Raises InvalidAnswer, naming every structural fault (Sprint 1 FR-010).
    """
    steps = _steps(answer["steps"], "/steps")
    _check(steps, "/steps", max_steps=max_steps, one_final_step=one_final_step)
    return Plan(goal=answer["goal"], steps=topological(steps), task=task)


def parse_subplan(answer: Mapping[str, Any], parent: PlanStep, level: int) -> Subplan:
    """Parse the subplan of a step.

    Substeps may depend on each other and on the dependencies of the parent, which they get anyway. Raises InvalidAnswer
    for any other dependency, and for structural faults.
    """
    given = _steps(answer["substeps"], "/substeps")
    steps = tuple(
        step.model_copy(update={"dependencies": tuple(d for d in step.dependencies if d not in parent.dependencies)})
        for step in given
    )
    _check(steps, "/substeps")
    return Subplan(
        parent_step_id=parent.step_id, subplan_goal=answer["subplan_goal"], substeps=steps, depth_level=level
    )


def parse_refinement(
    answer: Mapping[str, Any], issues: Sequence[ValidationIssue], closed: Collection[str] = ()
) -> Refinement:
    """Parse the actions, the questions and the answers to `issues`; issues at `closed` steps need no answer.

    Raises InvalidAnswer when an action lacks what its type needs, and for more than MAX_ACTIONS actions.
    """
    if (count := len(answer["actions"])) > MAX_ACTIONS:
        wrong = f"there are {count} changes, at most {MAX_ACTIONS} are read: give the most important ones"
        raise InvalidAnswer([FieldError("/actions", wrong)])
    by_id = {issue.issue_id: issue for issue in issues}
    actions, errors = [], []
    for index, raw in enumerate(answer["actions"]):
        pointer = f"/actions/{index}"
        missing = missing_field(raw["action_type"], raw["target_step_id"], raw["new_step"])
        errors += [FieldError(pointer, f"{raw['action_type']} needs {missing}")] if missing else []
        if not errors:
            actions.append(_action(raw, pointer, by_id))
    if errors:
        raise InvalidAnswer(tuple(errors))
    questions = tuple(_question(raw, f"/questions/{index}") for index, raw in enumerate(answer["questions"]))
    declined = tuple(_parse_declined(raw) for raw in answer.get("declined_issues", ()) if _is_declined(raw, by_id))
    return Refinement(
        actions=tuple(actions),
        questions=questions,
        declined=declined,
        unanswered=unanswered(open_issues(issues, closed), actions, declined),
    )


def require_answers(refinement: Refinement, issues: Sequence[ValidationIssue]) -> None:
    """Raise InvalidAnswer when a refinement does not answer an issue of severity HIGH or more."""
    unanswered = [issue for issue in issues if issue.issue_id in refinement.unanswered]
    if unanswered:
        raise InvalidAnswer(FieldError("/declined_issues", _describe_unanswered(issue)) for issue in unanswered)


def _describe_unanswered(issue: ValidationIssue) -> str:
    return (
        f"issue {issue.issue_id} ({issue.severity}: {issue.description}) is neither in addresses_issues of an action"
        " nor in declined_issues with a reason"
    )


def _is_declined(raw: Mapping[str, Any], issues: Mapping[str, ValidationIssue]) -> bool:
    return raw["issue_id"] in issues and bool(raw["reason"].strip())


def _parse_declined(raw: Mapping[str, Any]) -> DeclinedIssue:
    return DeclinedIssue(issue_id=raw["issue_id"], reason=raw["reason"].strip())


def _action(raw: Mapping[str, Any], pointer: str, issues: Mapping[str, ValidationIssue]) -> RefinementAction:
    rule = ACTIONS[raw["action_type"]]
    new_step = _step(raw["new_step"], f"{pointer}/new_step") if rule.needs_new_step else None
    with located(pointer):
        return RefinementAction(
            action_type=raw["action_type"],
            target_step_id=raw["target_step_id"] if rule.needs_target else None,
            new_step=new_step,
            justification=raw["justification"],
            inconsistency_detected=raw["inconsistency_detected"],
            addresses_issues=tuple(raw.get("addresses_issues", ())),
            overrides_issues=tuple(issue_id for issue_id in raw.get("overrides_issues", ()) if issue_id in issues),
            semantic_validation_input=tuple(issues[i] for i in raw.get("addresses_issues", ()) if i in issues),
        )


def _question(raw: Mapping[str, Any], pointer: str) -> FollowUpQuestion:
    with located(pointer):
        return FollowUpQuestion.model_validate(raw)


def _steps(raw: Sequence[Mapping[str, Any]], pointer: str) -> tuple[PlanStep, ...]:
    return tuple(_step(step, f"{pointer}/{index}") for index, step in enumerate(raw))


def _step(raw: Mapping[str, Any], pointer: str) -> PlanStep:
    tool, given = raw.get("tool"), raw.get("arguments")  # they mean nothing without a tool
    arguments = _arguments(given, f"{pointer}/arguments") if tool else None
    with located(pointer):
        return PlanStep(
            step_id=raw["step_id"],
            description=raw["description"],
            dependencies=tuple(dict.fromkeys(raw["dependencies"])),
            provides=tuple(raw["provides"]),
            incoming_context="",
            handoff_to_next=raw["handoff_to_next"],
            tool=tool,
            agent=None if tool else "llm",
            arguments=arguments,
        )


def _arguments(text: str | None, pointer: str) -> dict[str, Any] | None:
    if text is None or not text.strip():
        return None
    try:
        arguments = read_json(text)
    except ExtractError as error:
        raise InvalidAnswer((FieldError(pointer, f"must be JSON text of an object, or null: {error}"),)) from error
    if not isinstance(arguments, dict):
        raise InvalidAnswer((FieldError(pointer, "must be JSON text of an object, or null"),))
    return arguments


def _check(
    steps: Sequence[PlanStep], place: str, *, max_steps: int | None = None, one_final_step: bool = False
) -> None:
    """Raise InvalidAnswer for structural faults of the steps at `place` in the answer."""
    findings = check_steps(steps, max_steps=max_steps, one_final_step=one_final_step)
    if findings:
        pointers = (place + finding.pointer.removeprefix("/steps") for finding in findings)
        raise InvalidAnswer(FieldError(at, found.message) for at, found in zip(pointers, findings, strict=True))
