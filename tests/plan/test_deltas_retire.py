import pytest

from aeon.domain.plan import PlanStep
from aeon.domain.refinement import RefinementAction
from aeon.plan.deltas import apply_actions
from tests.plan.builders import (
    action,
    add,
    assert_refused_whole,
    blocked,
    chain,
    decompose,
    done,
    failed,
    mark_invalid,
    modify,
    plan_of,
    remove,
    replace,
    shape,
    step,
    subplan,
)


def test_the_dependents_of_a_removed_step_inherit_its_dependencies_in_its_place() -> None:
    plan = plan_of(step("a"), step("b"), step("x", "a", "b"), step("z"), step("c", "z", "x", "b"))
    result = apply_actions(plan, [remove("x")])
    assert shape(result.plan)["c"] == ("z", "a", "b")
    assert [(c.step_id, c.after is None) for c in result.changes] == [("c", False), ("x", True)]


def test_a_chain_of_removed_steps_is_inherited_through() -> None:
    plan = plan_of(step("a"), step("b", "a"), step("c", "b"), step("d", "c"))
    assert shape(apply_actions(plan, [remove("c"), remove("b")]).plan) == {"a": (), "d": ("a",)}


def test_a_step_that_asks_for_a_removed_one_inherits_too() -> None:
    assert shape(apply_actions(chain(), [add("d", "b"), remove("b")]).plan) == {
        "a": (),
        "c": ("a",),
        "d": ("a",),
    }


def test_a_blocked_step_is_not_removed() -> None:
    plan = plan_of(blocked("a"))
    assert_refused_whole(plan, apply_actions(plan, [remove("a")]), "BLOCKED")


def test_a_pending_step_that_an_executed_one_depends_on_stays() -> None:
    plan = plan_of(step("a"), done("b", "a"))
    assert_refused_whole(plan, apply_actions(plan, [remove("a")]), "executed")
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "x")]), "executed")


def test_a_complete_step_is_replaced_under_a_new_id_kept_invalid_and_its_pending_dependents_rewired() -> (
    None
):
    plan = plan_of(done("a"), done("b", "a"), step("c", "a"), step("d", "c", "a"))
    result = apply_actions(plan, [replace("a", "a2")])
    assert shape(result.plan) == {"a": (), "a2": (), "b": ("a",), "c": ("a2",), "d": ("c", "a2")}
    old = result.plan.step("a")
    assert (old.status, old.replaced_by, old.step_output, old.clarity_state) == (
        "invalid",
        "a2",
        "output of a",
        "CLEAR",
    )
    assert result.plan.step("b").model_copy(
        update={"step_index": 2, "total_steps": 4}
    ) == plan.step("b")


@pytest.mark.parametrize("executed", [done("a"), failed("a")])
def test_an_executed_step_cannot_be_replaced_under_its_own_id(executed: PlanStep) -> None:
    plan = plan_of(executed)
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a")]), "new id")


def test_a_pending_step_may_be_replaced_under_its_own_id() -> None:
    made = apply_actions(chain(), [replace("b", "b", "a", tool="search")]).plan
    assert shape(made) == shape(chain())
    assert made.step("b").tool == "search"


def test_a_blocked_step_replaced_under_its_own_id_is_tried_again_with_its_old_output() -> None:
    made = apply_actions(plan_of(blocked("a")), [replace("a", "a")]).plan.step("a")
    assert (made.status, made.step_output, made.clarity_state) == ("pending", "half of a", None)


def test_a_pending_step_replaced_under_a_new_id_disappears() -> None:
    result = apply_actions(chain(), [replace("b", "b2", "a")])
    assert shape(result.plan) == {"a": (), "b2": ("a",), "c": ("b2",)}


def test_a_blocked_step_replaced_under_a_new_id_stays_with_its_output_and_is_blocked_no_more() -> (
    None
):
    result = apply_actions(plan_of(blocked("a"), step("b", "a")), [replace("a", "a2")])
    old = result.plan.step("a")
    assert (old.status, old.replaced_by, old.step_output, old.blocked) == (
        "invalid",
        "a2",
        "half of a",
        False,
    )
    assert shape(result.plan)["b"] == ("a2",)


