import pytest

from aeon.errors import PlanError
from aeon.plan.deltas import DeltaResult, apply_actions
from aeon.plan.models import Plan, PlanStep, Subplan

from .builders import (
    action,
    add,
    blocked,
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


def chain() -> Plan:
    """One complete step and two pending ones behind it."""
    return plan_of(done("a"), step("b", "a"), step("c", "b"))


def reasons(result: DeltaResult) -> list[str]:
    return [refused.reason for refused in result.refused]


def assert_refused_whole(plan: Plan, result: DeltaResult, *words: str) -> None:
    assert result.plan is plan
    assert result.accepted == ()
    assert result.changes == ()
    assert len(result.refused) == 1
    for word in words:
        assert word in result.refused[0].reason


def test_add_appends_a_pending_step_and_renumbers() -> None:
    plan = chain()
    result = apply_actions(plan, [add("d", "a")])
    assert shape(result.plan) == {"a": (), "b": ("a",), "c": ("b",), "d": ("a",)}
    assert [(one.step_index, one.total_steps) for one in result.plan.steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
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
    assert (made.tool, made.arguments, made.provides, made.handoff_to_next) == ("search", {"q": 1}, ("x",), "say x")
    assert (made.status, made.step_output, made.clarity_state, made.errors) == ("pending", None, None, ())
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


def test_an_add_that_depends_on_an_unknown_step_is_refused_and_so_are_those_that_depend_on_it() -> None:
    result = apply_actions(chain(), [add("x", "y"), add("y", "z"), add("z", "nowhere"), add("w", "a")])
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
    assert_refused_whole(plan, apply_actions(plan, [action("MODIFY", "b", blank)]), "no description")


def test_modify_keeps_the_id_and_the_place_and_takes_the_content() -> None:
    other_id = PlanStep(step_id="something else", description="better", dependencies=("a",), provides=("x",))
    result = apply_actions(chain(), [action("MODIFY", "b", other_id)])
    made = result.plan.step("b")
    assert (made.description, made.dependencies, made.provides, made.step_index) == ("better", ("a",), ("x",), 2)


def test_modify_ignores_what_the_program_owns() -> None:
    claimed = modify(
        "b", "a", status="complete", step_output="made up", errors=("x",), parent_step_id="c", step_index=1
    )
    made = apply_actions(chain(), [claimed]).plan.step("b")
    assert (made.status, made.step_output, made.errors, made.parent_step_id) == ("pending", None, (), None)
    assert made.step_index == 2


def test_modify_makes_a_blocked_step_pending_and_keeps_its_output_for_the_retry() -> None:
    result = apply_actions(plan_of(done("a"), blocked("b", "a")), [modify("b", "a")])
    made = result.plan.step("b")
    assert (made.status, made.step_output) == ("pending", "half of b")
    assert (made.clarity_state, made.clarity_reason, made.description) == (None, None, "done better")


@pytest.mark.parametrize("status", ["complete", "failed", "running"])
@pytest.mark.parametrize("kind", ["MODIFY", "REMOVE", "SUBPLAN_CREATE"])
def test_a_finished_or_running_step_is_not_changed(kind: str, status: str) -> None:
    plan = plan_of(step("a", status=status, step_output="kept"), step("b", "a"))
    result = apply_actions(plan, [action(kind, "a", step("a"))], subplans=subplan("a", step("x")))
    assert_refused_whole(plan, result, f"'a' is {status}")


def test_a_once_complete_invalid_step_never_revives() -> None:
    plan = plan_of(step("a", status="invalid", step_output="kept", clarity_state="CLEAR"))
    for one in (modify("a"), remove("a"), decompose("a"), replace("a", "a")):
        assert_refused_whole(plan, apply_actions(plan, [one], subplans=subplan("a", step("x"))), "'a' is invalid")


@pytest.mark.parametrize("one", [modify("?"), remove("?"), replace("?", "x"), mark_invalid("?"), decompose("?")])
def test_an_unknown_target_is_refused(one: object) -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [one]), "no step '?'")  # type: ignore[list-item]


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


def test_the_dependents_of_a_removed_step_inherit_its_dependencies_in_its_place() -> None:
    plan = plan_of(step("a"), step("b"), step("x", "a", "b"), step("z"), step("c", "z", "x", "b"))
    result = apply_actions(plan, [remove("x")])
    assert shape(result.plan)["c"] == ("z", "a", "b")
    assert [(c.step_id, c.after is None) for c in result.changes] == [("c", False), ("x", True)]


