import pytest

from aeon.domain.plan import Plan, PlanStep
from aeon.plan.deltas import apply_actions
from tests.plan.builders import (
    add,
    assert_refused_whole,
    blocked,
    chain,
    decompose,
    done,
    modify,
    plan_of,
    remove,
    replace,
    shape,
    step,
    subplan,
)


def test_substeps_stand_before_their_parent_which_waits_for_all_of_them() -> None:
    result = apply_actions(
        chain(), [decompose("b")], subplans=subplan("b", step("x"), step("y", "x"), step("z"))
    )
    assert shape(result.plan) == {
        "a": (),
        "b.x": ("a",),
        "b.y": ("b.x",),
        "b.z": ("a",),
        "b": ("a", "b.x", "b.y", "b.z"),
        "c": ("b",),
    }
    assert {one.parent_step_id for one in result.plan.steps if "." in one.step_id} == {"b"}
    assert result.plan.step("b").status == "pending"


def test_substeps_may_be_given_with_the_prefix() -> None:
    given = subplan("b", step("b.x"), step("y", "b.x"), step("b.z", "y"))
    result = apply_actions(chain(), [decompose("b")], subplans=given)
    assert shape(result.plan)["b.y"] == ("b.x",)
    assert shape(result.plan)["b.z"] == ("b.y",)


def test_a_substep_may_depend_on_a_step_of_the_plan_and_inherits_as_well() -> None:
    plan = plan_of(done("a"), done("o"), step("b", "a"))
    result = apply_actions(plan, [decompose("b")], subplans=subplan("b", step("x", "o")))
    assert shape(result.plan)["b.x"] == ("a", "o")


def test_a_blocked_step_is_decomposed_and_pending_again_with_its_old_output() -> None:
    result = apply_actions(
        plan_of(blocked("a")), [decompose("a")], subplans=subplan("a", step("x"))
    )
    parent = result.plan.step("a")
    assert (parent.status, parent.step_output, parent.clarity_state) == (
        "pending",
        "half of a",
        None,
    )
    assert parent.dependencies == ("a.x",)


def test_a_subplan_beyond_the_nesting_limit_is_refused_for_manual_intervention() -> None:
    parents = {"s1": None, "s1.a": "s1", "s1.a.b": "s1.a"}
    plan = plan_of(*(step(step_id, parent_step_id=parent) for step_id, parent in parents.items()))
    given = subplan("s1.a.b", step("x"))
    refused = apply_actions(plan, [decompose("s1.a.b")], subplans=given, max_nesting_depth=2)
    assert_refused_whole(plan, refused, "level 3", "manual intervention")
    assert (
        apply_actions(plan, [decompose("s1.a.b")], subplans=given, max_nesting_depth=3).refused
        == ()
    )


def test_a_sixth_level_is_refused() -> None:
    plan = plan_of(step("s"))
    deepest = "s"
    for _ in range(5):
        result = apply_actions(plan, [decompose(deepest)], subplans=subplan(deepest, step("x")))
        plan, deepest = result.plan, f"{deepest}.x"
        assert result.refused == ()
    assert_refused_whole(
        plan,
        apply_actions(plan, [decompose(deepest)], subplans=subplan(deepest, step("x"))),
        "level 6",
    )


def test_a_subplan_that_was_not_made_or_is_anothers_is_refused() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [decompose("b")]), "no subplan")
    other = {"b": subplan("c", step("x"))["c"]}
    assert_refused_whole(
        plan, apply_actions(plan, [decompose("b")], subplans=other), "there is no subplan for step"
    )


@pytest.mark.parametrize(
    ("substeps", "word"),
    [
        ((step("x"), step("b.x")), "an id twice"),
        ((step("x", "x"),), "itself"),
        ((step("x", "b"),), "close a loop"),
        ((step("x", "nowhere"),), "'nowhere'"),
        ((step("x", "c"),), "close a loop"),
        ((step("x", "y"), step("y", "x")), "close a loop"),
    ],
)
def test_a_subplan_with_a_broken_structure_is_refused_whole(
    substeps: tuple[PlanStep, ...], word: str
) -> None:
    plan = chain()
    assert_refused_whole(
        plan, apply_actions(plan, [decompose("b")], subplans=subplan("b", *substeps)), word
    )


