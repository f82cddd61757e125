"""What prompts are shown of plans, steps, outputs and memory."""

from __future__ import annotations

from aeon.domain.graph import current_outputs
from aeon.domain.plan import FollowUpQuestion
from aeon.plan.views import answer_view, find_drafts, outline_view, outputs_view, plan_view
from tests.plan.builders import blocked, done, failed, issue_at, plan_of, step

HIDDEN = {"step_output", "incoming_context", "total_steps", "agent", "incomplete"}


def test_a_step_is_shown_without_its_output_and_without_what_says_nothing():
    shown = step("a", tool=None, provides=()).view
    assert shown == {
        "step_id": "a",
        "step_index": 1,
        "description": "do a",
        "status": "pending",
        "dependencies": [],
    }
    assert HIDDEN.isdisjoint(done("a", "b", incoming_context="from b").view)


def test_a_blocked_step_is_shown_as_blocked_with_its_reason():
    shown = blocked("a").view
    assert shown["status"] == "BLOCKED"
    assert shown["clarity_reason"] == "what is meant?"
    assert "clarity_state" not in shown


def test_a_failed_step_is_shown_with_its_errors():
    assert failed("a").view["errors"] == ["it broke"]


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
    plan = plan_of(done("a")).model_copy(update={"questions": (question,)})
    assert plan_view(plan)["questions"] == [{"question": "Which?", "answer": "Black."}]


def test_the_outline_names_the_live_steps():
    """Without the description of the step itself, which is shown as its goal."""
    replaced = done("old").model_copy(update={"status": "invalid", "replaced_by": "new"})
    plan = plan_of(done("a"), replaced, step("new", "a"))
    shown = outline_view(plan, plan.step("new"), 20)
    assert shown["outline"] == [
        {"step_id": "a", "description": "do a"},
        {"step_id": "new"},
    ]
    assert shown["steps_left_out"] == 0


def test_what_is_planned_and_how_far_it_is_are_apart():
    plan = plan_of(done("a", tool="echo"), blocked("b", "a"))
    shown = outline_view(plan, plan.step("b"), 20)
    assert shown["definitions"] == [
        {"step_id": "a", "description": "do a", "dependencies": [], "tool": "echo"},
        {"step_id": "b", "description": "do b", "dependencies": ["a"]},
    ]
    assert shown["state"] == [
        {"step_id": "a", "step_index": 1, "status": "complete", "clarity_state": "CLEAR"},
        {"step_id": "b", "step_index": 2, "status": "BLOCKED", "clarity_reason": "what is meant?"},
    ]


def test_of_a_large_plan_the_steps_around_the_workers_own_are_shown_in_plan_order():
    plan = plan_of(*(step(f"s{n}", *(["s0"] if n in (50, 99) else [])) for n in range(100)))
    shown = outline_view(plan, plan.step("s50"), 5)
    assert [each["step_id"] for each in shown["outline"]] == ["s0", "s48", "s49", "s50", "s51"]
    assert shown["steps_left_out"] == 95
    shown = outline_view(plan, plan.step("s0"), 3)
    assert [each["step_id"] for each in shown["definitions"]] == ["s0", "s50", "s99"]


def test_a_replaced_step_is_not_among_those_left_out_of_the_outline():
    replaced = [failed(f"old{n}").model_copy(update={"replaced_by": "s0"}) for n in range(5)]
    plan = plan_of(*replaced, *(step(f"s{n}") for n in range(4)))
    shown = outline_view(plan, plan.step("s3"), 4)
    assert [each["step_id"] for each in shown["outline"]] == ["s0", "s1", "s2", "s3"]
    assert shown["steps_left_out"] == 0
    assert outline_view(plan, plan.step("s3"), 3)["steps_left_out"] == 1


def test_where_the_definitions_are_shown_those_left_out_of_them_are_counted():
    plan = plan_of(step("s0", status="skipped"), *(step(f"s{n}") for n in range(1, 5)))
    shown = outline_view(plan, plan.step("s4"), 3, counts_definitions=True)
    assert [each["step_id"] for each in shown["definitions"]] == ["s2", "s3", "s4"]
    assert shown["steps_left_out"] == 2


def test_the_number_of_steps_is_a_bound_whatever_depends_on_them():
    plan = plan_of(*(step(f"s{n}") for n in range(30)), step("last", *(f"s{n}" for n in range(30))))
    shown = outline_view(plan, plan.step("last"), 4)
    assert [each["step_id"] for each in shown["outline"]] == ["s27", "s28", "s29", "last"]


def test_outputs_come_with_their_state_and_users_those_that_stay_as_they_are_first():
    steps = (blocked("b"), done("a"), step("c", "a", "b"))
    assert outputs_view(steps, {"b": "half", "a": "all"}, {"a": "a is done"}) == [
        {
            "step_id": "a",
            "status": "complete",
            "used_by": ["c"],
            "definition": {
                "step_id": "a",
                "description": "do a",
                "dependencies": [],
                "clarity_state": "CLEAR",
            },
            "step_output": "all",
            "handoff": "a is done",
            "is_draft": False,
        },
        {
            "step_id": "b",
            "status": "BLOCKED",
            "used_by": ["c"],
            "definition": None,
            "step_output": "half",
            "handoff": None,
            "is_draft": False,
        },
    ]


def test_a_later_output_is_shown_after_the_earlier_ones():
    """Steps of one layer are carried out together, whatever their order in the plan."""
    before = outputs_view((done("a"), step("b", "a"), done("c")), {"a": "1", "c": "3"})
    after = outputs_view((done("a"), done("b", "a"), done("c")), {"a": "1", "b": "2", "c": "3"})
    assert [output["step_id"] for output in after] == ["a", "c", "b"]
    assert [output["definition"] for output in after[:2]] == [
        output["definition"] for output in before
    ]


def test_a_step_whose_output_is_shown_above_lacks_its_definition_in_the_plan():
    plan = plan_of(done("a"), step("b", "a"))
    assert plan_view(plan)["states"] == plan_view(plan)["steps"]
    assert plan_view(plan, {"a": "all"})["states"] == [
        {"step_id": "a", "step_index": 1, "status": "complete", "used_by": ["b"]},
        plan_view(plan)["steps"][1],
    ]


def test_outputs_of_no_known_step_are_shown_last_and_none_is_lost():
    shown = outputs_view((done("a"),), {"x": "stray", "a": "all"})
    assert [(o["step_id"], o["status"]) for o in shown] == [("a", "complete"), ("x", None)]


def test_text_is_shown_as_it_is_and_anything_else_as_json():
    shown = outputs_view(
        (), {"a": "{'no': json}", "b": {"tee": "žluťoučký", "cups": [1, None, True]}, "c": 2}
    )
    assert [o["step_output"] for o in shown] == [
        "{'no': json}",
        '{"tee": "žluťoučký", "cups": [1, null, true]}',
        "2",
    ]


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


def test_drafts_of_a_finished_plan_are_those_used_outputs_that_no_issue_is_about():
    steps = (done("a"), done("b", "a"), done("c", "a", "b"))
    assert find_drafts(steps, ()) == {"a", "b"}
    assert find_drafts(steps, [issue_at("b")]) == {"a"}


def test_without_an_end_or_with_an_issue_of_no_step_nothing_is_a_draft():
    assert not find_drafts((done("a"), step("b", "a")), ())
    assert not find_drafts((done("a"), blocked("b", "a")), ())
    assert not find_drafts((done("a"), done("b", "a")), [issue_at(None)])
