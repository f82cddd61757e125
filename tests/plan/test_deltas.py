from typing import get_args

import pytest

from aeon.domain.plan import PlanStep
from aeon.domain.refinement import ACTIONS, ActionType, RefinementAction
from aeon.plan.deltas import apply_actions
from aeon.plan.draft import EFFECTS
from tests.plan.builders import (
    action,
    add,
    assert_refused_whole,
    blocked,
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


def test_every_type_of_action_has_its_rule_and_its_effect() -> None:
    assert tuple(ACTIONS) == tuple(EFFECTS) == get_args(ActionType)


def test_add_appends_a_pending_step_and_renumbers() -> None:
    plan = chain()
    result = apply_actions(plan, [add("d", "a")])
    assert shape(result.plan) == {"a": (), "b": ("a",), "c": ("b",), "d": ("a",)}
    assert [(one.step_index, one.total_steps) for one in result.plan.steps] == [
        (1, 4),
        (2, 4),
        (3, 4),
        (4, 4),
    ]
    assert [(change.step_id, change.before) for change in result.changes] == [("d", None)]
    assert result.changes[0].after is result.plan.step("d")


def test_add_takes_only_what_a_planner_may_say() -> None:
    new = step(
        "d",
        "a",
        status="complete",
        step_output="made up",
        clarity_state="CLEAR",
        errors=("made up",),
        parent_step_id="a",
        replaced_by="c",
        incomplete=True,
        tool="search",
        arguments={"q": 1},
        provides=("x",),
        handoff_to_next="say x",
        step_index=3,
        total_steps=9,
    )
    made = apply_actions(chain(), [action("ADD", None, new)]).plan.step("d")
    assert (made.tool, made.arguments, made.provides, made.handoff_to_next) == (
        "search",
        {"q": 1},
        ("x",),
        "say x",
    )
    assert (made.status, made.step_output, made.clarity_state, made.errors) == (
        "pending",
        None,
        None,
        (),
    )
    assert (made.parent_step_id, made.replaced_by, made.incomplete) == (None, None, False)
    assert (made.step_index, made.total_steps) == (4, 4)


@pytest.mark.parametrize("taken", ["a", "b"])
def test_add_needs_a_new_id(taken: str) -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [add(taken)]), f"'{taken}' is taken")


def test_adds_may_refer_forward_to_later_adds() -> None:
    result = apply_actions(chain(), [add("x", "y"), add("y", "a")])
    assert result.refused == ()
    assert list(shape(result.plan)) == ["a", "b", "c", "y", "x"]


def test_an_add_that_depends_on_an_unknown_step_is_refused_and_so_are_those_that_depend_on_it() -> (
    None
):
    result = apply_actions(
        chain(), [add("x", "y"), add("y", "z"), add("z", "nowhere"), add("w", "a")]
    )
    assert [one.fragment for one in result.accepted] == ["w"]
    for reason, missing in zip(reasons(result), ("'y'", "'z'", "'nowhere'"), strict=True):
        assert f"depends on {missing}" in reason
    assert list(shape(result.plan)) == ["a", "b", "c", "w"]


def test_of_two_adds_with_one_id_the_first_is_kept() -> None:
    result = apply_actions(chain(), [add("x", "a"), add("x", "b")])
    assert shape(result.plan)["x"] == ("a",)
    assert "taken" in reasons(result)[0]


def test_a_refused_add_does_not_take_its_id_from_a_later_one() -> None:
    result = apply_actions(chain(), [add("x", "nowhere"), add("x", "b")])
    assert shape(result.plan)["x"] == ("b",)
    assert len(result.refused) == 1


def test_an_added_step_comes_before_the_step_that_is_made_to_wait_for_it() -> None:
    result = apply_actions(chain(), [add("x", "b"), modify("c", "b", "x")])
    assert shape(result.plan) == {"a": (), "b": ("a",), "x": ("b",), "c": ("b", "x")}


def test_an_added_step_cannot_depend_on_itself() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [add("x", "x")]), "depends on itself")


def test_a_blank_description_is_refused() -> None:
    plan = chain()
    blank = PlanStep(step_id="x", description=" ")
    assert_refused_whole(plan, apply_actions(plan, [action("ADD", None, blank)]), "no description")
    assert_refused_whole(
        plan, apply_actions(plan, [action("MODIFY", "b", blank)]), "no description"
    )


def test_modify_keeps_the_id_and_the_place_and_takes_the_content() -> None:
    other_id = PlanStep(
        step_id="something else", description="better", dependencies=("a",), provides=("x",)
    )
    result = apply_actions(chain(), [action("MODIFY", "b", other_id)])
    made = result.plan.step("b")
    assert (made.description, made.dependencies, made.provides, made.step_index) == (
        "better",
        ("a",),
        ("x",),
        2,
    )


def test_modify_ignores_what_the_program_owns() -> None:
    claimed = modify(
        "b",
        "a",
        status="complete",
        step_output="made up",
        errors=("x",),
        parent_step_id="c",
        step_index=1,
    )
    made = apply_actions(chain(), [claimed]).plan.step("b")
    assert (made.status, made.step_output, made.errors, made.parent_step_id) == (
        "pending",
        None,
        (),
        None,
    )
    assert made.step_index == 2


def test_modify_makes_a_blocked_step_pending_and_keeps_its_output_for_the_retry() -> None:
    result = apply_actions(plan_of(done("a"), blocked("b", "a")), [modify("b", "a")])
    made = result.plan.step("b")
    assert (made.status, made.step_output) == ("pending", "half of b")
    assert (made.clarity_state, made.clarity_reason, made.description) == (
        None,
        "what is meant?",
        "done better",
    )


@pytest.mark.parametrize("status", ["complete", "failed", "running"])
@pytest.mark.parametrize("kind", ["MODIFY", "REMOVE", "SUBPLAN_CREATE"])
def test_a_finished_or_running_step_is_not_changed(kind: str, status: str) -> None:
    plan = plan_of(step("a", status=status, step_output="kept"), step("b", "a"))
    result = apply_actions(plan, [action(kind, "a", step("a"))], subplans=subplan("a", step("x")))
    assert_refused_whole(plan, result, f"'a' is {status}")


def test_a_once_complete_invalid_step_never_revives() -> None:
    plan = plan_of(step("a", status="invalid", step_output="kept", clarity_state="CLEAR"))
    for one in (modify("a"), remove("a"), decompose("a"), replace("a", "a")):
        assert_refused_whole(
            plan, apply_actions(plan, [one], subplans=subplan("a", step("x"))), "'a' is invalid"
        )


@pytest.mark.parametrize(
    "one", [modify("?"), remove("?"), replace("?", "x"), mark_invalid("?"), decompose("?")]
)
def test_an_unknown_target_is_refused(one: RefinementAction) -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [one]), "no step '?'")


def test_modify_to_depend_on_an_unknown_step_or_itself_is_refused() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [modify("b", "?")]), "'?'")
    assert_refused_whole(plan, apply_actions(plan, [modify("b", "b")]), "depends on itself")


def test_a_modify_that_changes_nothing_is_accepted_and_changes_nothing() -> None:
    plan = chain()
    same = action("MODIFY", "b", plan.step("b"))
    result = apply_actions(plan, [same])
    assert result.accepted == (same,)
    assert result.plan is plan
    assert result.changes == ()


def test_a_modify_that_names_an_earlier_replaced_step_means_its_replacement() -> None:
    plan = plan_of(step("a", status="invalid", replaced_by="a2"), done("a2"), step("b"))
    assert shape(apply_actions(plan, [modify("b", "a", "a2")]).plan)["b"] == ("a2",)