def test_a_chain_of_removed_steps_is_inherited_through() -> None:
    plan = plan_of(step("a"), step("b", "a"), step("c", "b"), step("d", "c"))
    assert shape(apply_actions(plan, [remove("c"), remove("b")]).plan) == {"a": (), "d": ("a",)}


def test_a_step_that_asks_for_a_removed_one_inherits_too() -> None:
    assert shape(apply_actions(chain(), [add("d", "b"), remove("b")]).plan) == {"a": (), "c": ("a",), "d": ("a",)}


def test_a_blocked_step_is_not_removed() -> None:
    plan = plan_of(blocked("a"))
    assert_refused_whole(plan, apply_actions(plan, [remove("a")]), "BLOCKED")


def test_a_pending_step_that_an_executed_one_depends_on_stays() -> None:
    plan = plan_of(step("a"), done("b", "a"))
    assert_refused_whole(plan, apply_actions(plan, [remove("a")]), "executed")
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "x")]), "executed")


def test_a_complete_step_is_replaced_under_a_new_id_kept_invalid_and_its_pending_dependents_rewired() -> None:
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
    assert result.plan.step("b").model_copy(update={"step_index": 2, "total_steps": 4}) == plan.step("b")


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


def test_a_blocked_step_replaced_under_a_new_id_stays_with_its_output_and_is_blocked_no_more() -> None:
    result = apply_actions(plan_of(blocked("a"), step("b", "a")), [replace("a", "a2")])
    old = result.plan.step("a")
    assert (old.status, old.replaced_by, old.step_output, old.blocked) == ("invalid", "a2", "half of a", False)
    assert shape(result.plan)["b"] == ("a2",)


def test_an_invalid_step_can_still_be_replaced_once() -> None:
    plan = apply_actions(chain(), [mark_invalid("a")]).plan
    replaced = apply_actions(plan, [replace("a", "a2")]).plan
    assert replaced.step("a").replaced_by == "a2"
    assert_refused_whole(replaced, apply_actions(replaced, [replace("a", "a3")]), "replaced by 'a2'", "'a2' instead")


def test_when_a_replacement_is_itself_replaced_the_first_step_points_to_the_last() -> None:
    plan = apply_actions(chain(), [replace("a", "a2")]).plan
    assert apply_actions(plan, [replace("a2", "a3")]).plan.step("a").replaced_by == "a3"


def test_a_replacement_cannot_depend_on_what_it_replaces() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a2", "a")]), "the step it replaces")


def test_a_replacement_needs_an_id_nobody_has() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "c")]), "'c' is taken")


def test_a_replaced_substep_hands_its_parent_on_and_the_parent_waits_for_the_new_one() -> None:
    plan = plan_of(done("p.x", parent_step_id="p"), step("p", "p.x"))
    result = apply_actions(plan, [replace("p.x", "p.y")]).plan
    assert result.step("p.y").parent_step_id == "p"
    assert result.step("p").dependencies == ("p.y",)


@pytest.mark.parametrize("executed", [done("a"), failed("a")])
def test_an_executed_step_in_conflict_is_marked_invalid_and_keeps_what_it_gave(executed: PlanStep) -> None:
    plan = plan_of(executed, step("b", "a"))
    result = apply_actions(plan, [mark_invalid("a")])
    assert result.plan.step("a") == plan.step("a").model_copy(update={"status": "invalid"})
    assert not result.plan.step("a").blocked
    assert result.plan.step("b") is plan.step("b")


@pytest.mark.parametrize("other", [step("a"), blocked("a"), step("a", status="invalid"), step("a", status="running")])
def test_only_executed_steps_are_marked_invalid(other: PlanStep) -> None:
    plan = plan_of(other)
    assert_refused_whole(plan, apply_actions(plan, [mark_invalid("a")]), "'a' is")


@pytest.mark.parametrize("actions", [[mark_invalid("a"), replace("a", "a2")], [replace("a", "a2"), mark_invalid("a")]])
def test_marking_invalid_and_replacing_go_together(actions: list) -> None:  # type: ignore[type-arg]
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


