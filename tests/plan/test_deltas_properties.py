"""What holds for every plan and every refinement, however foolish."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from aeon.domain import graph
from aeon.domain.plan import Plan, PlanStep, Subplan
from aeon.domain.refinement import RefinementAction
from aeon.plan.deltas import DeltaResult, apply_actions
from aeon.plan.structural import check_steps
from tests.plan.builders import action, plan_of, step

MAX_STEPS = 14
NEW_IDS = ("n1", "n2", "n3", "nowhere")
OUTCOMES = (
    {"status": "complete", "clarity_state": "CLEAR"},
    {"status": "complete", "clarity_state": "PARTIALLY_CLEAR"},
    {"status": "invalid", "clarity_state": "BLOCKED"},
    {"status": "failed", "errors": ("it broke",)},
)
NUMBERING = ("step_index", "total_steps")

searching = settings(
    deadline=None,
    max_examples=75,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    size = draw(st.integers(1, 6))
    return plan_of(
        *(step(f"s{i}", *(f"s{d}" for d in sorted(draw(st.sets(st.integers(0, i - 1), max_size=3)) if i else ())))
          for i in range(size))
    )  # fmt: skip


def executed(draw: st.DrawFn, plan: Plan) -> Plan:
    """The plan after some of its ready steps were executed, one way or another."""
    for one in graph.ready_steps(plan):
        outcome = draw(st.sampled_from((None, *OUTCOMES)))
        if outcome:
            output = f"{one.step_output or ''}output of {one.step_id};"
            plan = plan.with_steps(one.model_copy(update={**outcome, "step_output": output}))
    return plan


def refinement(draw: st.DrawFn, plan: Plan) -> tuple[list[RefinementAction], dict[str, Subplan]]:
    known = [one.step_id for one in plan.steps]
    ids = st.sampled_from([*known, *NEW_IDS])

    def new_step(own: st.SearchStrategy[str]) -> PlanStep:
        return step(
            draw(own),
            *draw(st.lists(ids, max_size=3, unique=True)),
            provides=draw(st.sampled_from([(), ("x",)])),
        )

    def one_action() -> RefinementAction:
        kind = draw(
            st.sampled_from(
                ["ADD", "MODIFY", "REMOVE", "REPLACE", "SUBPLAN_CREATE", "STEP_MARK_INVALID"]
            )
        )
        target = None if kind == "ADD" else draw(ids)
        own = ids if kind != "REPLACE" or target is None else st.one_of(st.just(target), ids)
        new = new_step(own) if kind in ("ADD", "MODIFY", "REPLACE") else None
        return action(kind, target, new, inconsistency_detected=draw(st.booleans()))

    actions = [one_action() for _ in range(draw(st.integers(0, 6)))]
    subplans = {
        target: Subplan(
            parent_step_id=target,
            subplan_goal="in detail",
            depth_level=1,
            substeps=tuple(
                step(
                    name,
                    *draw(st.lists(st.sampled_from(["u", "v", *known]), max_size=2, unique=True)),
                )
                for name in draw(st.sampled_from([("u",), ("u", "v"), ("v", "w"), ("u", "u")]))
            ),
        )
        for target in {a.fragment for a in actions if a.action_type == "SUBPLAN_CREATE"}
        if draw(st.booleans())
    }
    return actions, subplans


def without_numbers(one: PlanStep) -> PlanStep:
    return one.model_copy(update=dict.fromkeys(NUMBERING, 1))


def assert_sound(plan: Plan) -> None:
    assert check_steps(plan.steps) == ()
    assert Plan.model_validate(plan.model_dump()) == plan
    assert [one.step_index for one in plan.steps] == list(range(1, len(plan.steps) + 1))
    assert {one.total_steps for one in plan.steps} == {len(plan.steps)}
    assert graph.sort_by_dependencies(plan.steps) == plan.steps


def assert_executed_is_kept(before: Plan, after: Plan) -> None:
    now = graph.by_id(after.steps)
    for one in before.steps:
        if one.status == "pending":
            continue
        assert now[one.step_id].step_output == one.step_output
        if one.blocked:
            continue
        retired = {"status", "replaced_by", "errors", *NUMBERING}
        assert now[one.step_id].model_dump(exclude=retired) == one.model_dump(exclude=retired)
        assert now[one.step_id].status in (one.status, "invalid")


def assert_nothing_else_changed(before: Plan, result: DeltaResult) -> None:
    changed = {change.step_id for change in result.changes}
    then, now = graph.by_id(before.steps), graph.by_id(result.plan.steps)
    for step_id in then.keys() | now.keys():
        if step_id in changed:
            continue
        assert without_numbers(then[step_id]) == without_numbers(now[step_id])
        if all(getattr(then[step_id], name) == getattr(now[step_id], name) for name in NUMBERING):
            assert then[step_id] is now[step_id]
    for change in result.changes:
        assert (change.before, change.after) == (then.get(change.step_id), now.get(change.step_id))


@pytest.mark.slow
@given(st.data())
@searching
def test_through_any_run_of_executions_and_refinements(data: st.DataObject) -> None:
    plan = data.draw(plans())
    for _ in range(3):
        plan = executed(data.draw, plan)
        actions, subplans = refinement(data.draw, plan)
        before = plan.model_dump()
        result = apply_actions(
            plan, actions, subplans=subplans, max_steps=MAX_STEPS, max_nesting_depth=2
        )

        assert plan.model_dump() == before
        assert sorted(map(id, result.accepted + tuple(r.action for r in result.refused))) == sorted(
            map(id, actions)
        )
        assert all(refused.reason for refused in result.refused)
        assert_sound(result.plan)
        assert_executed_is_kept(plan, result.plan)
        assert_nothing_else_changed(plan, result)
        assert len(result.plan.steps) <= max(MAX_STEPS, len(plan.steps))
        assert all(
            graph.nesting_level(graph.by_id(result.plan.steps), one.step_id) <= 2
            for one in result.plan.steps
        )
        if not result.accepted:
            assert result.plan is plan
        plan = result.plan


@given(st.data())
@searching
def test_the_accepted_actions_alone_give_the_same_plan(data: st.DataObject) -> None:
    plan = executed(data.draw, data.draw(plans()))
    actions, subplans = refinement(data.draw, plan)
    for one_final_step in (False, True):
        result = apply_actions(
            plan, actions, subplans=subplans, max_steps=8, one_final_step=one_final_step
        )
        again = apply_actions(
            plan, result.accepted, subplans=subplans, max_steps=8, one_final_step=one_final_step
        )
        assert again.plan == result.plan
        assert again.refused == ()
        assert again.changes == result.changes


@given(st.data())
@searching
def test_one_final_step_holds_once_anything_is_accepted(data: st.DataObject) -> None:
    plan = executed(data.draw, data.draw(plans()))
    actions, subplans = refinement(data.draw, plan)
    result = apply_actions(plan, actions, subplans=subplans, one_final_step=True)
    assert result.plan is plan or len(graph.final_steps(result.plan)) == 1


@given(st.data())
@searching
def test_equal_inputs_give_equal_results(data: st.DataObject) -> None:
    plan = executed(data.draw, data.draw(plans()))
    actions, subplans = refinement(data.draw, plan)
    copies = [RefinementAction.model_validate(one.model_dump()) for one in actions]
    first = apply_actions(plan, actions, subplans=subplans)
    assert apply_actions(Plan.model_validate(plan.model_dump()), copies, subplans=subplans) == first


@pytest.mark.slow
@given(st.data())
@searching
def test_a_pending_step_never_waits_for_one_that_was_replaced(data: st.DataObject) -> None:
    plan = data.draw(plans())
    for _ in range(3):
        plan = executed(data.draw, plan)
        actions, subplans = refinement(data.draw, plan)
        plan = apply_actions(plan, actions, subplans=subplans).plan
        replaced = {one.step_id for one in plan.steps if one.replaced_by}
        assert all(replaced.isdisjoint(one.dependencies) for one in graph.find_pending_steps(plan))
