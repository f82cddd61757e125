"""The way forward of a spent TTL suffices by the forecast that was printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aeon.app.aeon import Aeon
from aeon.domain.events import PlanMade, Recorded
from aeon.domain.result import RunResult
from aeon.report.ending import raise_limits
from tests.support.scripted_model import ScriptedModel, plan, planned, profile, unfinished

STEPS = 12


def run(*overrides: str, **judged: Any) -> tuple[RunResult, int]:
    """A run of a chain of steps that never converges, and the forecast that was printed."""
    forecasts = []

    def note(recorded: Recorded) -> None:
        if isinstance(recorded.event, PlanMade):
            forecasts.append(recorded.event.expected_calls)

    chain = [planned(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(STEPS)]
    model = ScriptedModel(
        task_profile=profile(**{"depth": 1, **judged}), plan=plan(*chain), convergence=unfinished()
    )
    with Aeon.from_config(["provider=simulated", *overrides], environ={}) as aeon:
        aeon._process = replace(aeon._process, adapter=model)
        result = aeon.run("make tea", observers=[note])
    return result, forecasts[0]


@pytest.mark.parametrize(
    ("overrides", "judged"),
    [
        ((), {}),
        (("ttl.limit=20",), {}),
        (("limits.max_llm_calls=20",), {}),
        (("ttl.base=3",), {}),
        ((), {"expected_step_count": 22}),
        (("ttl.extra_step=0", "ttl.base=4"), {}),
        (("mode=core", "ttl.base=5"), {}),
    ],
)
def test_what_is_proposed_gives_as_much_as_was_expected_and_twice_what_there_was(
    overrides: tuple[str, ...], judged: dict[str, Any]
) -> None:
    before, expected = run(*overrides, **judged)
    assert before.termination_reason == "ttl_expired"
    after, _ = run(*overrides, *raise_limits(before), **judged)
    assert after.ttl.allocated >= max(expected, 2 * before.ttl.allocated)


@pytest.mark.parametrize("mode", ["adaptive", "core"])
def test_passes_are_raised_to_what_the_plan_takes(mode: str) -> None:
    before, _ = run("limits.max_passes=2", "ttl.base=40", f"mode={mode}")
    assert before.termination_reason == "max_passes"
    assert raise_limits(before) == [f"limits.max_passes={STEPS}"]


def test_a_cap_is_raised_to_what_the_plan_was_expected_to_take() -> None:
    before, expected = run("limits.max_llm_calls=8")
    assert before.termination_reason == "max_llm_calls"
    (raised,) = raise_limits(before)
    assert int(raised.removeprefix("limits.max_llm_calls=")) >= expected
