"""The one review of a refinement: what it is shown, and what an issue in it refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.plan import Plan
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.plan.triggers import Trigger
from tests.plan.builders import blocked, done, plan_of, shape, step
from tests.refinement.build import Calls, accepted, refine, refusals
from tests.support.fences import texts_in
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    add,
    issue,
    modify,
    planned,
    refinement,
    report,
)

REMOVE_B = action("REMOVE", "b")
MARK_A = action("STEP_MARK_INVALID", "a")


def plan() -> Plan:
    return plan_of(done("a"), step("b", "a"), step("c", "b"))


def reviewed(model: ScriptedModel) -> dict[str, Any]:
    """The variables of the review of the changes."""
    (request,) = [each for each in model.requests if each.call == "semantic_validation"]
    return dict(request.variables)


def changed(model: ScriptedModel) -> dict[str, dict[str, Any]]:
    """What the review was shown of each changed step."""
    (prompt,) = model.prompts("semantic_validation")
    (lines,) = texts_in(prompt, "changed_steps")
    return {entry["step_id"]: entry for entry in json.loads(lines)}


@pytest.mark.parametrize("proposed", [REMOVE_B, MARK_A])
def test_removals_and_invalid_marks_are_reviewed(proposed):
    model, budget = ScriptedModel(refinement=refinement(proposed)), Calls()
    refined = refine(model, plan(), budget=budget)
    assert budget.made == ["refinement", "semantic_validation"]
    assert refined.record.fragment_report is not None
    assert accepted(refined) == [f"{proposed['action_type']} {proposed['target_step_id']}"]


@pytest.mark.parametrize("at", ["target", "dependent"])
@pytest.mark.parametrize("proposed", [REMOVE_B, MARK_A])
def test_an_issue_at_the_target_or_at_a_dependent_refuses(proposed, at):
    target = proposed["target_step_id"]
    place = target if at == "target" else {"a": "b", "b": "c"}[target]
    model = ScriptedModel(
        refinement=refinement(proposed), semantic_validation=report(issue("f1", place, "CRITICAL"))
    )
    before = plan()
    refined = refine(model, before)
    assert accepted(refined) == []
    assert list(refusals(refined).values()) == ["CRITICAL issue: f1 is wrong"]
    assert refined.plan is before


def test_an_issue_at_a_step_that_rests_on_a_changed_one_refuses_the_change():
    model = ScriptedModel(
        refinement=refinement(modify("b", "a")),
        semantic_validation=report(issue("f1", "c", "CRITICAL")),
    )
    assert list(refusals(refine(model, plan()))) == ["MODIFY b"]


def test_an_issue_at_a_step_far_from_the_change_refuses_nothing():
    model = ScriptedModel(
        refinement=refinement(MARK_A), semantic_validation=report(issue("f1", "c", "CRITICAL"))
    )
    assert accepted(refine(model, plan())) == ["STEP_MARK_INVALID a"]


@pytest.mark.parametrize("proposed", [REMOVE_B, MARK_A])
def test_without_budget_for_the_review_they_are_refused(proposed):
    budget, before = Calls(1), plan()
    refined = refine(ScriptedModel(refinement=refinement(proposed)), before, budget=budget)
    assert budget.made == ["refinement"]
    assert refined.plan is before
    assert ["budget" in reason for reason in refusals(refined).values()] == [True]


def test_old_and_new_version_stand_side_by_side_with_justification_and_issues():
    found = ValidationIssue(
        issue_id="i1", type="specificity", severity="MEDIUM", description="b is vague"
    )
    proposed = modify("b", "a", justification="it said too little", addresses_issues=["i1"])
    model = ScriptedModel(refinement=refinement(proposed, REMOVE_C))
    refine(
        model, plan_of(done("a"), step("b", "a"), step("c", "b"), step("d", "c")), issues=[found]
    )
    shown = changed(model)
    assert list(shown) == ["b", "d", "c"]
    assert shown["b"]["before"]["description"] == "do b"
    after = {step["step_id"]: step for step in reviewed(model)["plan"]["steps"]}
    assert after["b"]["description"] == "do b better"
    (because,) = shown["b"]["actions"]
    assert (because["action_type"], because["justification"]) == ("MODIFY", "it said too little")
    assert because["answers"] == ["i1"]
    assert [i["description"] for i in reviewed(model)["answered"]] == ["b is vague"]
    assert (shown["c"]["before"]["description"], shown["c"]["removed"]) == ("do c", True)
    assert shown["d"]["before"]["dependencies"] == ["c"]
    assert after["d"]["dependencies"] == ["b"]
    assert shown["d"]["actions"] == []


@pytest.mark.parametrize("detected", [True, False])
def test_the_review_is_told_that_an_executed_step_contradicts_the_rest(detected):
    model = ScriptedModel(refinement=refinement(modify("b", "a", inconsistency_detected=detected)))
    refine(model, plan_of(done("a"), step("b", "a")))
    (because,) = changed(model)["b"]["actions"]
    assert because.get("inconsistency_detected", False) is detected


REMOVE_C = action("REMOVE", "c")


def test_the_outputs_that_a_change_builds_on_are_shown_and_no_others():
    model = ScriptedModel(refinement=refinement(add("new", "a"), modify("half", "a")))
    refine(
        model,
        plan_of(done("a"), done("other"), blocked("half", "a"), step("last", "half", "other")),
    )
    (prompt,) = model.prompts("semantic_validation")
    assert "output of a" in prompt
    assert "half of half" in prompt
    assert "output of other" not in prompt


def test_an_output_that_is_to_be_set_aside_is_shown():
    proposed = action("REPLACE", "a", planned("a2"))
    model = ScriptedModel(refinement=refinement(proposed))
    refined = refine(model, plan())
    assert accepted(refined) == ["REPLACE a"]
    assert "output of a" in model.prompts("semantic_validation")[0]


def test_a_substep_is_shown_with_the_action_that_makes_it():
    subplan = {"subplan_goal": "in detail", "substeps": [planned("x")]}
    model = ScriptedModel(refinement=refinement(action("SUBPLAN_CREATE", "b")), subplan=subplan)
    refine(model, plan())
    assert [entry["action_type"] for entry in changed(model)["b.x"]["actions"]] == [
        "SUBPLAN_CREATE"
    ]


class Published:
    """A validator of one's own, with the published signature alone."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def validate(self, artifact_type, plan=None, steps=None, outputs=None, memory_artifacts=None):
        self.asked.append([step.step_id for step in steps])
        return SemanticValidationReport(validation_id="v", artifact_type=artifact_type)


