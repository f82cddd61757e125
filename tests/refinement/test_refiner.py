"""Refinement: proposed, admitted, decomposed, drafted, validated, applied (RULES 5, 8 and 13)."""

from __future__ import annotations

import pytest

from aeon.domain.errors import LimitReached, ServerFailed, Truncated, ValidationError
from aeon.domain.plan import PlanStep
from aeon.domain.report import ProposedRepair, ValidationIssue
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.recursive import RecursivePlanner
from aeon.plan.settings import RefinementSettings
from aeon.plan.triggers import Trigger
from aeon.refinement.refiner import Refiner, is_stuck
from aeon.validation.semantic import SemanticValidator
from tests.plan.builders import blocked, done, failed, plan_of, shape, step
from tests.refinement.build import Calls, accepted, refine, refusals
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

SUBPLAN = {"subplan_goal": "in detail", "substeps": [planned("x"), planned("y", "x")]}


def plan():
    return plan_of(done("a"), step("b", "a"), step("c", "b"))


def nested(levels: int) -> tuple[PlanStep, ...]:
    """A step nested so many levels deep, its ancestors around it."""
    ids = ["n" + ".n" * level for level in range(levels + 1)]
    steps = [step(ids[-1], parent_step_id=ids[-2] if levels else None)]
    for outer, inner in zip(reversed(ids[:-1]), reversed(ids[1:]), strict=True):
        steps.append(step(outer, inner, parent_step_id=outer.rpartition(".")[0] or None))
    return tuple(steps)


def test_nothing_proposed_changes_nothing_and_is_recorded():
    before = plan()
    refined = refine(
        ScriptedModel(), before, triggers=[Trigger(kind="low_score", about="incomplete")]
    )
    assert refined.plan is before
    assert refined.record.triggers == ("low_score:incomplete",)
    assert (refined.attempts.total, refined.remarks, refined.handed_over) == (0, (), ())


def test_changes_are_validated_in_one_call_before_they_are_applied():
    model, budget = ScriptedModel(refinement=refinement(modify("b", "a"), add("d", "a"))), Calls()
    refined = refine(model, plan(), budget=budget)
    assert budget.made == ["refinement", "semantic_validation"]
    assert refined.record.fragment_report.artifact_type == "step"
    assert accepted(refined) == ["MODIFY b", "ADD d"]
    assert refined.plan.step("b").description == "do b better"
    before, after = next((c.before, c.after) for c in refined.record.changes if c.step_id == "b")
    assert (before.description, after.description) == ("do b", "do b better")


@pytest.mark.parametrize(
    ("severity", "reject", "applied"),
    [
        ("CRITICAL", "CRITICAL", False),
        ("HIGH", "CRITICAL", True),
        ("HIGH", "HIGH", False),
        ("LOW", "MEDIUM", True),
    ],
)
def test_an_issue_refuses_the_change_of_its_step_from_the_configured_severity_on(
    severity, reject, applied
):
    model = ScriptedModel(
        refinement=refinement(modify("b", "a"), modify("c", "b")),
        semantic_validation=report(issue("f1", "b", severity)),
    )
    refined = refine(model, plan(), settings=RefinementSettings(reject_severity=reject))
    assert accepted(refined) == (["MODIFY b", "MODIFY c"] if applied else ["MODIFY c"])
    if not applied:
        assert refusals(refined) == {"MODIFY b": f"{severity} issue: f1 is wrong"}
        assert [(r.kind, r.step_id) for r in refined.remarks] == [("refused_action", "b")]
        assert refined.plan.step("b") is plan().step("b") or refined.plan.step("b") == plan().step(
            "b"
        )


def test_what_rests_on_a_refused_change_is_refused_with_it():
    model = ScriptedModel(
        refinement=refinement(add("new", "a"), modify("b", "new")),
        semantic_validation=report(issue("f1", "new", "CRITICAL")),
    )
    before = plan()
    refined = refine(model, before)
    assert accepted(refined) == []
    assert set(refusals(refined)) == {"ADD new", "MODIFY b"}
    assert refined.plan is before


def test_an_issue_at_a_substep_refuses_the_whole_subplan():
    model = ScriptedModel(
        refinement=refinement(action("SUBPLAN_CREATE", "b")),
        subplan=SUBPLAN,
        semantic_validation=report(issue("f1", "b.y", "CRITICAL")),
    )
    refined = refine(model, plan())
    assert accepted(refined) == []
    assert "f1 is wrong" in refusals(refined)["SUBPLAN_CREATE b"]


