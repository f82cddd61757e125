"""Issues bind the planner: answered by a change, or declined with a reason; contradictions left alone need a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores
from aeon.domain.errors import Truncated
from aeon.domain.plan import Plan
from aeon.domain.refinement import RefinementAction
from aeon.domain.report import IssueLocation, ValidationIssue
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.settings import RefinementSettings
from aeon.plan.triggers import WHOLE
from tests.plan.builders import done, plan_of, step
from tests.refinement.build import Calls, accepted, refine
from tests.support.scripted_model import ScriptedModel, modify, refinement

ANSWERED = refinement(modify("b", "a", addresses_issues=["i1"]))
DECLINED = refinement(declined={"i1": "the last step joins them"})
SILENT = refinement(modify("c", "b"))


def plan() -> Plan:
    return plan_of(done("a"), step("b", "a"), step("c", "b"))


def found(
    severity: Any = "HIGH", step_id: str | None = "b", kind: Any = "specificity"
) -> ValidationIssue:
    location = IssueLocation(step_id=step_id) if step_id else None
    return ValidationIssue(
        issue_id="i1", type=kind, severity=severity, description="b is vague", location=location
    )


def conflict(step_id: str | None = "b") -> ValidationIssue:
    return found("CRITICAL", step_id, "consistency")


@pytest.mark.parametrize("severity", ["HIGH", "CRITICAL"])
@pytest.mark.parametrize("answer", [ANSWERED, DECLINED])
def test_a_grave_issue_is_answered_by_a_change_or_by_a_reason(answer, severity):
    model = ScriptedModel(refinement=answer)
    refined = refine(model, plan(), issues=[found(severity)])
    assert "repair" not in model.calls
    assert refined.record.unanswered == ()
    assert [(d.issue_id, d.reason) for d in refined.record.declined] == (
        [("i1", "the last step joins them")] if answer is DECLINED else []
    )


@pytest.mark.parametrize("severity", ["LOW", "MEDIUM"])
def test_a_lesser_issue_may_be_passed_over(severity):
    model = ScriptedModel(refinement=SILENT)
    assert refine(model, plan(), issues=[found(severity)]).record.unanswered == ()
    assert "repair" not in model.calls


def test_an_answer_that_passes_a_grave_issue_over_is_repaired_once():
    model = ScriptedModel(
        refinement=SILENT,
        repair=json.dumps(refinement(modify("c", "b"), declined={"i1": "c does"})),
    )
    refined = refine(model, plan(), issues=[found()])
    assert model.calls == ["refinement", "repair", "semantic_validation"]
    assert "i1 (HIGH: b is vague)" in model.prompts("repair")[0]
    assert accepted(refined) == ["MODIFY c"]
    assert refined.record.declined[0].reason == "c does"


@pytest.mark.parametrize("repair", [json.dumps(SILENT), Truncated("cut off"), "no JSON"])
def test_what_is_still_passed_over_is_recorded_and_the_changes_count(repair):
    model = ScriptedModel(refinement=SILENT, repair=repair)
    refined = refine(model, plan(), issues=[found()])
    assert accepted(refined) == ["MODIFY c"]
    assert refined.record.unanswered == ("i1",)
    assert [(r.kind, r.step_id) for r in refined.remarks] == [("unanswered_issue", "b")]
    assert "b is vague" in refined.remarks[0].message


@pytest.mark.parametrize("declined", [{"i1": "  "}, {"i9": "there is no such issue"}])
def test_a_reason_that_says_nothing_is_none(declined):
    answer = refinement(declined=declined)
    model = ScriptedModel(refinement=answer, repair=json.dumps(answer))
    assert refine(model, plan(), issues=[found()]).record.unanswered == ("i1",)


def test_an_issue_at_a_step_that_is_left_to_a_person_needs_no_answer():
    model = ScriptedModel(refinement=SILENT)
    assert refine(model, plan(), issues=[found()], closed=["b"]).record.unanswered == ()
    assert "repair" not in model.calls


def test_the_prompt_says_what_binds_and_what_was_found_of_the_answer():
    model = ScriptedModel(refinement=refinement())
    low = ConvergenceAssessment(
        converged=False,
        reason_codes=("incomplete", "contradiction_detected"),
        scores=ConvergenceScores(completeness_score=0.4),
        explanation="Half of it is there.",
    )
    refine(model, plan(), issues=[found()], assessment=low)
    (prompt,) = model.prompts("refinement")
    assert "severity HIGH and CRITICAL bind you" in prompt
    assert (
        '{"reason_codes":["incomplete","contradiction_detected"],"explanation":"Half of it is there."}'
        in prompt
    )
    assert "0.4" not in prompt


def test_nothing_binds_where_no_issue_is_grave():
    model = ScriptedModel(refinement=refinement())
    refine(model, plan(), issues=[found("MEDIUM")])
    (prompt,) = model.prompts("refinement")
    assert "bind you" not in prompt


def refinements(count: int, issue: ValidationIssue, answer: Any = DECLINED) -> list[Any]:
    """So many refinements running that are given the same issue."""
    attempts, made = RefinementAttempts(), []
    for _ in range(count):
        refined = refine(
            ScriptedModel(refinement=answer), plan(), issues=[issue], attempts=attempts
        )
        attempts = refined.attempts
        made.append(refined)
    return made


@pytest.mark.parametrize(("step_id", "fragment"), [("b", "b"), (None, WHOLE)])
def test_a_contradiction_that_three_refinements_running_leave_alone_is_left_to_a_person(
    step_id, fragment
):
    made = refinements(3, conflict(step_id))
    assert [len(refined.conflicts) for refined in made] == [0, 0, 1]
    assert made[1].attempts.left_alone == {fragment: 2}
    assert made[2].conflicts[0].description == "b is vague"
    marked = [s.step_id for s in made[2].plan.steps if s.manual_intervention]
    assert marked == ([step_id] if step_id else [])


def test_how_many_is_configured():
    settings = RefinementSettings(max_attempts_per_fragment=1)
    refined = refine(
        ScriptedModel(refinement=DECLINED), plan(), issues=[conflict()], settings=settings
    )
    assert len(refined.conflicts) == 1


@pytest.mark.parametrize("other", [found("CRITICAL"), found("HIGH", kind="consistency")])
def test_other_issues_are_never_left_to_a_person(other):
    assert [refined.conflicts for refined in refinements(4, other)] == [(), (), (), ()]


def test_a_contradiction_that_is_acted_upon_or_gone_counts_anew():
    two = refinements(2, conflict())[-1].attempts
    acted = refine(ScriptedModel(refinement=ANSWERED), plan(), issues=[conflict()], attempts=two)
    gone = refine(ScriptedModel(refinement=refinement()), plan(), attempts=two)
    assert (acted.attempts.left_alone, acted.conflicts) == ({}, ())
    assert (gone.attempts.left_alone, gone.conflicts) == ({}, ())


def test_no_model_is_asked_about_a_plan_of_one_step_whose_review_is_clean():
    before, budget = plan_of(step("a")), Calls()
    refined = refine(ScriptedModel(), before, is_clean=True, budget=budget)
    assert budget.made == []
    assert refined.plan is before
    assert refined.record.model_asked is False


@pytest.mark.parametrize(
    ("before", "options"),
    [
        (plan_of(step("a")), {"is_clean": False}),
        (plan_of(step("a"), step("b")), {"is_clean": True}),
        (plan_of(step("a")), {"is_clean": True, "ask": lambda question: "an answer"}),
        (plan_of(step("a")), {"is_clean": True, "settings": RefinementSettings(when="always")}),
    ],
    ids=["not reviewed", "two steps", "a person may answer", "always"],
)
def test_a_model_is_asked_where_it_could_do_something(before, options):
    budget = Calls()
    refined = refine(ScriptedModel(), before, budget=budget, **options)
    assert budget.made == ["refinement"]
    assert refined.record.model_asked is True


class OwnPlanner:
    """A planner of one's own with the published signature."""

    def __init__(self, *actions):
        self._actions = list(actions)

    def refine_plan(self, plan, issues, convergence_reason_codes, blocked_steps, executed_step_ids):
        return self._actions


def test_grave_issues_that_a_planner_of_ones_own_passes_over_are_recorded():
    first, second = (
        ValidationIssue(issue_id=issue_id, type="relevance", severity="HIGH", description=issue_id)
        for issue_id in ("i1", "i2")
    )
    action = RefinementAction(
        action_type="REMOVE",
        target_step_id="b",
        justification="it serves nothing",
        semantic_validation_input=(first,),
    )
    given = plan_of(step("a"), step("b"))
    refined = refine(ScriptedModel(), given, issues=[first, second], planner=OwnPlanner(action))
    assert refined.record.unanswered == ("i2",)
    assert [remark.kind for remark in refined.remarks] == ["unanswered_issue"]


def test_a_change_of_the_step_in_contradiction_acts_upon_it_whatever_it_says_it_answers():
    two = refinements(2, conflict("b"))[-1].attempts
    changed = refine(
        ScriptedModel(refinement=refinement(modify("b"))),
        plan(),
        issues=[conflict("b")],
        attempts=two,
    )
    assert (changed.attempts.left_alone, changed.conflicts) == ({}, ())
