"""What prompts are shown of plans, steps, outputs and memory."""

from __future__ import annotations

from aeon.domain.graph import current_outputs
from aeon.domain.plan import FollowUpQuestion, step_view
from aeon.plan.views import answer_view, outline, outputs_view, plan_view, question_view
from tests.plan.builders import blocked, done, failed, plan_of, step

HIDDEN = {"step_output", "incoming_context", "total_steps", "agent", "incomplete"}


def test_a_step_is_shown_without_its_output_and_without_what_says_nothing():
    shown = step_view(step("a", tool=None, provides=()))
    assert shown == {"step_id": "a", "step_index": 1, "description": "do a", "status": "pending", "dependencies": []}
    assert HIDDEN.isdisjoint(step_view(done("a", "b", incoming_context="from b")))


def test_a_blocked_step_is_shown_as_blocked_with_its_reason():
    shown = step_view(blocked("a"))
    assert shown["status"] == "BLOCKED"
    assert shown["clarity_reason"] == "what is meant?"
    assert "clarity_state" not in shown


def test_a_failed_step_is_shown_with_its_errors():
    assert step_view(failed("a"))["errors"] == ["it broke"]


def test_a_plan_is_shown_in_order_with_its_questions():
    plan = plan_of(done("a"), step("b", "a")).model_copy(
        update={"questions": (FollowUpQuestion(question="Which?", assumption="Green."),)}
    )
    shown = plan_view(plan)
    assert [s["step_id"] for s in shown["steps"]] == ["a", "b"]
    assert shown["questions"] == [{"question": "Which?", "assumption": "Green."}]
    assert "task" not in shown


def test_an_answered_question_is_shown_with_the_answer_in_place_of_the_assumption():
    question = FollowUpQuestion(question="Which?", assumption="Green.", answer="Black.")
    assert question_view(question) == {"question": "Which?", "answer": "Black."}


def test_the_outline_names_the_live_steps_and_marks_the_workers_own():
    replaced = done("old").model_copy(update={"status": "invalid", "replaced_by": "new"})
    assert outline(plan_of(done("a"), replaced, step("new", "a")), "new") == [
        {"step_id": "a", "description": "do a"},
        {"step_id": "new", "this_step": True},
    ]


def test_outputs_come_in_plan_order_with_their_state_and_users():
    steps = (done("a"), blocked("b"), step("c", "a", "b"))
    assert outputs_view(steps, {"b": "half", "a": "all"}) == [
        {"step_id": "a", "status": "complete", "used_by": ["c"], "step_output": "all"},
        {"step_id": "b", "status": "BLOCKED", "used_by": ["c"], "step_output": "half"},
    ]


def test_outputs_of_no_known_step_are_shown_last_and_none_is_lost():
    shown = outputs_view((done("a"),), {"x": "stray", "a": "all"})
    assert [(o["step_id"], o["status"]) for o in shown] == [("a", "complete"), ("x", None)]


def test_text_is_shown_as_it_is_and_anything_else_as_json():
    shown = outputs_view((), {"a": "{'no': json}", "b": {"tee": "žluťoučký", "cups": [1, None, True]}, "c": 2})
    assert [o["step_output"] for o in shown] == ["{'no': json}", '{"tee": "žluťoučký", "cups": [1, null, true]}', "2"]


def test_the_current_outputs_leave_out_what_was_replaced_and_keep_what_was_not():
    replaced = done("old").model_copy(update={"status": "invalid", "replaced_by": "new"})
    assert current_outputs((done("a"), replaced, blocked("b"), step("c"), failed("d"))) == {
        "a": "output of a",
        "b": "half of b",
    }


def test_the_answer_is_made_of_the_complete_steps_that_no_complete_step_needs():
    plan = plan_of(done("a"), done("b", "a"), done("c", "a"), step("d", "b", "c"))
    shown = answer_view(plan, current_outputs(plan.steps))
    assert shown["steps"] == ["b", "c"]
    assert shown["text"] == "output of b\n\noutput of c"
    assert shown["is_shown"]
    assert shown["pending"] == ["d"]


def test_an_answer_whose_outputs_are_not_shown_is_shown_in_full():
    assert not answer_view(plan_of(done("a")), {})["is_shown"]