@pytest.mark.parametrize(
    "location", [None, {"step_id": None, "artifact_reference": "all of the changes"}]
)
def test_a_grave_issue_about_no_step_refuses_every_change(location):
    model = ScriptedModel(
        refinement=refinement(modify("b", "a"), modify("c", "b")),
        semantic_validation=report(issue("f1", None, "CRITICAL", location=location)),
    )
    before = plan()
    refined = refine(model, before)
    assert set(refusals(refined)) == {"MODIFY b", "MODIFY c"}
    assert set(refusals(refined).values()) == {"CRITICAL issue: f1 is wrong"}
    assert refined.plan is before


def test_a_lesser_issue_about_no_step_refuses_nothing():
    model = ScriptedModel(
        refinement=refinement(modify("b", "a")),
        semantic_validation=report(issue("f1", None, "HIGH")),
    )
    assert accepted(refine(model, plan())) == ["MODIFY b"]


@pytest.mark.parametrize("error", [Truncated("cut off"), ValidationError("no")], ids=repr)
def test_changes_that_cannot_be_validated_are_refused(error):
    model = ScriptedModel(
        refinement=refinement(modify("b", "a"), add("d")), semantic_validation=error
    )
    before = plan()
    refined = refine(model, before)
    assert refined.plan is before
    assert refined.record.fragment_report is None
    assert all("could not be validated" in reason for reason in refusals(refined).values())
    assert len(refined.remarks) == 2


def test_changes_whose_validation_cannot_be_paid_are_refused():
    model, budget = ScriptedModel(refinement=refinement(modify("b", "a"))), Calls(1)
    refined = refine(model, plan(), budget=budget)
    assert budget.made == ["refinement"]
    assert "budget" in refusals(refined)["MODIFY b"]


@pytest.mark.parametrize("error", [Truncated("cut off"), ValidationError("no")], ids=repr)
def test_a_refinement_that_gives_nothing_usable_leaves_the_plan_and_counts(error):
    before = plan()
    refined = refine(ScriptedModel(refinement=error), before)
    assert refined.plan is before
    assert refined.record is None
    assert (refined.attempts.total, dict(refined.attempts.by_fragment)) == (1, {})
    assert [r.kind for r in refined.remarks] == ["refinement_unavailable"]


@pytest.mark.parametrize("call", ["refinement", "subplan", "semantic_validation"])
def test_a_provider_that_is_down_is_no_refinement_that_came_to_nothing(call):
    decompose = refinement(action("SUBPLAN_CREATE", "b"))
    substeps = {"subplan_goal": "in detail", "substeps": [planned("x")]}
    model = ScriptedModel(
        **{"refinement": decompose, "subplan": substeps, call: ServerFailed("500")}
    )
    with pytest.raises(ServerFailed, match="500"):
        refine(model, plan())


def test_a_refinement_that_two_repairs_could_not_mend_leaves_the_plan():
    model = ScriptedModel(refinement="no JSON")
    before = plan()
    assert refine(model, before).plan is before
    assert model.calls == ["refinement", "repair", "repair"]


def test_a_limit_that_is_reached_passes():
    with pytest.raises(LimitReached):
        refine(ScriptedModel(refinement=LimitReached("enough", limit="max_tokens")), plan())


@pytest.mark.parametrize(
    ("proposed", "reason"),
    [
        (modify("nowhere"), "no step 'nowhere'"),
        (modify("a"), "is complete"),
        (action("REMOVE", "a"), "is complete"),
        (add("a"), "taken"),
        (modify("b", "c"), "loop"),
        (modify("b", "gone"), "'gone'"),
    ],
)
def test_a_change_that_is_structurally_wrong_is_refused_without_asking_anyone(proposed, reason):
    budget = Calls()
    refined = refine(ScriptedModel(refinement=refinement(proposed)), plan(), budget=budget)
    assert budget.made == ["refinement"]
    assert reason in next(iter(refusals(refined).values()))
    assert shape(refined.plan) == shape(plan())


def test_a_fragment_at_its_limit_is_refused_and_handed_to_a_person():
    attempts = RefinementAttempts(by_fragment={"b": 3}, total=3)
    refined = refine(
        ScriptedModel(refinement=refinement(modify("b", "a"), modify("c", "b"))),
        plan(),
        attempts=attempts,
    )
    assert accepted(refined) == ["MODIFY c"]
    assert refined.handed_over == ("b",)
    assert (
        refined.attempts.by_fragment["b"],
        refined.attempts.by_fragment["c"],
        refined.attempts.total,
    ) == (4, 1, 4)


