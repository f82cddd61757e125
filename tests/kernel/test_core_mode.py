"""Core mode: one plan, strictly one step after the other, nothing judged."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from aeon.domain import events
from aeon.domain.errors import RequestRefused, ServerFailed
from aeon.domain.history import RunState
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import LLMRequest
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.run_memory import InMemory
from aeon.tools.registry import ToolRegistry
from tests.kernel.build import TASK, advisories, kernel, run, statuses
from tests.support.fences import texts_in
from tests.support.scripted_model import ScriptedModel, blocked, clear, plan, planned
from tests.tools.builders import a_tool

CHAIN = plan("a", planned("b", "a"), planned("c", "b"))


def core(model: ScriptedModel, **options: Any) -> Any:
    return run(model, mode="core", **{"base_ttl": 25, **options})


def test_it_plans_and_carries_out_and_asks_for_nothing_else() -> None:
    model = ScriptedModel(plan=CHAIN)
    outcome = core(model)
    assert model.calls == ["plan", "step:a", "step:b", "step:c"]
    assert outcome.termination_reason == "completed"
    assert not outcome.converged
    assert outcome.answer == "output of c"
    assert statuses(outcome) == {"a": "complete", "b": "complete", "c": "complete"}


def test_the_history_of_a_pass_has_the_step_it_carried_out_and_the_last_has_all() -> None:
    passes = core(ScriptedModel(plan=CHAIN)).history.passes
    whole = ["a", "b", "c"]
    assert [[step.step_id for step in record.steps] for record in passes] == [
        whole,
        ["a"],
        ["b"],
        whole,
    ]


def test_independent_steps_run_one_after_the_other_too() -> None:
    running: list[int] = []
    peak: list[int] = []
    lock = threading.Lock()

    def step(request: LLMRequest) -> Any:
        with lock:
            running.append(1)
            peak.append(len(running))
        threading.Event().wait(0.01)
        running.pop()
        return clear(str(request.site.step_id))

    core(ScriptedModel(plan=plan("a", "b", "c", "d"), step=step))
    assert peak == [1, 1, 1, 1]


def test_the_answer_is_the_outputs_that_nothing_depends_on() -> None:
    assert (
        core(ScriptedModel(plan=plan("a", "b", planned("c", "a")))).answer
        == "output of b\n\noutput of c"
    )


def test_every_step_sees_the_plan_all_earlier_results_and_what_is_left() -> None:
    model = ScriptedModel(plan=plan("a", "b", "c"))
    core(model, base_ttl=9)
    prompts = model.prompts("step")
    assert texts_in(prompts[2], "output") == ["output of a", "output of b"]
    assert [
        f"LLM cycles left after this one: {left}." in prompts[n] for n, left in enumerate((7, 6, 5))
    ] == [True] * 3
    assert '"status":"complete"' in prompts[1]
    assert '"status":"running"' in prompts[1]
    assert '"status":"pending"' in prompts[1]


def test_a_step_after_a_failed_one_runs_and_is_told_why() -> None:
    def step(request: LLMRequest) -> Any:
        return "no JSON" if request.site.step_id == "a" else clear("fine")

    model = ScriptedModel(plan=CHAIN, step=step, repair="still none")
    outcome = core(model)
    assert statuses(outcome) == {"a": "failed", "b": "complete", "c": "complete"}
    assert outcome.termination_reason == "step_failed"
    (error,) = texts_in(model.prompts("step")[1], "error")
    assert error.startswith("ValidationError")


def test_a_blocked_step_stays_blocked_and_the_others_go_on() -> None:
    def step(request: LLMRequest) -> Any:
        return blocked() if request.site.step_id == "a" else clear("fine")

    outcome = core(ScriptedModel(plan=CHAIN, step=step))
    assert statuses(outcome) == {"a": "invalid", "b": "complete", "c": "complete"}
    assert outcome.termination_reason == "step_failed"


@pytest.mark.parametrize(("ttl", "complete"), [(1, 0), (2, 1), (3, 2)])
def test_the_budget_ends_it_where_it_is_spent(ttl: int, complete: int) -> None:
    outcome = core(ScriptedModel(plan=CHAIN), base_ttl=ttl)
    assert outcome.termination_reason == "ttl_expired"
    assert list(statuses(outcome).values()) == ["complete"] * complete + ["pending"] * (
        3 - complete
    )
    assert outcome.state.ttl_remaining == 0
    response = outcome.ttl_expiration
    assert response is not None
    assert response.ttl_expired_metadata.completeness_score is None
    assert response.expiration_point == ("phase_boundary" if complete else "mid_phase")


def test_a_budget_that_is_just_enough_is_enough() -> None:
    assert core(ScriptedModel(plan=CHAIN), base_ttl=4).termination_reason == "completed"


def test_a_spent_budget_ends_it_though_the_steps_that_are_left_cost_nothing() -> None:
    registry = ToolRegistry([a_tool(lambda _: 15, name="add")])
    steps = plan("a", planned("sum", tool="add", arguments="{}"))
    outcome = core(ScriptedModel(plan=steps), base_ttl=2, registry=registry)
    assert outcome.termination_reason == "ttl_expired"
    assert statuses(outcome) == {"a": "complete", "sum": "pending"}
    assert outcome.ttl_expiration is not None
    assert outcome.ttl_expiration.expiration_point == "phase_boundary"


def test_a_spent_budget_comes_before_a_cap_on_passes() -> None:
    outcome = core(ScriptedModel(plan=CHAIN), base_ttl=3, limits=LimitSettings(max_passes=2))
    assert outcome.termination_reason == "ttl_expired"


def test_a_provider_that_is_down_ends_it_with_what_there_is() -> None:
    def step(request: LLMRequest) -> Any:
        return clear("fine") if request.site.step_id == "a" else ServerFailed("503", status=503)

    outcome = core(ScriptedModel(plan=CHAIN, step=step))
    assert outcome.termination_reason == "failed"
    assert statuses(outcome) == {"a": "complete", "b": "failed", "c": "pending"}
    assert outcome.answer == "fine"
    assert outcome.error is not None
    assert outcome.error.type == "ServerFailed"


def test_a_run_whose_every_call_failed_in_the_same_way_ends_with_that_error() -> None:
    given = Plan(
        goal="g", steps=tuple(PlanStep(step_id=name, description="d", agent="llm") for name in "ab")
    )
    refused = RequestRefused("no such model", status=404, hint="check provider.model")
    outcome = core(ScriptedModel(step=refused), plan=given)
    assert outcome.termination_reason == "failed"
    assert outcome.error is not None
    assert (outcome.error.type, outcome.error.hint) == ("RequestRefused", "check provider.model")
    capped = run(
        ScriptedModel(step=refused), mode="core", plan=given, limits=LimitSettings(max_passes=1)
    )
    assert capped.termination_reason == "failed"


@pytest.mark.parametrize("second", [RequestRefused("odd", status=400), clear("fine")])
def test_a_run_whose_calls_did_not_all_fail_in_the_same_way_says_that_steps_failed(
    second: Any,
) -> None:
    given = Plan(
        goal="g", steps=tuple(PlanStep(step_id=name, description="d", agent="llm") for name in "ab")
    )

    def step(request: LLMRequest) -> Any:
        return (
            RequestRefused("no such model", status=404) if request.site.step_id == "a" else second
        )

    assert core(ScriptedModel(step=step), plan=given).termination_reason == "step_failed"


def test_a_plan_that_is_given_is_run_and_none_is_asked_for() -> None:
    given = Plan(goal="g", steps=(PlanStep(step_id="mine", description="d", agent="llm"),))
    model = ScriptedModel()
    outcome = core(model, plan=given)
    assert model.calls == ["step:mine"]
    assert outcome.state.plan is not None
    assert outcome.state.plan.task == TASK


def test_the_plan_stays_a_plan_and_shares_the_steps_that_did_not_change() -> None:
    plans: list[Plan] = []
    model = ScriptedModel(plan=CHAIN)
    orchestrator: Orchestrator

    def step(request: LLMRequest) -> Any:
        state = orchestrator.state
        assert state.plan is not None
        plans.append(state.plan)
        return clear("fine")

    model = ScriptedModel(plan=CHAIN, step=step)
    orchestrator = kernel(model, mode="core", base_ttl=25)
    outcome = orchestrator.run(TASK)
    plans.append(outcome.state.plan)  # type: ignore[arg-type]
    assert all(type(plan) is Plan for plan in plans)
    assert plans[0].step("c") is plans[1].step("c")
    assert plans[1].step("a") is plans[2].step("a") is plans[3].step("a")


def test_the_state_may_be_asked_for_while_it_runs() -> None:
    states: list[RunState] = []
    orchestrator: Orchestrator

    def step(request: LLMRequest) -> Any:
        states.append(orchestrator.state)
        return clear(f"output of {request.site.step_id}")

    orchestrator = kernel(ScriptedModel(plan=CHAIN, step=step), mode="core", base_ttl=25)
    end = orchestrator.run(TASK).state
    assert [[s.status for s in state.plan.steps] for state in states if state.plan] == [
        ["running", "pending", "pending"],
        ["complete", "running", "pending"],
        ["complete", "complete", "running"],
    ]
    assert [state.current_steps for state in states] == [("a",), ("b",), ("c",)]
    assert [state.ttl_remaining for state in states] == [23, 22, 21]
    assert [output.call for output in states[2].llm_outputs] == ["plan", "step", "step"]
    assert [output.step_id for output in end.llm_outputs] == [None, "a", "b", "c"]
    assert end.current_steps == ()


def test_the_state_tells_of_tools_and_repairs() -> None:
    registry = ToolRegistry([a_tool(lambda _: 15, name="add")])
    steps = plan(planned("sum", tool="add", arguments="{}"), "say")
    model = ScriptedModel(plan=steps, step="no JSON", repair=clear("15"))
    state = core(model, registry=registry).state
    assert [(call.tool, call.output) for call in state.tool_history] == [("add", 15)]
    assert [(record.call, record.outcome) for record in state.supervisor_actions] == [
        ("step", "repaired")
    ]
    assert [output.text for output in state.llm_outputs][1] == "no JSON"


def test_a_second_run_begins_with_an_empty_state() -> None:
    orchestrator = kernel(ScriptedModel(plan=CHAIN), mode="core", base_ttl=25)
    first, second = orchestrator.run(TASK).state, orchestrator.run(TASK).state
    assert len(first.llm_outputs) == len(second.llm_outputs) == 4


def test_results_are_in_memory_for_the_steps_after() -> None:
    memory = InMemory()
    seen: list[dict[str, Any]] = []

    def step(request: LLMRequest) -> Any:
        seen.append(memory.search("step/"))
        return clear(f"output of {request.site.step_id}", handoff="mind the milk")

    core(ScriptedModel(plan=plan("a", "b"), step=step), memory=memory)
    assert seen == [{}, {"step/a/handoff": "mind the milk", "step/a/output": "output of a"}]


def test_a_memory_that_fails_is_told_and_the_run_goes_on() -> None:
    class Broken(InMemory):
        def write(self, key: str, value: Any) -> None:
            raise OSError("disk full")

    seen: list[events.Recorded] = []
    outcome = core(ScriptedModel(plan=plan("a", "b")), memory=Broken(), seen=seen)
    assert outcome.termination_reason == "completed"
    told = advisories(outcome, "memory_failure")
    assert told[0] == "step/a/output could not be stored: disk full"
    assert sum(isinstance(r.event, events.AdvisoryRaised) for r in seen) == len(told) == 1


def test_the_forecast_counts_the_cycles_and_not_the_steps() -> None:
    registry = ToolRegistry([a_tool(name="t")])
    steps = plan(
        planned("x", tool="t", arguments="{}"),
        planned("y", tool="t"),
        planned("z", tool="gone"),
        "m",
    )
    seen: list[events.Recorded] = []
    core(ScriptedModel(plan=steps, tool_arguments={}, repair="none"), registry=registry, seen=seen)
    (made,) = (r.event for r in seen if isinstance(r.event, events.PlanMade))
    assert made.expected_calls == 3


def test_a_cap_on_passes_that_a_person_sets_holds_here_too() -> None:
    outcome = core(ScriptedModel(plan=plan("a", "b", "c")), limits=LimitSettings(max_passes=2))
    assert outcome.termination_reason == "max_passes"
    assert statuses(outcome) == {"a": "complete", "b": "complete", "c": "pending"}
