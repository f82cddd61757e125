"""Planning alone: Phases A and B, and nothing after them (FR-001, FR-086)."""

from __future__ import annotations

import pytest

from aeon.domain import events
from aeon.domain.errors import AuthenticationFailed, StopRequested
from aeon.kernel.budget import TTLExpired
from aeon.kernel.control import RunControl
from tests.kernel.build import TASK, kernel, names
from tests.support.scripted_model import ScriptedModel, add, issue, plan, refinement, report

PHASE_B = ["task_profile", "plan", "semantic_validation", "refinement"]


def test_planning_profiles_plans_validates_refines_and_stops():
    model = ScriptedModel(
        plan=plan("a"),
        semantic_validation=report(issue("i1", "a")),
        refinement=refinement(add("b", "a", addresses_issues=["i1"])),
    )
    seen: list[events.Recorded] = []
    made = kernel(model, seen=seen).plan(TASK)
    assert model.calls[:4] == PHASE_B
    assert not [call for call in model.calls if call.startswith("step") or call == "convergence"]
    assert [(step.step_id, step.status) for step in made.steps] == [
        ("a", "pending"),
        ("b", "pending"),
    ]
    assert made.task == TASK
    assert "PlanMade" in names(seen)
    assert "StepStarted" not in names(seen)


def test_the_plan_is_the_one_that_a_run_would_execute():
    model = ScriptedModel(plan=plan("a", "b"))
    planner = kernel(model)
    made = planner.plan(TASK)
    outcome = kernel(ScriptedModel(plan=plan("a", "b"))).run(TASK)
    assert outcome.history.passes[1].plan_state == made
    assert planner.state.plan == made
    assert planner.state.ttl_used == 3


def test_a_kernel_that_has_planned_can_run():
    orchestrator = kernel(ScriptedModel())
    orchestrator.plan(TASK)
    assert orchestrator.run(TASK).converged


def test_a_provider_that_fails_is_an_error():
    with pytest.raises(AuthenticationFailed):
        kernel(ScriptedModel(plan=AuthenticationFailed("no"))).plan(TASK)


def test_a_budget_that_ends_before_the_review_leaves_the_plan_in_the_state():
    orchestrator = kernel(ScriptedModel(plan=plan("a")), ttl=1)
    with pytest.raises(TTLExpired):
        orchestrator.plan(TASK)
    assert orchestrator.state.plan is not None
    assert [step.step_id for step in orchestrator.state.plan.steps] == ["a"]


def test_a_stop_ends_planning():
    control = RunControl()
    control.request_stop()
    with pytest.raises(StopRequested):
        kernel(ScriptedModel(), control=control).plan(TASK)
