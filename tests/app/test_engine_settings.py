"""What decides in the engine is configuration: each key changes what its default does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.errors import Truncated
from aeon.domain.result import RunResult
from tests.support.scripted_model import (
    ScriptedModel,
    assessment,
    blocked,
    issue,
    modify,
    plan,
    profile,
    refinement,
    report,
    unfinished,
    worked,
)


def run(model: ScriptedModel, *overrides: str) -> RunResult:
    with Aeon.from_config(["provider=simulated", *overrides], environ={}) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        return aeon.run("make tea")


def test_repair_attempts():
    def repairs(*overrides: str) -> int:
        model = ScriptedModel(plan="no JSON")
        assert run(model, *overrides).error.type == "ValidationError"
        return model.calls.count("repair")

    assert repairs() == 2
    assert repairs("schemas.repair_attempts=0") == 0
    assert repairs("schemas.repair_attempts=3") == 3


def test_the_severity_that_binds_the_planner():
    def unanswered(*overrides: str) -> list[str]:
        model = ScriptedModel(
            plan=plan("a", "b"), semantic_validation=[report(issue("i1", "a")), report()]
        )
        result = run(model, *overrides)
        binds = "severity MEDIUM and HIGH and CRITICAL bind you" in model.prompts("refinement")[0]
        assert binds == bool(overrides)
        return [each.message for each in result.advisories if each.kind == "unanswered_issue"]

    assert unanswered() == []
    (message,) = unanswered("refinement.binding_severity=MEDIUM")
    assert message.startswith("MEDIUM issue i1 got neither a change nor a reason")


@pytest.mark.slow
def test_what_a_small_task_is():
    def is_planned(*overrides: str, **judged: object) -> bool:
        model = ScriptedModel(task_profile=profile(**{"depth": 2, **judged}))  # type: ignore[arg-type]
        assert run(model, "mode=auto", *overrides).converged
        return "plan" in model.calls

    assert not is_planned()
    assert is_planned("mode.small.max_depth=1")
    assert is_planned(depth=3)
    assert not is_planned("mode.small.max_depth=3", depth=3)
    assert is_planned(expected_step_count=2)
    assert not is_planned("mode.small.max_steps=2", expected_step_count=2)
    assert is_planned(output_breadth="broad")
    assert not is_planned("mode.small.breadth=[narrow,broad]", output_breadth="broad")
    assert is_planned("tools=builtin", expected_tool_usage="minimal")
    assert not is_planned(expected_tool_usage="minimal")
    wide = "mode.small.tools=[none,minimal]"
    assert not is_planned("tools=builtin", wide, expected_tool_usage="minimal")
    assert is_planned(expected_step_count=0)


def test_the_default_profile():
    def profiled(*overrides: str) -> tuple[int, int]:
        result = run(ScriptedModel(task_profile=Truncated("cut off")), *overrides)
        return result.history.passes[1].taskprofile.reasoning_depth, result.ttl.allocated

    assert profiled() == (3, 42)
    assert profiled("ttl.default_profile.reasoning_depth=1") == (1, 28)


def test_how_many_evaluations_running_may_be_unavailable():
    def passes(*overrides: str) -> int:
        failing = Truncated("cut off")
        model = ScriptedModel(
            plan=plan("a", "b"), semantic_validation=[report(), *[failing] * 9], convergence=failing
        )
        result = run(model, *overrides)
        assert result.termination_reason == "failed"
        return result.passes

    assert passes() == 2
    assert passes("convergence.max_unavailable=1") == 1


def test_what_a_changed_profile_leaves_at_least():
    def allocated(*overrides: str) -> int:
        model = ScriptedModel(
            task_profile=[profile(5), profile(1)],
            semantic_validation=[report(), report(issue()), report()],
            step=[blocked(), worked],
            refinement=refinement(modify("only")),
            convergence=[unfinished(), assessment()],
        )
        (transition,) = run(model, *overrides).history.profile_transitions
        return transition.ttl_after

    assert allocated() == 18
    assert allocated("ttl.least_after_update=20") == 28
