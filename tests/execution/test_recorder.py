"""A pass under way becomes a pass of the history (FR-071, FR-072)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest

from aeon.domain.history import ExecutionPass, RunState, StepResult
from aeon.domain.plan import Plan
from aeon.domain.profile import DEFAULT_PROFILE, AdaptiveDepthConfiguration
from aeon.domain.refinement import RefinementAction, RefinementRecord
from aeon.execution.event_stream import EventStream
from aeon.execution.recorder import OpenPass, Stopwatch
from aeon.kernel.control import RunControl
from aeon.kernel.run import OpenRun
from aeon.kernel.settings import RunOptions
from tests.plan.builders import done, plan_of, step

DEPTH = AdaptiveDepthConfiguration(
    detected_complexity="moderate", allocated_ttl=9, reasoning_mode="deep", adjustment_reason="why"
)


def state(plan: Plan | None, allocated: int = 9, used: int = 2) -> RunState:
    return RunState(
        plan=plan, ttl_allocated=allocated, ttl_used=used, profile=DEFAULT_PROFILE, depth=DEPTH
    )


BEFORE = state(plan_of(step("a"), step("b")))


def opened(number: int = 1) -> OpenPass:
    return OpenPass(number, BEFORE)


def result(step_id: str, clarity: str | None = "CLEAR") -> StepResult:
    return StepResult(step_id=step_id, step_output=step_id, clarity_state=clarity)


def test_a_pass_keeps_the_plan_it_began_with_and_the_steps_it_ended_with():
    this = opened()
    after = plan_of(done("a"), step("b"))
    closed = this.close(state(after, used=6))
    assert [s.status for s in closed.plan_state.steps] == ["pending", "pending"]
    assert [s.status for s in closed.steps] == ["complete", "pending"]


def test_the_budget_is_told_as_it_was_at_the_start_and_what_was_used_of_it():
    closed = opened().close(state(plan_of(step("a")), 20, 6))
    assert (closed.ttl_remaining, closed.ttl_used) == (7, 4)


def test_results_and_clarity_states_come_in_plan_order():
    this = opened()
    this.results = {"b": result("b", "BLOCKED"), "a": result("a")}
    closed = this.close(BEFORE)
    assert list(closed.execution_results) == ["a", "b"]
    assert closed.clarity_states == {"a": "CLEAR", "b": "BLOCKED"}
    assert list(closed.clarity_states) == ["a", "b"]


def test_a_failed_steps_result_has_no_clarity():
    this = opened()
    this.results = {"a": result("a", None)}
    assert this.close(BEFORE).clarity_states == {}


@pytest.mark.parametrize(
    ("number", "phases", "phase"),
    [
        (0, ["PLAN", "EVALUATE", "REFINE"], "PLAN"),
        (1, ["EXECUTE"], "EXECUTE"),
        (1, ["EXECUTE", "EVALUATE", "REFINE"], "REFINE"),
        (2, ["RE_EXECUTE", "EVALUATE"], "EVALUATE"),
        (1, [], "EXECUTE"),
    ],
)
def test_the_phase_of_a_pass_is_the_last_it_entered(number: int, phases: list[str], phase: str):
    closed = recorded(number, phases)
    assert closed.phase == phase
    assert [p.phase for p in closed.phases] == phases


def recorded(number: int, phases: Sequence[str], **outcomes: str) -> ExecutionPass:
    """A pass with these phases; one whose outcome is `abandoned` is left by an exception."""
    run = OpenRun(EventStream(), RunControl(), RunOptions())
    run.state = BEFORE
    with run.open_pass(number, (), brief=False):
        for name in phases:
            with contextlib.suppress(KeyboardInterrupt), run.phase("C", name) as note:
                if outcomes.get(name) == "abandoned":
                    raise KeyboardInterrupt
                note.outcome = outcomes.get(name, "done")
    return run.state.passes[0]


def test_a_phase_says_how_it_ended():
    closed = recorded(1, ["EXECUTE", "REFINE", "EVALUATE"], REFINE="skipped", EVALUATE="abandoned")
    assert [p.outcome for p in closed.phases] == ["done", "skipped", "abandoned"]


def test_times_are_in_order_and_in_utc():
    closed = recorded(1, ["EXECUTE"])
    timing = closed.timing_information
    moments = [
        timing.start_time,
        closed.phases[0].start_time,
        closed.phases[0].end_time,
        timing.end_time,
    ]
    assert [datetime.fromisoformat(m).utcoffset() for m in moments] == [timedelta(0)] * 4
    assert moments == sorted(moments)
    assert timing.start_time < timing.end_time
    assert closed.phases[0].start_time < closed.phases[0].end_time
    assert timing.duration_seconds > 0


def test_a_clock_that_is_set_back_gives_no_end_before_the_start(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("aeon.execution.recorder.time.monotonic", lambda: 7.0)
    watch = Stopwatch()
    assert watch.read().start_time < watch.read().end_time


def test_what_was_accepted_is_what_was_changed():
    this = opened()
    action = RefinementAction(action_type="REMOVE", target_step_id="b", justification="why")
    this.refinement = RefinementRecord(accepted=(action,))
    assert this.close(BEFORE).refinement_changes == (action,)
    assert opened().close(BEFORE).refinement_changes == ()


def test_a_pass_without_a_plan_is_a_pass_all_the_same():
    closed = OpenPass(0, state(None, used=0)).close(state(None, used=1))
    assert (closed.plan_state, closed.steps, closed.complete) == (None, (), False)
