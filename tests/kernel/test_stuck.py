"""A run that cannot go on by itself: what is tried again, what ends it, and with which words (FR-066, FR-067)."""

from __future__ import annotations

import pytest

from aeon.domain.errors import AuthenticationFailed, Refused, ServerFailed, Truncated
from aeon.plan.settings import RefinementSettings
from tests.kernel.build import advisories, run, statuses
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    add,
    assessment,
    blocked,
    clear,
    modify,
    plan,
    planned,
    refinement,
    report,
    unfinished,
)

SUBPLAN = {"subplan_goal": "in detail", "substeps": [planned("x")]}


def at_first(request):
    """Step a is blocked until it is changed."""
    is_changed = "better" in request.messages[-1].content
    if request.site.step_id == "a" and not is_changed:
        return blocked()
    return clear(f"output of {request.site.step_id}")


def blocked_once(**answers) -> ScriptedModel:
    """A model whose first step is blocked, and goes through once it is refined."""
    return ScriptedModel(
        **{
            "plan": plan("a", planned("b", "a")),
            "step": at_first,
            "refinement": [refinement(), refinement(modify("a"))],
            "subplan": SUBPLAN,
            "convergence": [unfinished(), unfinished(), unfinished(), assessment()],
            **answers,
        }
    )


@pytest.mark.parametrize("error", [Truncated("cut off"), Refused("no")], ids=repr)
def test_after_one_refinement_that_could_not_be_used_the_next_pass_tries_again(error):
    outcome = run(blocked_once(refinement=[refinement(), error, refinement(modify("a"))]))
    assert outcome.converged
    assert statuses(outcome) == {"a": "complete", "b": "complete"}


@pytest.mark.parametrize("error", [Truncated("cut off"), Refused("no")], ids=repr)
def test_two_refinements_running_that_could_not_be_used_end_the_run_with_their_error(error):
    outcome = run(blocked_once(refinement=[refinement(), error, error, refinement(modify("a"))]))
    assert outcome.termination_reason == "failed"
    assert outcome.error.type == type(error).__name__
    assert outcome.history.overall_statistics.total_passes == 2
    assert outcome.state.plan.step("a").step_output == "half"


def test_refinements_that_could_not_be_used_do_not_end_a_run_that_has_work_left():
    steps = [planned(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(4)]
    low = unfinished()
    outcome = run(
        ScriptedModel(
            plan=plan(*steps),
            refinement=Truncated("cut off"),
            convergence=[low, low, low, assessment()],
        ),
        refinement=RefinementSettings(when="always"),
    )
    assert outcome.converged


def test_a_subplan_or_a_review_that_could_not_be_had_is_tried_again_by_the_next_pass():
    decompose = refinement(action("SUBPLAN_CREATE", "a"))
    for call in ("subplan", "semantic_validation"):
        faulty = {
            "subplan": {"subplan": [Refused("no"), SUBPLAN]},
            # The plan's, pass 1's, and the change's.
            "semantic_validation": {
                "semantic_validation": [report(), report(), Refused("no"), report()]
            },
        }[call]
        outcome = run(
            blocked_once(refinement=[refinement(), decompose, decompose, refinement()], **faulty)
        )
        assert outcome.termination_reason != "stalled", call
        assert "a.x" in statuses(outcome), call


@pytest.mark.parametrize(
    "call",
    ["task_profile", "plan", "semantic_validation", "refinement", "subplan", "step", "convergence"],
)
@pytest.mark.parametrize("error", [ServerFailed("503"), AuthenticationFailed("401")], ids=repr)
def test_a_provider_that_is_down_ends_the_run_with_its_error_whichever_call_meets_it(call, error):
    healthy = {
        "subplan": SUBPLAN,
        "refinement": [refinement(), refinement(action("SUBPLAN_CREATE", "a"))],
    }
    outcome = run(blocked_once(**{**healthy, call: error}))
    assert outcome.termination_reason == "failed"
    assert (outcome.error.type, outcome.error.message) == (type(error).__name__, error.message)


def test_a_provider_that_is_down_at_the_review_of_a_change_ends_the_run():
    change = refinement(modify("a"))
    reviews = [report(), report(), ServerFailed("503")]
    outcome = run(blocked_once(refinement=[refinement(), change], semantic_validation=reviews))
    assert outcome.error.message == "503"


def test_at_the_global_limit_what_depends_on_a_blocked_step_runs_with_its_best_output():
    scores = [unfinished(), assessment()]
    model = blocked_once(refinement=refinement(add("c", "b")), convergence=scores)
    outcome = run(model, refinement=RefinementSettings(max_attempts_total=1))
    assert outcome.converged
    assert outcome.state.plan.step("b").status == "complete"
    assert outcome.state.manual_intervention == ("a",)
    assert "half" in model.prompts("step")[-1]
    assert advisories(outcome, "refinement_limit")
    assert advisories(outcome, "manual_intervention")
