"""Where a review proposes one thing and a refinement does another, the refinement counts and the conflict is reported
(FR-079). It is found by comparing the two, whether or not the planner says so."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain.report import ProposedRepair, ValidationIssue
from tests.plan.builders import done, plan_of, step
from tests.refinement.build import accepted, refine
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    add,
    modify,
    planned,
    refinement,
)


def proposing(repair: str, target: str = "b", **changes: Any) -> ValidationIssue:
    return ValidationIssue(
        issue_id="i1",
        type="specificity",
        severity="LOW",
        description="b is vague",
        proposed_repair=ProposedRepair(action=repair, target=target, changes=changes),
    )


def conflicts(issue: ValidationIssue, *actions: dict[str, Any]) -> list[str]:
    """What is reported of a refinement by these actions, all of which are applied."""
    before = plan_of(done("a"), step("b", "a"), step("c", "b"))
    model = ScriptedModel(
        refinement=refinement(*actions),
        subplan={"subplan_goal": "b in detail", "substeps": [planned("x")]},
    )
    refined = refine(model, before, issues=[issue])
    assert len(accepted(refined)) == len(actions)
    return [remark.message for remark in refined.remarks if remark.kind == "conflict"]


REMOVE = action("REMOVE", "b")
DIFFERENT = [
    pytest.param(proposing("REMOVE"), modify("b", "a"), id="removed, modified"),
    pytest.param(proposing("remove "), modify("b", "a"), id="in small letters"),
    pytest.param(proposing("MODIFY"), REMOVE, id="modified, removed"),
    pytest.param(
        proposing("say more", description="do b so"), REMOVE, id="said otherwise, removed"
    ),
    pytest.param(proposing("use it", tool="calculator"), modify("b", "a"), id="another tool"),
    pytest.param(proposing("wait", dependencies=["c"]), modify("b", "a"), id="other dependencies"),
    pytest.param(
        proposing("say more", description="do b so"),
        action("MODIFY", "b", planned("b", description="do b")),
        id="a description that stays as it was",
    ),
    pytest.param(proposing("REMOVE"), action("SUBPLAN_CREATE", "b"), id="removed, decomposed"),
]
ALIKE = [
    pytest.param(proposing("MODIFY"), modify("b", "a"), id="the same action"),
    pytest.param(
        proposing("REPLACE"),
        action("REPLACE", "b", planned("b", "a", description="do b so")),
        id="the same action, which is a MODIFY",
    ),
    pytest.param(
        proposing("MODIFY"),
        action("REPLACE", "b", planned("b", "a", description="do b so")),
        id="a REPLACE under the same id is a MODIFY",
    ),
    pytest.param(
        proposing("say more", description="do b so"), modify("b", "a"), id="in other words"
    ),
    pytest.param(proposing("wait", dependencies=["a"]), modify("b", "a"), id="as proposed"),
    pytest.param(proposing("split it in two"), modify("b", "a"), id="words alone"),
    pytest.param(proposing("REMOVE", "c"), modify("b", "a"), id="another step"),
    pytest.param(proposing("ADD", "d"), add("d", "a"), id="a new step"),
    pytest.param(proposing("see", text="it is vague"), REMOVE, id="no field of a step"),
]


@pytest.mark.parametrize(("issue", "taken"), DIFFERENT)
def test_an_action_that_differs_from_the_repair_of_its_step_is_a_conflict(
    issue: ValidationIssue, taken: dict[str, Any]
) -> None:
    (message,) = conflicts(issue, taken)
    repair = issue.proposed_repair
    assert message == (
        f"{taken['action_type']} b was applied instead of what validation proposed for i1:"
        f" {repair.action} b"
    )


@pytest.mark.parametrize(("issue", "taken"), ALIKE)
def test_an_action_that_does_what_was_proposed_or_something_else_is_none(
    issue: ValidationIssue, taken: dict[str, Any]
) -> None:
    assert conflicts(issue, taken) == []


def test_a_conflict_that_the_planner_declares_and_that_is_found_is_reported_once() -> None:
    assert len(conflicts(proposing("REMOVE"), modify("b", "a", overrides_issues=["i1"]))) == 1
