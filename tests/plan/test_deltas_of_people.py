"""A step that a plan file leaves to a person is never given to a model or a tool."""

import pytest

from aeon.domain.plan import PlanStep
from aeon.plan.deltas import apply_actions
from tests.plan.builders import (
    assert_refused_whole,
    decompose,
    done,
    failed,
    modify,
    plan_of,
    remove,
    replace,
    step,
    subplan,
)

PENDING = step("a", agent="person")


@pytest.mark.parametrize(
    "target", [PENDING, done("a", agent="person"), failed("a", agent="person")]
)
def test_what_replaces_a_step_of_a_person_is_one_too(target: PlanStep) -> None:
    by_tool = replace("a", "a2", agent="llm", tool="calculator", arguments={"expression": "1"})
    result = apply_actions(plan_of(target, step("b", "a")), [by_tool])
    new = result.plan.step("a2")
    assert (new.agent, new.tool, new.arguments) == ("person", None, None)
    again = apply_actions(result.plan, [replace("a2", "a3", agent="llm")])
    assert again.plan.step("a3").is_for_person


def test_a_reworded_step_of_a_person_is_recorded_as_the_plan_has_it() -> None:
    result = apply_actions(plan_of(PENDING), [modify("a", agent="llm")])
    [recorded] = result.accepted
    assert recorded.new_step is not None
    assert result.plan.step("a").description == "done better"
    assert result.plan.step("a").agent == recorded.new_step.agent == "person"


def test_a_person_does_the_substeps_of_a_step_of_a_person() -> None:
    parts = subplan("a", step("x", agent="llm"), step("y", "x", tool="calculator"))
    plan = apply_actions(plan_of(PENDING), [decompose("a")], subplans=parts).plan
    assert [one.step_id for one in plan.steps if one.is_for_person] == ["a.x", "a.y", "a"]


def test_a_step_of_a_person_is_not_removed() -> None:
    plan = plan_of(PENDING, step("b", agent="llm"))
    assert_refused_whole(plan, apply_actions(plan, [remove("a")]), "left to a person")