def test_a_fragment_left_to_a_person_is_not_changed_any_more():
    refined = refine(
        ScriptedModel(refinement=refinement(modify("b", "a"), modify("c", "b"))),
        plan(),
        closed=["b"],
    )
    assert accepted(refined) == ["MODIFY c"]
    assert "person" in refusals(refined)["MODIFY b"]
    assert refined.plan.step("b").description == "do b"


def test_refused_actions_count_like_accepted_ones():
    refined = refine(ScriptedModel(refinement=refinement(modify("nowhere"), modify("a"))), plan())
    assert dict(refined.attempts.by_fragment) == {"nowhere": 1, "a": 1}
    assert refined.attempts.total == 1


def test_a_run_at_its_limit_applies_nothing():
    attempts = RefinementAttempts(total=10)
    refined = refine(
        ScriptedModel(refinement=refinement(modify("b", "a"))), plan(), attempts=attempts
    )
    assert accepted(refined) == []
    assert refined.attempts.total == 10


def test_whether_a_run_may_refine_once_more():
    refiner = Refiner(
        RecursivePlanner(ScriptedModel()),
        SemanticValidator(ScriptedModel()),
        RefinementSettings(max_attempts_total=2),
    )
    assert refiner.may_refine(RefinementAttempts(total=1))
    assert not refiner.may_refine(RefinementAttempts(total=2))


def test_a_pass_is_refined_when_there_is_a_reason_or_always():
    reason = Trigger(kind="failed_step", about="a")
    assert Refiner(RecursivePlanner(ScriptedModel()), SemanticValidator(ScriptedModel())).is_due(
        [reason]
    )
    assert not Refiner(
        RecursivePlanner(ScriptedModel()), SemanticValidator(ScriptedModel())
    ).is_due([])
    assert Refiner(
        RecursivePlanner(ScriptedModel()),
        SemanticValidator(ScriptedModel()),
        RefinementSettings(when="always"),
    ).is_due([])


@pytest.mark.parametrize("target", [step("b", "a"), blocked("b", "a")])
def test_a_pending_or_blocked_step_is_decomposed_and_runs_last(target):
    model, budget = (
        ScriptedModel(refinement=refinement(action("SUBPLAN_CREATE", "b")), subplan=SUBPLAN),
        Calls(),
    )
    refined = refine(model, plan_of(done("a"), target), budget=budget)
    assert budget.made == ["refinement", "subplan", "semantic_validation"]
    assert shape(refined.plan) == {
        "a": (),
        "b.x": ("a",),
        "b.y": ("b.x",),
        "b": ("a", "b.x", "b.y"),
    }
    assert refined.plan.step("b").status == "pending"
    assert refined.plan.step("b.x").parent_step_id == "b"


@pytest.mark.parametrize(
    "target",
    [
        done("b"),
        failed("b"),
        done("b").model_copy(update={"status": "invalid"}),
        blocked("b").model_copy(update={"replaced_by": "a", "clarity_state": None}),
    ],
    ids=["complete", "failed", "invalid", "replaced"],
)
def test_no_subplan_is_asked_for_a_step_that_cannot_have_one(target):
    model, budget = (
        ScriptedModel(refinement=refinement(action("SUBPLAN_CREATE", "b")), subplan=SUBPLAN),
        Calls(),
    )
    refined = refine(model, plan_of(done("a"), target), budget=budget)
    assert budget.made == ["refinement"]
    assert accepted(refined) == []


def test_a_subplan_that_cannot_be_paid_or_made_is_refused():
    for budget, subplan in (
        (Calls(1), SUBPLAN),
        (Calls(), Truncated("cut off")),
        (Calls(), "no JSON"),
    ):
        model = ScriptedModel(refinement=refinement(action("SUBPLAN_CREATE", "b")), subplan=subplan)
        before = plan()
        refined = refine(model, before, budget=budget)
        assert refined.plan is before
        assert list(refusals(refined)) == ["SUBPLAN_CREATE b"]
        assert [r.kind for r in refined.remarks] == ["refused_action"]


