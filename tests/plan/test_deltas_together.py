import pytest

from aeon.domain.errors import PlanError
from aeon.domain.plan import Plan, Subplan
from aeon.domain.refinement import RefinementAction
from aeon.plan.deltas import DeltaResult, apply_actions
from tests.plan.builders import (
    add,
    assert_refused_whole,
    chain,
    decompose,
    done,
    mark_invalid,
    modify,
    plan_of,
    reasons,
    remove,
    replace,
    shape,
    step,
    subplan,
)


def test_the_last_action_that_closes_a_cycle_is_refused() -> None:
    plan = plan_of(step("a"), step("b"), step("c"))
    result = apply_actions(plan, [modify("a", "b"), modify("b", "c"), modify("c", "a")])
    assert [one.fragment for one in result.accepted] == ["a", "b"]
    assert "a depends on b, b depends on c, c depends on a" in reasons(result)[0]
    assert shape(result.plan) == {"c": (), "b": ("c",), "a": ("b",)}


def test_a_later_action_that_has_no_part_in_the_cycle_is_not_refused_for_it() -> None:
    result = apply_actions(chain(), [modify("b", "a", "c"), add("x", "c")])
    assert [one.fragment for one in result.accepted] == ["x"]


def test_references_are_looked_at_together_so_an_edge_may_be_turned_round() -> None:
    plan = plan_of(step("a"), step("b", "a"))
    result = apply_actions(plan, [modify("a", "b"), modify("b")])
    assert result.refused == ()
    assert shape(result.plan) == {"b": (), "a": ("b",)}


def test_a_cycle_through_rewiring_is_the_replacements_fault() -> None:
    plan = plan_of(done("a"), step("b", "a"))
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a2", "b")]), "close a loop")


def test_several_cycles_each_lose_one_action() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("d"))
    result = apply_actions(
        plan, [modify("a", "b"), modify("c", "d"), modify("b", "a"), modify("d", "c")]
    )
    assert [one.fragment for one in result.accepted] == ["a", "c"]


def test_a_plan_that_has_a_cycle_of_its_own_is_an_error() -> None:
    with pytest.raises(PlanError, match="the plan has a loop"):
        apply_actions(plan_of(step("a", "b"), step("b", "a")), [add("x")])


@pytest.mark.parametrize(
    "second", [modify("b", "a"), remove("b"), replace("b", "n"), replace("b", "b")]
)
@pytest.mark.parametrize("first", [modify("b", "a", tool="search"), remove("b"), replace("b", "m")])
def test_of_two_changes_to_one_step_the_first_stands(
    first: RefinementAction, second: RefinementAction
) -> None:
    plan = chain()
    result = apply_actions(plan, [first, second])
    assert result.accepted == (first,)
    assert "already" in reasons(result)[0]
    assert result.plan == apply_actions(plan, [first]).plan


def test_a_mixed_refinement_is_refused_action_by_action_in_the_given_order() -> None:
    result = apply_actions(chain(), [modify("a"), add("x", "b"), remove("nope"), modify("c", "x")])
    assert [one.action.fragment for one in result.refused] == ["a", "nope"]
    assert [one.fragment for one in result.accepted] == ["x", "c"]


def test_too_many_steps_refuse_what_lengthens_the_plan_last_first() -> None:
    result = apply_actions(chain(), [add("x"), add("y"), modify("b", "a"), add("z")], max_steps=4)
    assert [one.fragment for one in result.accepted] == ["x", "b"]
    assert all("more steps than execution.max_steps" in reason for reason in reasons(result))


def test_a_plan_is_never_emptied() -> None:
    result = apply_actions(plan_of(step("a"), step("b", "a")), [remove("a"), remove("b")])
    assert [one.fragment for one in result.accepted] == ["a"]
    assert "no step would be left" in reasons(result)[0]
    assert shape(result.plan) == {"b": ()}


def test_a_removal_makes_room_for_an_addition() -> None:
    result = apply_actions(chain(), [add("x", "c"), remove("b")], max_steps=3)
    assert result.refused == ()
    assert list(shape(result.plan)) == ["a", "c", "x"]


def test_a_subplan_or_the_replacement_of_an_executed_step_counts_towards_the_limit() -> None:
    plan = chain()
    given = subplan("c", step("x"), step("y"))
    assert_refused_whole(
        plan, apply_actions(plan, [decompose("c")], subplans=given, max_steps=4), "more steps than"
    )
    assert_refused_whole(
        plan, apply_actions(plan, [replace("a", "a2")], max_steps=3), "more steps than"
    )
    assert apply_actions(plan, [replace("b", "b2", "a")], max_steps=3).refused == ()


def test_a_plan_already_too_long_can_still_be_changed() -> None:
    assert apply_actions(chain(), [modify("b", "a")], max_steps=2).refused == ()


