"""Passes that gain nothing end a run, and the best answer is delivered."""

from __future__ import annotations

import itertools
from typing import Any, Literal

from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.history import Outcome
from aeon.plan.settings import RefinementSettings
from tests.kernel.build import run
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    clear,
    issue,
    plan,
    planned,
    refinement,
    report,
)


def changing(*scores: float, **answers: Any) -> ScriptedModel:
    """A model whose step is replaced and carried out anew in each pass."""
    steps = [f"draft{number}" for number in range(1, 10)]
    replacements = [
        refinement(action("REPLACE", before, planned(after)))
        for before, after in itertools.pairwise(steps)
    ]
    return ScriptedModel(
        plan=plan(steps[0]),
        step=[clear(f"answer {number}") for number in range(1, 10)],
        convergence=[assessment(score) for score in scores],
        # A plan of one step whose review finds nothing is not refined before it is carried out.
        refinement=replacements,
        **answers,
    )


def with_patience(model: ScriptedModel, patience: int, **options: Any) -> Outcome:
    settings = ConvergenceSettings(patience=patience, **options)
    return run(model, ttl=60, convergence=settings)


def test_passes_that_gain_nothing_end_the_run() -> None:
    outcome = with_patience(changing(0.5, 0.5, 0.5), 2)
    assert outcome.termination_reason == "plateau"
    assert outcome.history.overall_statistics.total_passes == 3


def test_no_refinement_is_asked_for_after_the_last_pass() -> None:
    model = changing(0.5, 0.5)
    with_patience(model, 1)
    assert model.calls[-1] == "convergence"


def test_the_answer_is_that_of_the_best_pass() -> None:
    outcome = with_patience(changing(0.5, 0.6, 0.4, 0.3), 2)
    assert outcome.history.overall_statistics.total_passes == 4
    assert outcome.best_pass is not None
    assert outcome.best_pass.pass_number == 2
    assert outcome.answer == outcome.best_pass.answer


def test_a_small_rise_is_no_gain() -> None:
    assert with_patience(changing(0.5, 0.52, 0.54), 2, min_gain=0.1).termination_reason == "plateau"


def test_a_run_that_gains_goes_on() -> None:
    outcome = with_patience(changing(0.5, 0.6, 0.7, 1.0), 1)
    assert outcome.termination_reason == "converged"


def test_a_run_that_is_to_be_whole_goes_on_while_the_answer_needs_more() -> None:
    chain = plan("a", planned("b", "a"))
    model = ScriptedModel(plan=chain, step=clear("done"))
    early = run(model, ttl=20)
    assert early.termination_reason == "converged"
    assert [step.status for step in early.state.plan.steps] == ["complete", "pending"]
    whole = run(
        ScriptedModel(plan=chain, step=clear("done")),
        ttl=20,
        convergence=ConvergenceSettings(when="plan_done"),
    )
    assert whole.termination_reason == "converged"
    assert [step.status for step in whole.state.plan.steps] == ["complete", "complete"]


def test_a_plateau_ends_no_run_that_is_to_be_whole_while_its_answer_needs_more() -> None:
    def outcome_when(when: Literal["any", "plan_done"]) -> Outcome:
        chain = plan(
            "a", *(planned(after, before) for before, after in itertools.pairwise("abcde"))
        )
        settings = ConvergenceSettings(patience=2, when=when)
        model = ScriptedModel(
            plan=chain, step=clear("done"), convergence=assessment(0.3), refinement=refinement()
        )
        return run(model, ttl=60, convergence=settings)

    early = outcome_when("any")
    assert (early.termination_reason, len(early.history.passes) - 1) == ("plateau", 3)
    whole = outcome_when("plan_done")
    assert (whole.termination_reason, len(whole.history.passes) - 1) == ("plateau", 5)
    assert {step.status for step in whole.state.plan.steps} == {"complete"}


def test_changes_that_touch_no_executed_step_need_no_review_where_it_is_said() -> None:
    chain = plan("a", planned("b", "a"))
    of_pending = refinement(action("MODIFY", "b", planned("b", "a", description="do b so")))

    def reviews(review: Literal["always", "executed"], proposal: Any) -> int:
        model = ScriptedModel(
            plan=chain, semantic_validation=report(issue()), refinement=[proposal, refinement()]
        )
        settings = RefinementSettings(review=review, max_attempts_total=1)
        run(model, ttl=40, refinement=settings, convergence=ConvergenceSettings(when="plan_done"))
        return model.calls.count("semantic_validation")

    assert reviews("executed", of_pending) == reviews("always", of_pending) - 1