def test_the_fifth_level_is_made_and_the_sixth_is_left_to_a_person():
    for levels, handed in ((4, ()), (5, ("n.n.n.n.n.n",))):
        steps = nested(levels)
        target = steps[0].step_id
        model = ScriptedModel(
            refinement=refinement(action("SUBPLAN_CREATE", target)), subplan=SUBPLAN
        )
        before, budget = plan_of(*steps), Calls()
        refined = refine(model, before, budget=budget)
        assert refined.handed_over == handed
        assert ("subplan" in budget.made) == (not handed)
        assert (shape(refined.plan) == shape(before)) == bool(handed)
        assert [s.step_id for s in refined.plan.steps if s.manual_intervention] == list(handed)


def test_questions_raised_before_are_not_raised_again():
    asked = {"question": "Which?", "assumption": "Green.", "step_id": None}
    model = ScriptedModel(refinement=refinement(questions=[asked]))
    first = refine(model, plan())
    again = refine(model, first.plan)
    assert [q.question for q in first.plan.questions] == ["Which?"]
    assert again.plan is first.plan
    assert again.record.questions == ()


def test_questions_alone_are_no_attempt():
    asked = {"question": "Which?", "assumption": "Green.", "step_id": None}
    assert (
        refine(ScriptedModel(refinement=refinement(questions=[asked])), plan()).attempts.total == 0
    )


def test_a_person_may_answer_or_not():
    asked = [{"question": q, "assumption": "Green.", "step_id": None} for q in ("Which?", "When?")]
    answers = {"Which?": "Black.", "When?": None}
    refined = refine(
        ScriptedModel(refinement=refinement(questions=asked)),
        plan(),
        ask=lambda question: answers[question.question],
    )
    assert [(q.question, q.answer) for q in refined.plan.questions] == [
        ("Which?", "Black."),
        ("When?", None),
    ]


def test_an_overridden_repair_is_a_conflict_that_the_planner_wins():
    issues = [
        ValidationIssue(
            issue_id=issue_id,
            type="specificity",
            severity="LOW",
            description="vague",
            proposed_repair=ProposedRepair(action="split", target="b")
            if issue_id == "i1"
            else None,
        )
        for issue_id in ("i1", "i2")
    ]
    model = ScriptedModel(refinement=refinement(modify("b", "a", overrides_issues=["i1", "i2"])))
    refined = refine(model, plan(), issues=issues)
    assert accepted(refined) == ["MODIFY b"]
    said = [r.message for r in refined.remarks if r.kind == "conflict"]
    assert [message.rpartition(": ")[2] for message in said] == ["split b"]


def test_a_refused_change_overrides_nothing():
    issues = [
        ValidationIssue(issue_id="i1", type="specificity", severity="LOW", description="vague")
    ]
    model = ScriptedModel(refinement=refinement(modify("a", overrides_issues=["i1"])))
    assert [r.kind for r in refine(model, plan(), issues=issues).remarks] == ["refused_action"]


def test_the_supervisor_says_what_is_safe_what_is_not_and_whether_it_blocks():
    model = ScriptedModel(refinement=refinement(modify("b", "a"), modify("a")))
    supervisor = refine(model, plan()).record.supervisor
    assert [a.fragment for a in supervisor.repairs] == ["b"]
    assert len(supervisor.issues) == 1
    assert not supervisor.blocking


@pytest.mark.parametrize(
    ("before", "after", "stuck"),
    [
        (plan_of(failed("a"), step("b", "a")), None, True),
        (plan_of(done("a")), None, True),
        (plan_of(step("a")), None, False),
        (plan_of(failed("a")), plan_of(failed("a"), step("b")), False),
        (plan_of(failed("a")), plan_of(failed("a"), step("b", "a")), False),
        (plan_of(failed("a")), plan_of(failed("a", manual_intervention=True)), True),
        (plan_of(failed("a")), plan_of(failed("a", clarity_reason="it changed")), False),
        (
            plan_of(failed("a"), failed("b")),
            plan_of(failed("a"), failed("b", clarity_reason="it changed")),
            False,
        ),
    ],
)
def test_stuck_is_nothing_changed_and_nothing_ready(before, after, stuck):
    assert is_stuck(before, after or before) is stuck


def test_with_an_answer_schema_what_was_not_final_when_it_was_done_never_becomes_the_answer():
    for proposed in (action("REMOVE", "c"), action("STEP_MARK_INVALID", "d")):
        target = step("c", "b") if proposed["action_type"] == "REMOVE" else done("d", "b")
        before = plan_of(done("a"), done("b", "a"), target)
        refined = refine(
            ScriptedModel(refinement=refinement(proposed)), before, one_final_step=True
        )
        assert accepted(refined) == []
        assert refined.plan is before