def test_substeps_stand_before_their_parent_which_waits_for_all_of_them() -> None:
    result = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"), step("y", "x"), step("z")))
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
    result = apply_actions(plan_of(blocked("a")), [decompose("a")], subplans=subplan("a", step("x")))
    parent = result.plan.step("a")
    assert (parent.status, parent.step_output, parent.clarity_state) == ("pending", "half of a", None)
    assert parent.dependencies == ("a.x",)


def test_a_subplan_beyond_the_nesting_limit_is_refused_for_manual_intervention() -> None:
    parents = {"s1": None, "s1.a": "s1", "s1.a.b": "s1.a"}
    plan = plan_of(*(step(step_id, parent_step_id=parent) for step_id, parent in parents.items()))
    given = subplan("s1.a.b", step("x"))
    refused = apply_actions(plan, [decompose("s1.a.b")], subplans=given, max_nesting_depth=2)
    assert_refused_whole(plan, refused, "level 3", "manual intervention")
    assert apply_actions(plan, [decompose("s1.a.b")], subplans=given, max_nesting_depth=3).refused == ()


def test_a_sixth_level_is_refused() -> None:
    plan = plan_of(step("s"))
    deepest = "s"
    for _ in range(5):
        result = apply_actions(plan, [decompose(deepest)], subplans=subplan(deepest, step("x")))
        plan, deepest = result.plan, f"{deepest}.x"
        assert result.refused == ()
    assert_refused_whole(
        plan, apply_actions(plan, [decompose(deepest)], subplans=subplan(deepest, step("x"))), "level 6"
    )


def test_a_subplan_that_was_not_made_or_is_anothers_is_refused() -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [decompose("b")]), "no subplan")
    other = {"b": subplan("c", step("x"))["c"]}
    assert_refused_whole(plan, apply_actions(plan, [decompose("b")], subplans=other), "belongs to step 'c'")


@pytest.mark.parametrize(
    ("substeps", "word"),
    [
        ((step("x"), step("b.x")), "2 times"),
        ((step("x", "x"),), "itself"),
        ((step("x", "b"),), "a part of"),
        ((step("x", "nowhere"),), "'nowhere'"),
        ((step("x", "c"),), "close a cycle"),
        ((step("x", "y"), step("y", "x")), "close a cycle"),
        ((PlanStep(step_id="x", description=" "),), "description"),
    ],
)
def test_a_subplan_with_a_broken_structure_is_refused_whole(substeps: tuple[PlanStep, ...], word: str) -> None:
    plan = chain()
    assert_refused_whole(plan, apply_actions(plan, [decompose("b")], subplans=subplan("b", *substeps)), word)


def test_a_second_subplan_of_a_step_needs_new_ids() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert_refused_whole(
        plan, apply_actions(plan, [decompose("b")], subplans=subplan("b", step("x"))), "'b.x' is taken"
    )


def test_a_step_is_modified_and_decomposed_in_one_refinement() -> None:
    actions = [decompose("c"), modify("c", "a")]
    result = apply_actions(chain(), actions, subplans=subplan("c", step("x")))
    assert result.refused == ()
    assert shape(result.plan)["c.x"] == ("a",)
    assert shape(result.plan)["c"] == ("a", "c.x")


def test_an_added_step_is_decomposed_in_the_same_refinement() -> None:
    result = apply_actions(chain(), [decompose("d"), add("d", "c")], subplans=subplan("d", step("x")))
    assert shape(result.plan) == {"a": (), "b": ("a",), "c": ("b",), "d.x": ("c",), "d": ("c", "d.x")}


def test_a_modified_parent_still_waits_for_its_substeps() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    assert shape(apply_actions(plan, [modify("b", "a")]).plan)["b"] == ("a", "b.x")


def test_a_modified_parent_may_go_on_without_a_failed_substep() -> None:
    plan = plan_of(done("a"), step("b.x", "a", status="failed", parent_step_id="b"), step("b", "a", "b.x"))
    assert shape(apply_actions(plan, [modify("b", "a")]).plan)["b"] == ("a",)


def test_the_substeps_of_a_removed_step_move_up() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    result = apply_actions(plan, [remove("b")]).plan
    assert shape(result) == {"a": (), "b.x": ("a",), "c": ("a", "b.x")}
    assert result.step("b.x").parent_step_id is None