def test_a_validator_of_ones_own_reviews_removals_too():
    validator = Published()
    refined = refine(
        ScriptedModel(refinement=refinement(REMOVE_B, MARK_A)), plan(), validator=validator
    )
    assert validator.asked == [["a", "c", "b"]]
    assert shape(refined.plan) == {"a": (), "c": ("a",)}


def test_an_issue_at_a_step_that_is_made_to_depend_on_a_changed_one_refuses_that_change_too():
    found = report(issue("i1", "d", "CRITICAL"))
    model = ScriptedModel(
        refinement=refinement(modify("b", "a"), add("d", "b")), semantic_validation=found
    )
    assert set(refusals(refine(model, plan()))) == {"MODIFY b", "ADD d"}


def test_the_review_of_a_change_is_given_the_reasons_of_the_planner() -> None:
    model = ScriptedModel(refinement=refinement(modify("b", "a")))
    why = Trigger(kind="blocked_step", about="b", detail="how hot?")
    of_issue = Trigger(kind="validation_issue", about="i1")
    refine(model, plan(), triggers=[why, of_issue])
    assert reviewed(model)["reasons"] == [
        {"kind": "blocked_step", "about": "b", "detail": "how hot?"}
    ]
    (prompt,) = model.prompts("semantic_validation")
    assert "reasons that the planner was given" in prompt
    assert "how hot?" in prompt
