"""Mode auto: a task that is profiled as small costs a profile, its step and one judgement."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aeon.app.aeon import Aeon
from aeon.domain import events
from aeon.domain.history import Outcome
from aeon.domain.plan import Plan, PlanStep
from aeon.observability import artefacts
from aeon.tools.registry import ToolRegistry
from tests.kernel.build import phases, run, statuses
from tests.support.scripted_model import (
    ScriptedModel,
    add,
    assessment,
    plan,
    profile,
    refinement,
    unfinished,
)
from tests.tools.builders import a_tool

SMALL = profile(2, output_breadth="narrow", expected_step_count=1, expected_tool_usage="none")
FULL = [
    "task_profile",
    "plan",
    "semantic_validation",
    "step:a",
    "semantic_validation",
    "convergence",
]


def auto(model: ScriptedModel, **options: Any) -> Outcome:
    return run(model, mode="auto", **options)


@pytest.mark.parametrize("depth", [1, 2])
def test_a_small_task_takes_three_calls(depth: int):
    model = ScriptedModel(task_profile={**SMALL, "reasoning_depth": depth})
    seen: list[events.Recorded] = []
    outcome = auto(model, seen=seen)
    assert model.calls == ["task_profile", "step:answer", "convergence"]
    assert outcome.converged
    assert outcome.answer == "output of answer"
    assert statuses(outcome) == {"answer": "complete"}
    assert phases(outcome, 0) == ["PLAN", "EVALUATE skipped", "REFINE skipped"]
    assert phases(outcome, 1) == ["EXECUTE", "EVALUATE"]
    assert outcome.history.passes[1].evaluation_results.validation_report is None
    assert outcome.state.ttl_used == 2
    (made,) = (r.event for r in seen if isinstance(r.event, events.PlanMade))
    assert made.expected_calls == 2


def test_its_judge_is_not_told_of_a_review_that_was_not_made():
    model = ScriptedModel(task_profile=SMALL)
    auto(model)
    (prompt,) = model.prompts("convergence")
    assert "No review of this work was made." in prompt
    assert "review of the same work" not in prompt
    ordinary = ScriptedModel()
    run(ordinary)
    assert "review of the same work" in ordinary.prompts("convergence")[0]


@pytest.mark.parametrize(
    "other", [{"reasoning_depth": 3}, {"output_breadth": "moderate"}, {"expected_step_count": 2}]
)
def test_any_other_task_is_planned_reviewed_and_judged_in_full(other: dict[str, Any]):
    model = ScriptedModel(task_profile={**SMALL, **other}, plan=plan("a"))
    assert auto(model).converged
    assert model.calls == FULL


def test_a_small_task_that_is_to_use_tools_has_a_planner_choose_them():
    model = ScriptedModel(task_profile={**SMALL, "expected_tool_usage": "minimal"}, plan=plan("a"))
    auto(model, registry=ToolRegistry([a_tool(name="add")]))
    assert model.calls == FULL
    without = ScriptedModel(task_profile={**SMALL, "expected_tool_usage": "minimal"})
    auto(without)
    assert without.calls == ["task_profile", "step:answer", "convergence"]


def test_a_plan_that_a_person_gave_is_kept():
    given = Plan(goal="g", steps=(PlanStep(step_id="a", description="d", agent="llm"),))
    model = ScriptedModel(task_profile=SMALL)
    auto(model, plan=given)
    assert model.calls == [call for call in FULL if call != "plan"]


def test_an_answer_that_is_not_good_enough_goes_the_way_of_the_adaptive_mode():
    model = ScriptedModel(
        task_profile=SMALL,
        convergence=[unfinished(), assessment()],
        refinement=refinement(add("more", "answer")),
    )
    outcome = auto(model)
    assert model.calls == [
        *("task_profile", "step:answer", "convergence"),
        *("refinement", "semantic_validation", "step:more", "semantic_validation", "convergence"),
    ]
    assert outcome.answer == "output of more"


def test_the_adaptive_mode_does_all_of_it_for_a_small_task_too():
    model = ScriptedModel(task_profile=SMALL, plan=plan("a"))
    run(model)
    assert model.calls == FULL


def test_the_step_is_told_what_the_configuration_says():
    model = ScriptedModel(task_profile=SMALL)
    auto(model, one_step="Mach alles.")
    assert "Mach alles." in model.prompts("step")[0]


def test_it_is_chosen_by_configuration(tmp_path: Path):
    model = ScriptedModel(task_profile=SMALL)
    with Aeon.from_config(["provider=simulated", "mode=auto"], environ={}) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("calculate the sum of 5 and 10", directory=tmp_path)
    assert model.calls == ["task_profile", "step:answer", "convergence"]
    assert (result.converged, result.ttl.used, result.passes) == (True, 2, 1)
    assert artefacts.load(tmp_path) == result