def test_the_substeps_of_a_replaced_pending_step_belong_to_the_new_one() -> None:
    plan = apply_actions(chain(), [decompose("b")], subplans=subplan("b", step("x"))).plan
    result = apply_actions(plan, [replace("b", "n", "a")]).plan
    assert result.step("b.x").parent_step_id == "n"
    assert shape(result)["n"] == ("a", "b.x")


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
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a2", "b")]), "close a cycle")


def test_several_cycles_each_lose_one_action() -> None:
    plan = plan_of(step("a"), step("b"), step("c"), step("d"))
    result = apply_actions(plan, [modify("a", "b"), modify("c", "d"), modify("b", "a"), modify("d", "c")])
    assert [one.fragment for one in result.accepted] == ["a", "c"]


def test_a_plan_that_has_a_cycle_of_its_own_is_an_error() -> None:
    with pytest.raises(PlanError, match="the plan has a cycle"):
        apply_actions(plan_of(step("a", "b"), step("b", "a")), [add("x")])


@pytest.mark.parametrize("second", [modify("b", "a"), remove("b"), replace("b", "n"), replace("b", "b")])
@pytest.mark.parametrize("first", [modify("b", "a", tool="search"), remove("b"), replace("b", "m")])
def test_of_two_changes_to_one_step_the_first_stands(first: object, second: object) -> None:
    plan = chain()
    result = apply_actions(plan, [first, second])  # type: ignore[list-item]
    assert result.accepted == (first,)
    assert "already" in reasons(result)[0]
    assert result.plan == apply_actions(plan, [first]).plan  # type: ignore[list-item]


def test_a_mixed_refinement_is_refused_action_by_action_in_the_given_order() -> None:
    result = apply_actions(chain(), [modify("a"), add("x", "b"), remove("nope"), modify("c", "x")])
    assert [one.action.fragment for one in result.refused] == ["a", "nope"]
    assert [one.fragment for one in result.accepted] == ["x", "c"]


def test_too_many_steps_refuse_what_lengthens_the_plan_last_first() -> None:
    result = apply_actions(chain(), [add("x"), add("y"), modify("b", "a"), add("z")], max_steps=4)
    assert [one.fragment for one in result.accepted] == ["x", "b"]
    assert all("more than 4 steps" in reason for reason in reasons(result))


def test_a_removal_makes_room_for_an_addition() -> None:
    result = apply_actions(chain(), [add("x", "c"), remove("b")], max_steps=3)
    assert result.refused == ()
    assert list(shape(result.plan)) == ["a", "c", "x"]


def test_a_subplan_or_the_replacement_of_an_executed_step_counts_towards_the_limit() -> None:
    plan = chain()
    given = subplan("c", step("x"), step("y"))
    assert_refused_whole(plan, apply_actions(plan, [decompose("c")], subplans=given, max_steps=4), "more than 4")
    assert_refused_whole(plan, apply_actions(plan, [replace("a", "a2")], max_steps=3), "more than 3")
    assert apply_actions(plan, [replace("b", "b2", "a")], max_steps=3).refused == ()


def test_a_plan_already_too_long_can_still_be_changed() -> None:
    assert apply_actions(chain(), [modify("b", "a")], max_steps=2).refused == ()


def test_with_one_final_step_actions_are_refused_from_the_last_until_it_holds() -> None:
    result = apply_actions(chain(), [add("x", "a"), modify("c", "b", "x"), add("y", "a")], one_final_step=True)
    assert [one.fragment for one in result.accepted] == ["x", "c"]
    assert "exactly one step" in reasons(result)[0]


def test_replacing_the_final_step_keeps_one_final_step() -> None:
    plan = plan_of(done("a"), done("b"), done("c", "a", "b"))
    assert apply_actions(plan, [replace("c", "c2", "a", "b")], one_final_step=True).refused == ()
    assert_refused_whole(plan, apply_actions(plan, [mark_invalid("c")], one_final_step=True), "it would have 2: a, b")


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
    result = apply_actions(chain(), [add("x"), replace("a", "a2"), decompose("c")], subplans=subplan("c", step("x")))
    assert Plan.model_validate_json(result.plan.model_dump_json()) == result.plan


def test_subplans_are_read_only_inputs() -> None:
    given: dict[str, Subplan] = subplan("b", step("x"))
    before = {key: value.model_dump() for key, value in given.items()}
    apply_actions(chain(), [decompose("b")], subplans=given)
    assert {key: value.model_dump() for key, value in given.items()} == before
