"""What a run tells of itself, and in what order."""

from __future__ import annotations

from aeon.domain import events
from aeon.domain.errors import ServerFailed
from tests.kernel.build import names, run
from tests.support.scripted_model import (
    ScriptedModel,
    blocked,
    issue,
    modify,
    plan,
    planned,
    profile,
    refinement,
    report,
    unfinished,
)

CALL = ["CycleStarted", "CallAnswered", "CycleFinished"]


def phase(*inside: str) -> list[str]:
    return ["PhaseStarted", *inside, "PhaseFinished"]


def test_a_run_of_one_pass_tells_of_each_phase_and_of_what_came_of_it() -> None:
    seen: list[events.Recorded] = []
    run(ScriptedModel(), seen=seen)
    assert names(seen) == [
        *phase(*CALL, "ProfileInferred"),
        "PassStarted",
        *phase(*CALL),
        *phase(*CALL, "Validated"),
        *phase("Refined"),
        "PassFinished",
        "PlanMade",
        "PassStarted",
        *phase("CycleStarted", "StepStarted", "CallAnswered", "CycleFinished", "StepFinished"),
        *phase(*CALL, "Validated", *CALL, "Assessed"),
        "PassFinished",
        "RunFinished",
    ]
    assert (seen[0].sequence, seen[0].part) == (1, 0)


def test_in_core_mode_the_plan_stands_in_the_first_pass_alone() -> None:
    steps = plan("a", planned("b", "a"), planned("c", "b"))
    outcome = run(ScriptedModel(plan=steps), mode="core", base_ttl=25)
    there = [passed.plan_state is not None for passed in outcome.history.passes]
    assert there == [True, True, False, False]


def test_a_provider_that_is_down_when_the_profile_is_updated_ends_the_run() -> None:
    model = ScriptedModel(
        task_profile=[profile(2), ServerFailed("503: down")],
        plan=plan("a", "b"),
        semantic_validation=[report(), report(issue())],
        refinement=[refinement(), refinement(modify("a"))],
        step=blocked(),
        convergence=unfinished(),
    )
    outcome = run(model)
    assert (outcome.error.type, outcome.error.message) == ("ServerFailed", "503: down")
    assert model.calls[-1] == "task_profile"