def test_a_second_subplan_of_a_step_needs_new_ids() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert_refused_whole(
        plan,
        apply_actions(plan, [decompose("b")], subplans=subplan("b", step("x"))),
        "'b.x' is taken",
    )


def test_a_step_is_modified_and_decomposed_in_one_refinement() -> None:
    actions = [decompose("c"), modify("c", "a")]
    result = apply_actions(chain(), actions, subplans=subplan("c", step("x")))
    assert result.refused == ()
    assert shape(result.plan)["c.x"] == ("a",)
    assert shape(result.plan)["c"] == ("a", "c.x")


def test_an_added_step_is_decomposed_in_the_same_refinement() -> None:
    result = apply_actions(
        chain(), [decompose("d"), add("d", "c")], subplans=subplan("d", step("x"))
    )
    assert shape(result.plan) == {
        "a": (),
        "b": ("a",),
        "c": ("b",),
        "d.x": ("c",),
        "d": ("c", "d.x"),
    }


def test_a_modified_parent_still_waits_for_its_substeps() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert shape(apply_actions(plan, [modify("b", "a")]).plan)["b"] == ("a", "b.x")


def test_a_modified_parent_may_go_on_without_a_failed_substep() -> None:
    plan = plan_of(
        done("a"), step("b.x", "a", status="failed", parent_step_id="b"), step("b", "a", "b.x")
    )
    assert shape(apply_actions(plan, [modify("b", "a")]).plan)["b"] == ("a",)


def test_the_substeps_of_a_removed_step_move_up() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    result = apply_actions(plan, [remove("b")]).plan
    assert shape(result) == {"a": (), "b.x": ("a",), "c": ("a", "b.x")}
    assert result.step("b.x").parent_step_id is None


def parents_of_subplans(plan: Plan) -> list[str]:
    return [each.parent_step_id for each in plan.subplans]


def test_the_subplan_of_a_removed_step_goes_with_it() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert parents_of_subplans(plan) == ["b"]
    assert parents_of_subplans(apply_actions(plan, [remove("b")]).plan) == []


def test_the_subplan_of_a_replaced_pending_step_is_that_of_the_new_one() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert parents_of_subplans(apply_actions(plan, [replace("b", "n", "a")]).plan) == ["n"]


def test_the_subplan_of_a_removed_step_stays_while_an_executed_substep_is_of_it() -> None:
    plan = plan_of(done("p.x", parent_step_id="p"), step("p", "p.x"), step("c", "p"))
    origin = subplan("p", step("x"))["p"].origin
    result = apply_actions(plan.model_copy(update={"subplans": (origin,)}), [remove("p")]).plan
    assert parents_of_subplans(result) == ["p"]


def test_the_substeps_of_a_replaced_pending_step_belong_to_the_new_one() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    result = apply_actions(plan, [replace("b", "n", "a")]).plan
    assert result.step("b.x").parent_step_id == "n"
    assert shape(result)["n"] == ("a", "b.x")


def test_an_executed_substep_of_a_removed_step_is_not_touched() -> None:
    plan = plan_of(done("p.x", parent_step_id="p"), step("p", "p.x"), step("c", "p"))
    result = apply_actions(plan, [remove("p")]).plan
    assert result.step("p.x") == plan.step("p.x").model_copy(update={"total_steps": 2})
    assert shape(result) == {"p.x": (), "c": ("p.x",)}


def test_a_substep_may_have_the_name_of_its_parent() -> None:
    result = apply_actions(
        chain(), [decompose("b")], subplans=subplan("b", step("b"), step("x", "b"))
    )
    assert shape(result.plan)["b.x"] == ("b.b",)


def test_substeps_and_what_stands_for_a_step_are_shown_the_inputs_that_it_was() -> None:
    plan = plan_of(step("a", inputs=("map",)), step("b", "a", inputs=()), step("c", "b"))
    actions = [decompose("a"), replace("b", "b2", "a"), modify("c"), add("d", "c")]
    result = apply_actions(plan, actions, subplans=subplan("a", step("x")))
    assert {one.step_id: one.inputs for one in result.plan.steps} == {
        "a.x": ("map",),
        "a": ("map",),
        "b2": (),
        "c": None,
        "d": None,
    }
    assert apply_actions(plan, [modify("a")]).plan.step("a").inputs == ("map",)
