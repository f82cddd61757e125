import pytest
from pydantic import ValidationError

from aeon.domain.plan import Plan, PlanStep, Subplan, renumber_steps
from aeon.domain.refinement import RefinementAction
from tests.plan.builders import action, add, blocked, done, plan_of, remove, step


def test_steps_without_numbers_are_numbered_by_position() -> None:
    plan = plan_of(step("a"), step("b"), step("c"))
    assert [(one.step_index, one.total_steps) for one in plan.steps] == [(1, 3), (2, 3), (3, 3)]


def test_given_numbers_must_run_without_gaps_and_agree_on_the_total() -> None:
    with pytest.raises(ValidationError, match="without gaps"):
        plan_of(step("a", step_index=1, total_steps=2), step("b", step_index=3, total_steps=3))
    with pytest.raises(ValidationError, match="total_steps must be 2"):
        plan_of(step("a", step_index=1, total_steps=2), step("b", step_index=2, total_steps=3))


def test_ids_must_be_unique_and_the_repeated_ones_are_named() -> None:
    with pytest.raises(ValidationError, match="a repeated"):
        plan_of(step("a"), step("b"), step("a"))


def test_a_step_needs_an_id_and_a_description() -> None:
    with pytest.raises(ValidationError):
        PlanStep(step_id="", description="x")
    with pytest.raises(ValidationError):
        PlanStep(step_id="x", description="")


def test_a_blocked_step_cannot_be_complete_or_failed() -> None:
    for status in ("complete", "failed"):
        with pytest.raises(ValidationError, match="must have status invalid"):
            step("a", status=status, clarity_state="BLOCKED")
    assert blocked("a").blocked
    assert not step("a", status="invalid", clarity_state="CLEAR").blocked


def test_values_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        step("a").status = "complete"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="Extra inputs"):
        step("a", mood="good")


def test_with_step_exchanges_one_step_and_shares_the_others() -> None:
    plan = plan_of(step("a"), step("b"))
    changed = plan.with_steps(plan.step("b").model_copy(update={"status": "running"}))
    assert changed.step("b").status == "running"
    assert changed.step("a") is plan.step("a")
    assert plan.step("b").status == "pending"


def test_an_unknown_step_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        plan_of(step("a")).step("b")


def test_renumbering_shares_steps_that_are_right() -> None:
    plan = plan_of(step("a"), step("b"))
    assert all(
        one is other for one, other in zip(renumber_steps(plan.steps), plan.steps, strict=True)
    )
    assert [one.step_index for one in renumber_steps(tuple(reversed(plan.steps)))] == [1, 2]


def test_a_plan_survives_json() -> None:
    plan = plan_of(done("a", arguments={"q": [1, None]}), blocked("b", "a"))
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    "kind", ["MODIFY", "REMOVE", "REPLACE", "STEP_MARK_INVALID", "SUBPLAN_CREATE"]
)
def test_every_action_but_add_needs_a_target(kind: str) -> None:
    with pytest.raises(ValidationError, match="needs target_step_id"):
        action(kind, None, step("a"))


@pytest.mark.parametrize("kind", ["ADD", "MODIFY", "REPLACE"])
def test_add_modify_and_replace_need_a_new_step(kind: str) -> None:
    with pytest.raises(ValidationError, match="needs new_step"):
        action(kind, "a")


def test_an_action_needs_a_justification() -> None:
    with pytest.raises(ValidationError):
        RefinementAction(action_type="REMOVE", target_step_id="a", justification="")


def test_the_fragment_is_the_target_or_the_added_step() -> None:
    assert remove("a").fragment == "a"
    assert add("n").fragment == "n"
    assert action("ADD", "somewhere", step("n")).fragment == "n"


def test_a_subplan_has_steps_and_is_at_most_five_levels_deep() -> None:
    with pytest.raises(ValidationError):
        Subplan(parent_step_id="a", subplan_goal="g", substeps=(), depth_level=1)
    for level in (0, 6):
        with pytest.raises(ValidationError):
            Subplan(parent_step_id="a", subplan_goal="g", substeps=(step("x"),), depth_level=level)
