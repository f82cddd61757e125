"""Limits and stops: nothing new starts, running work gets its grace, everything there is comes back (RULES 4)."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from aeon.domain.errors import LimitReached
from aeon.execution.recorder import Stopwatch
from aeon.execution.settings import ExecutionSettings
from aeon.kernel.control import RunControl
from aeon.llm.stack.limits import LimitSettings
from aeon.plan.settings import RefinementSettings
from tests.kernel.build import advisories, kernel, run, statuses
from tests.support.fences import texts_in
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    add,
    assessment,
    blocked,
    clear,
    issue,
    modify,
    plan,
    planned,
    refinement,
    report,
    unfinished,
)
from tests.support.timing import SOON

TWO_LAYERS = plan("a", planned("b", "a"))


def test_the_last_allowed_pass_ends_the_run_without_refining_for_a_next_one():
    model = ScriptedModel(plan=TWO_LAYERS, convergence=unfinished())
    outcome = run(model, limits=LimitSettings(max_passes=1))
    assert outcome.termination_reason == "max_passes"
    assert outcome.answer == "output of a"
    assert model.calls[-1] == "convergence"
    response = outcome.ttl_expiration
    assert (response.result_type, response.termination_reason) == ("ttl_expired", "max_passes")
    assert response.expiration_point == "phase_boundary"
    assert response.latest_pass_result["answer"] == "output of a"
    assert response.ttl_expired_metadata.reason_codes == ("incomplete",)


@pytest.mark.parametrize("limit", ["max_tokens", "max_llm_calls", "max_cost"])
def test_a_reached_cap_ends_the_run_under_its_own_name_and_abandons_the_step(limit):
    def step(request):
        return (
            LimitReached("enough", limit=limit) if request.site.step_id == "b" else clear("a done")
        )

    outcome = run(ScriptedModel(plan=plan("a", "b"), step=step))
    assert outcome.termination_reason == limit
    assert outcome.error is None
    assert statuses(outcome) == {"a": "complete", "b": "pending"}
    assert outcome.state.plan.step("b").incomplete
    assert outcome.answer == "a done"
    response = outcome.ttl_expiration
    assert (response.termination_reason, response.expiration_point) == (limit, "mid_phase")
    assert response.partial_result["outputs"] == {"a": "a done"}


@pytest.fixture
def clock(monkeypatch):
    """What a run takes is what the test says, whatever else the machine does."""
    clock = SimpleNamespace(seconds=1.0)
    monkeypatch.setattr(Stopwatch, "seconds", property(lambda _: clock.seconds))
    return clock


def test_time_ends_a_run_between_calls_and_running_work_has_its_grace(clock):
    def slow(request):
        clock.seconds += 60
        time.sleep(0.3)
        return clear("late but whole")

    model = ScriptedModel(step=slow)
    outcome = run(
        model, limits=LimitSettings(max_seconds=60), execution=ExecutionSettings(grace_seconds=60)
    )
    assert outcome.termination_reason == "max_seconds"
    assert statuses(outcome) == {"only": "complete"}
    assert outcome.answer == "late but whole"
    assert model.calls[-1] == "step:only"


@pytest.mark.slow
def test_work_that_outlives_its_grace_is_abandoned(clock):
    release = threading.Event()

    def hangs(request):
        clock.seconds += 60
        release.wait(90)
        return clear("too late")

    started = time.monotonic()
    outcome = run(
        ScriptedModel(step=hangs),
        limits=LimitSettings(max_seconds=60),
        execution=ExecutionSettings(grace_seconds=0.1),
    )
    release.set()
    assert time.monotonic() - started < SOON
    assert outcome.termination_reason == "max_seconds"
    assert statuses(outcome) == {"only": "pending"}
    assert outcome.state.plan.step("only").incomplete


@pytest.mark.slow
def test_a_planning_call_that_outlives_its_grace_is_abandoned_too():
    release = threading.Event()
    control = RunControl()

    def hangs(request):
        control.request_stop()
        release.wait(90)
        return plan("a")

    outcome = run(
        ScriptedModel(plan=hangs), control=control, execution=ExecutionSettings(grace_seconds=0.1)
    )
    release.set()
    assert outcome.termination_reason == "interrupted"
    assert outcome.state.plan is None
    assert outcome.answer == ""


def test_a_run_that_ends_in_its_first_call_has_a_pass_all_the_same():
    outcome = run(ScriptedModel(task_profile=LimitReached("enough", limit="max_tokens")))
    (only,) = outcome.history.passes
    assert (only.pass_number, only.phase, only.complete, only.ttl_used) == (0, "PLAN", False, 0)
    assert outcome.termination_reason == "max_tokens"
    assert outcome.ttl_expiration.expiration_point == "mid_phase"


def test_a_stop_lets_running_steps_finish_and_starts_nothing_new():
    control = RunControl()

    def step(request):
        control.request_stop()
        return clear(f"output of {request.site.step_id}")

    model = ScriptedModel(plan=plan("a", planned("b", "a")), step=step)
    outcome = run(model, control=control)
    assert outcome.termination_reason == "interrupted"
    assert model.calls[-1] == "step:a"
    assert statuses(outcome) == {"a": "complete", "b": "pending"}
    assert outcome.answer == "output of a"


def test_at_most_max_parallel_steps_run_at_once():
    running, most, lock = 0, 0, threading.Lock()
    together = threading.Barrier(2, timeout=SOON)

    def step(request):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1
        return clear("done")

    outcome = run(
        ScriptedModel(plan=plan(*"abcdef"), step=step), execution=ExecutionSettings(max_parallel=2)
    )
    assert outcome.converged
    assert most == 2


def test_one_at_a_time_keeps_the_plans_order():
    model = ScriptedModel(plan=plan(*"cab"))
    run(model, execution=ExecutionSettings(max_parallel=1))
    assert [c for c in model.calls if c.startswith("step")] == ["step:c", "step:a", "step:b"]


def test_a_fragment_is_handed_to_a_person_after_its_attempts_and_the_run_goes_on():
    model = ScriptedModel(
        plan=plan("a", "b", planned("c", "b")),
        step=lambda r: blocked() if r.site.step_id == "a" else clear("done"),
        refinement=[refinement(), *[refinement(modify("a"))] * 5],
        convergence=unfinished(),
    )
    outcome = run(model, refinement=RefinementSettings(max_attempts_per_fragment=2))
    assert outcome.state.manual_intervention == ("a",)
    assert advisories(outcome, "manual_intervention") == ["Step a needs a person's attention."]
    assert statuses(outcome)["c"] == "complete"
    assert [c for c in model.calls if c == "step:a"] == ["step:a"] * 3
    assert outcome.history.overall_statistics.fragments_refined["a"] == 3


def test_the_global_limit_stops_all_refinement_and_the_run_goes_on():
    model = ScriptedModel(
        plan=plan("a"),
        step=blocked(),
        refinement=[refinement(modify("a"))],
        convergence=unfinished(),
    )
    outcome = run(model, refinement=RefinementSettings(max_attempts_total=1))
    assert model.calls.count("refinement") == 1
    assert outcome.state.refinements == 1
    assert advisories(outcome, "refinement_limit")
    assert outcome.termination_reason == "stalled"


def test_a_subplan_runs_before_its_parent_which_gets_its_outputs():
    substeps = {"subplan_goal": "prepare", "substeps": [planned("x"), planned("y", "x")]}
    model = ScriptedModel(
        plan=plan("a"),
        semantic_validation=[report(issue("i1", "a")), report()],
        refinement=[refinement(action("SUBPLAN_CREATE", "a")), refinement()],
        subplan=substeps,
        convergence=[unfinished(), unfinished(), assessment()],
    )
    outcome = run(model)
    assert [c for c in model.calls if c.startswith("step")] == ["step:a.x", "step:a.y", "step:a"]
    assert texts_in(model.prompts("step")[2], "output")[-1] == "output of a.y"
    assert outcome.answer == "output of a"
    assert outcome.state.plan.step("a.x").parent_step_id == "a"


def test_a_subplan_deeper_than_allowed_is_left_to_a_person_and_the_plan_stays():
    substeps = {"subplan_goal": "prepare", "substeps": [planned("x")]}
    target = "a" + ".x" * 1
    model = ScriptedModel(
        plan=plan("a"),
        semantic_validation=[report(issue("i1", "a")), report()],
        refinement=[
            refinement(action("SUBPLAN_CREATE", "a")),
            refinement(action("SUBPLAN_CREATE", target)),
            refinement(),
        ],
        subplan=substeps,
        step=lambda r: blocked() if r.site.step_id == target else clear("done"),
        convergence=unfinished(),
    )
    outcome = run(model, refinement=RefinementSettings(max_nesting_depth=1))
    assert outcome.state.manual_intervention == (target,)
    assert [s.step_id for s in outcome.state.plan.steps] == [target, "a"]
    assert "deeper" in advisories(outcome, "refused_action")[0]


def test_an_executed_step_in_conflict_is_marked_invalid_and_its_output_kept():
    model = ScriptedModel(
        plan=plan("a"),
        refinement=[refinement(action("STEP_MARK_INVALID", "a"), add("b")), refinement()],
        semantic_validation=report(),
        convergence=[unfinished(), assessment()],
    )
    outcome = run(model)
    old = outcome.state.plan.step("a")
    assert (old.status, old.step_output) == ("invalid", "output of a")
    assert outcome.answer == "output of b"


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (modify("a"), "complete"),
        (modify("ghost"), "ghost"),
        (action("REMOVE", "a"), "complete"),
        (action("MODIFY", "b", planned("b", "b")), "itself"),
        (add("c", "ghost"), "ghost"),
    ],
)
def test_a_refinement_that_cannot_be_applied_is_refused_and_told(bad, why):
    model = ScriptedModel(
        plan=plan("a", "b"),
        step=lambda r: blocked() if r.site.step_id == "b" else clear("done"),
        refinement=[refinement(), refinement(bad)],
        convergence=[unfinished(), unfinished()],
    )
    outcome = run(model)
    assert any(why in refused.reason for refused in outcome.state.refused)
    assert outcome.state.plan.step("a").step_output == "done"


def test_the_state_can_be_read_while_the_run_goes_on():
    states = []

    def step(request):
        states.append(orchestrator.state)
        return clear("done")

    orchestrator = kernel(ScriptedModel(step=step))
    orchestrator.run("x")
    assert states[0].plan.step("only").status == "running"
    assert orchestrator.state.plan.step("only").status == "complete"