def test_an_invalid_step_can_still_be_replaced_once() -> None:
    plan = apply_actions(chain(), [mark_invalid("a")]).plan
    replaced = apply_actions(plan, [replace("a", "a2")]).plan
    assert replaced.step("a").replaced_by == "a2"
    assert_refused_whole(
        replaced, apply_actions(replaced, [replace("a", "a3")]), "replaced by 'a2'", "'a2' instead"
    )


def test_when_a_replacement_is_itself_replaced_the_first_step_points_to_the_last() -> None:
    plan = apply_actions(chain(), [replace("a", "a2")]).plan
    assert apply_actions(plan, [replace("a2", "a3")]).plan.step("a").replaced_by == "a3"


def test_a_replacement_cannot_depend_on_what_it_replaces() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a2", "a")]), "depends on itself")


def test_a_replacement_needs_an_id_nobody_has() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "c")]), "'c' is taken")


def test_a_replaced_substep_hands_its_parent_on_and_the_parent_waits_for_the_new_one() -> None:
    plan = plan_of(done("p.x", parent_step_id="p"), step("p", "p.x"))
    result = apply_actions(plan, [replace("p.x", "p.y")]).plan
    assert result.step("p.y").parent_step_id == "p"
    assert result.step("p").dependencies == ("p.y",)


@pytest.mark.parametrize("executed", [done("a"), failed("a")])
def test_an_executed_step_in_conflict_is_marked_invalid_and_keeps_what_it_gave(
    executed: PlanStep,
) -> None:
    plan = plan_of(executed, step("b", "a"))
    result = apply_actions(plan, [mark_invalid("a")])
    errors = (*executed.errors, "marked invalid: why")
    assert result.plan.step("a") == plan.step("a").model_copy(
        update={"status": "invalid", "errors": errors}
    )
    assert not result.plan.step("a").blocked
    assert result.plan.step("b") is plan.step("b")


@pytest.mark.parametrize(
    "other", [step("a"), blocked("a"), step("a", status="invalid"), step("a", status="running")]
)
def test_only_executed_steps_are_marked_invalid(other: PlanStep) -> None:
    plan = plan_of(other)
    assert_refused_whole(plan, apply_actions(plan, [mark_invalid("a")]), "'a' is")


@pytest.mark.parametrize(
    "actions", [[mark_invalid("a"), replace("a", "a2")], [replace("a", "a2"), mark_invalid("a")]]
)
def test_marking_invalid_and_replacing_go_together(actions: list[RefinementAction]) -> None:
    result = apply_actions(chain(), actions)
    assert result.refused == ()
    assert (result.plan.step("a").status, result.plan.step("a").replaced_by) == ("invalid", "a2")
    assert shape(result.plan)["b"] == ("a2",)


@pytest.mark.parametrize("flag", [True, False])
def test_a_reported_inconsistency_neither_widens_nor_narrows_what_is_allowed(flag: bool) -> None:
    plan = chain()
    executed = apply_actions(plan, [action("MODIFY", "a", step("a"), inconsistency_detected=flag)])
    assert_refused_whole(plan, executed, "complete")
    pending = apply_actions(plan, [action("MODIFY", "b", step("b"), inconsistency_detected=flag)])
    retired = apply_actions(plan, [action("STEP_MARK_INVALID", "a", inconsistency_detected=flag)])
    assert pending.refused == retired.refused == ()


def test_a_replacement_takes_the_place_of_what_it_replaces() -> None:
    plan = plan_of(step("a"), step("b"), step("c"))
    assert list(shape(apply_actions(plan, [replace("b", "b2")]).plan)) == ["a", "b2", "c"]


def test_a_replacement_that_is_later_made_to_depend_on_what_it_replaced_would_depend_on_itself() -> (
    None
):
    plan = apply_actions(chain(), [replace("a", "a2")]).plan
    assert_refused_whole(plan, apply_actions(plan, [modify("a2", "a")]), "depends on itself")


def test_a_blocked_dependent_is_left_as_it_was_executed() -> None:
    plan = plan_of(done("a"), blocked("b", "a"))
    result = apply_actions(plan, [replace("a", "a2")]).plan
    assert result.step("b").dependencies == ("a",)
    again = apply_actions(result, [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert shape(again) == {"a": (), "a2": (), "b.x": ("a2",), "b": ("a2", "b.x")}