def test_with_one_final_step_actions_are_refused_from_the_last_until_it_holds() -> None:
    result = apply_actions(
        chain(), [add("x", "a"), modify("c", "b", "x"), add("y", "a")], one_final_step=True
    )
    assert [one.fragment for one in result.accepted] == ["x", "c"]
    assert "exactly one step" in reasons(result)[0]


def test_replacing_the_final_step_keeps_one_final_step() -> None:
    plan = plan_of(done("a"), done("b"), done("c", "a", "b"))
    assert apply_actions(plan, [replace("c", "c2", "a", "b")], one_final_step=True).refused == ()
    assert_refused_whole(
        plan, apply_actions(plan, [mark_invalid("c")], one_final_step=True), "it would have 2: a, b"
    )


def test_without_actions_the_plan_is_returned() -> None:
    plan = plan_of(step("b", "a"), step("a"))
    result = apply_actions(plan, [])
    assert result.plan is plan
    assert result == DeltaResult(plan=plan)


def test_unchanged_steps_are_shared_unless_their_number_changes() -> None:
    plan = chain()
    result = apply_actions(plan, [modify("c", "b")]).plan
    assert result.step("a") is plan.step("a")
    assert result.step("b") is plan.step("b")
    longer = apply_actions(plan, [add("d")]).plan
    assert longer.step("a") == plan.step("a").model_copy(update={"total_steps": 4})


def test_what_belongs_to_the_plan_as_a_whole_is_kept() -> None:
    result = apply_actions(chain(), [add("d")]).plan
    assert (result.goal, result.task) == ("the goal", "the task")


def test_a_result_is_a_valid_plan_as_json_tells_it() -> None:
    result = apply_actions(
        chain(), [add("x"), replace("a", "a2"), decompose("c")], subplans=subplan("c", step("x"))
    )
    assert Plan.model_validate_json(result.plan.model_dump_json()) == result.plan


def test_subplans_are_read_only_inputs() -> None:
    given: dict[str, Subplan] = subplan("b", step("x"))
    before = {key: value.model_dump() for key, value in given.items()}
    apply_actions(chain(), [decompose("b")], subplans=given)
    assert {key: value.model_dump() for key, value in given.items()} == before


def test_restating_a_dependency_does_not_close_a_cycle() -> None:
    plan = plan_of(step("a"), step("b", "a"))
    result = apply_actions(plan, [modify("a", "b"), modify("b", "a")])
    assert [one.fragment for one in result.accepted] == ["b"]


def test_a_removal_is_not_blamed_for_a_cycle_through_the_removed_step() -> None:
    plan = plan_of(step("a"), step("x", "a"), step("c"))
    result = apply_actions(plan, [modify("a", "c"), modify("c", "x"), remove("x")])
    assert [one.fragment for one in result.accepted] == ["a", "x"]
    assert shape(result.plan) == {"c": (), "a": ("c",)}


def test_an_inherited_dependency_that_was_there_before_is_not_the_removals() -> None:
    plan = plan_of(step("a"), step("x", "a"), step("c", "a", "x"))
    result = apply_actions(plan, [modify("a", "c"), remove("x")])
    assert [one.fragment for one in result.accepted] == ["x"]


def test_a_subplan_is_not_blamed_for_a_cycle_its_parent_is_in_without_it() -> None:
    plan = plan_of(step("d"), step("p", "d"))
    result = apply_actions(
        plan, [modify("d", "p"), decompose("p")], subplans=subplan("p", step("x"))
    )
    assert [one.fragment for one in result.accepted] == ["p"]


def test_of_a_replacement_and_a_change_that_close_a_cycle_together_the_later_is_refused() -> None:
    plan = plan_of(done("a"), step("b"))
    actions = [replace("a", "a2", "b"), modify("b", "a")]
    assert [one.fragment for one in apply_actions(plan, actions).accepted] == ["a"]
    assert [one.fragment for one in apply_actions(plan, actions[::-1]).accepted] == ["b"]


def test_a_dependency_both_kept_and_inherited_counts_as_kept() -> None:
    plan = plan_of(step("a"), step("x", "a"), step("c", "a"))
    result = apply_actions(plan, [modify("a", "c"), modify("c", "a", "x"), remove("x")])
    assert [one.fragment for one in result.accepted] == ["c", "x"]


def test_a_subplan_that_closes_a_cycle_with_an_earlier_action_is_refused_and_what_needs_it_too() -> (
    None
):
    plan = plan_of(step("d"), step("p", "d"))
    actions = [modify("d", "p.x"), decompose("p")]
    assert apply_actions(plan, actions, subplans=subplan("p", step("x"))).accepted == ()
    assert apply_actions(plan, actions[::-1], subplans=subplan("p", step("x"))).accepted == (
        actions[1],
    )
