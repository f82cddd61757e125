"""A step's states when it is carried out (data model, State Transitions)."""

from __future__ import annotations

import pytest

from aeon.domain.history import StepResult
from aeon.plan.transitions import (
    ContextPart,
    abandon_step,
    collect_incoming_context,
    cut_off,
    everything_before,
    fail_step,
    finish_step,
    start_step,
)
from tests.plan.builders import blocked, done, plan_of, step
from tests.plan.builders import failed as failed_step


def result(clarity: str = "CLEAR") -> StepResult:
    return StepResult(
        step_id="a",
        step_output="tea",
        clarity_state=clarity,
        clarity_reason="because",
        handoff="hot",
    )


def test_a_started_step_runs_with_its_context_and_is_no_longer_incomplete():
    begun = start_step(abandon_step(step("a")), "from b")
    assert (begun.status, begun.incoming_context, begun.incomplete) == ("running", "from b", False)


@pytest.mark.parametrize(
    ("clarity", "status"),
    [("CLEAR", "complete"), ("PARTIALLY_CLEAR", "complete"), ("BLOCKED", "invalid")],
)
def test_clarity_decides_whether_a_step_is_complete_and_its_output_is_kept(
    clarity: str, status: str
):
    ended = finish_step(start_step(step("a"), ""), result(clarity))
    assert (ended.status, ended.clarity_state, ended.step_output, ended.clarity_reason) == (
        status,
        clarity,
        "tea",
        "because",
    )
    assert ended.blocked == (clarity == "BLOCKED")


def test_a_failed_step_keeps_every_reason():
    ended = fail_step(fail_step(step("a"), "first"), "second")
    assert (ended.status, ended.errors) == ("failed", ("first", "second"))


def test_an_abandoned_step_is_pending_again_and_marked_incomplete():
    left = abandon_step(start_step(step("a"), ""))
    assert (left.status, left.incomplete) == ("pending", True)


def test_a_pass_cut_off_marks_what_ran_or_could_have_run_and_nothing_else():
    plan = plan_of(
        done("a"),
        step("b", status="running"),
        step("c", "a"),
        step("d", "b"),
        failed_step("e"),
        blocked("f"),
    )
    cut = cut_off(plan)
    assert {s.step_id: (s.status, s.incomplete) for s in cut.steps} == {
        "a": ("complete", False),
        "b": ("pending", True),
        "c": ("pending", True),
        "d": ("pending", False),
        "e": ("failed", False),
        "f": ("invalid", False),
    }
    assert cut.steps[0] is plan.steps[0]


def test_the_context_is_outputs_and_hand_offs_of_the_dependencies_in_step_order():
    plan = plan_of(done("a"), done("b"), done("x"), step("c", "b", "a"))
    results = {
        "a": StepResult(step_id="a", step_output="tea", handoff="hot"),
        "b": StepResult(step_id="b", step_output="milk"),
        "x": StepResult(step_id="x", step_output="unrelated"),
    }
    assert collect_incoming_context(plan, plan.step("c"), results) == (
        ContextPart("output", "a", "tea"),
        ContextPart("handoff", "a", "hot"),
        ContextPart("output", "b", "milk"),
    )


def test_context_is_shared_that_other_steps_are_given_too():
    plan = plan_of(done("a"), done("b"), step("c", "a"), step("d", "a", "b"), step("e", "c", "d"))
    results = {name: StepResult(step_id=name, step_output="text") for name in ("a", "b")}
    parts = collect_incoming_context(plan, plan.step("d"), results)
    assert {part.step_id: part.is_shared for part in parts} == {"a": True, "b": False}


def test_the_final_step_shares_its_context_with_no_other():
    plan = plan_of(done("a"), done("b", "a"), step("c", "a", "b"))
    results = {"a": StepResult(step_id="a", step_output="text")}
    [part] = collect_incoming_context(plan, plan.step("c"), results)
    assert not part.is_shared


def test_in_core_mode_later_steps_share_the_context_of_all_but_the_last():
    plan = plan_of(done("a"), step("b"), step("c"))
    results = {"a": StepResult(step_id="a", step_output="text")}
    for name, is_shared in (("b", True), ("c", False)):
        [part] = everything_before(plan, plan.step(name), results)
        assert part.is_shared is is_shared


def test_the_context_of_core_mode_has_hand_offs_errors_and_what_is_blocked():
    stuck = blocked("b").model_copy(update={"clarity_reason": "no price"})
    plan = plan_of(done("a"), stuck, failed_step("c"), step("d"))
    results = {
        "a": StepResult(step_id="a", step_output="tea", handoff="hot"),
        "b": StepResult(step_id="b", step_output="a beginning", clarity_state="BLOCKED"),
        "c": StepResult(step_id="c", error="no kettle"),
    }
    parts = everything_before(plan, plan.step("d"), results)
    assert [(part.kind, part.text, part.reason) for part in parts] == [
        ("output", "tea", ""),
        ("handoff", "hot", ""),
        ("blocked", "a beginning", "no price"),
        ("error", "no kettle", ""),
    ]


def test_there_is_no_context_without_dependencies_or_before_their_results():
    plan = plan_of(step("a"), step("b", "a"))
    assert collect_incoming_context(plan, plan.step("a"), {}) == ()
    assert collect_incoming_context(plan, plan.step("b"), {}) == ()


def test_no_transition_changes_the_step_it_is_given():
    before = step("a")
    (
        start_step(before, "x"),
        finish_step(before, result()),
        fail_step(before, "y"),
        abandon_step(before),
    )
    assert before == step("a")
