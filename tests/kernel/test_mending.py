"""Known faults of a converged answer are mended once, while there is budget."""

from __future__ import annotations

from typing import Any

import pytest

from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.errors import RequestRefused, ServerFailed
from aeon.domain.history import Outcome
from aeon.llm.stack.limits import LimitSettings
from tests.kernel.build import advisories, run
from tests.kernel.test_patience import changing
from tests.support.scripted_model import (
    ScriptedModel,
    action,
    assessment,
    clear,
    issue,
    planned,
    profile,
    refinement,
    report,
)

FAULTY = report(issue("MEDIUM"))
FOUND = {"kind": "omission", "description": "No price.", "blocking": False}


def mending(model: ScriptedModel, severity: Any = "MEDIUM", **options: Any) -> Outcome:
    settings = ConvergenceSettings(open_severity=severity)
    return run(model, **{"ttl": 60, "convergence": settings, **options})


def reviewed(*scores: float, reports: list[Any]) -> ScriptedModel:
    """A model whose passes are reviewed so; each refinement has a review of its change before."""
    script = [report()]
    for each in reports:
        script += [each, report()]
    return changing(*scores, semantic_validation=script)


def test_a_converged_answer_with_faults_is_refined_once_before_it_is_accepted() -> None:
    model = reviewed(1.0, 1.0, reports=[FAULTY, FAULTY])
    outcome = mending(model)
    assert outcome.termination_reason == "converged"
    assert outcome.history.overall_statistics.total_passes == 2
    assert outcome.answer == "answer 2"


def test_without_it_a_run_converges_over_its_faults() -> None:
    outcome = run(reviewed(1.0, reports=[FAULTY]), ttl=60)
    assert outcome.history.overall_statistics.total_passes == 1


def test_faults_below_the_severity_are_left() -> None:
    outcome = mending(reviewed(1.0, reports=[FAULTY]), "HIGH")
    assert outcome.history.overall_statistics.total_passes == 1


@pytest.mark.parametrize(("mode", "step"), [("adaptive", "draft1"), ("auto", "answer")])
def test_what_the_judge_alone_found_is_mended_as_low(mode: Any, step: str) -> None:
    model = reviewed(1.0, reports=[report(), report()])
    model._answers["task_profile"] = [profile(2)]
    model._answers["convergence"] = [assessment(issues=[FOUND]), assessment()]
    model._answers["refinement"] = [refinement(action("REPLACE", step, planned("again")))]
    outcome = mending(model, "LOW", mode=mode)
    assert (outcome.termination_reason, outcome.answer) == ("converged", "answer 2")
    [prompt] = model.prompts("refinement")
    assert "No price." in prompt


def test_what_the_judge_alone_found_is_below_medium() -> None:
    model = reviewed(1.0, reports=[report()])
    model._answers["convergence"] = [assessment(issues=[FOUND])]
    assert mending(model).answer == "answer 1"


def test_an_answer_that_got_worse_by_mending_is_set_back_and_the_run_has_converged() -> None:
    model = reviewed(1.0, 0.4, 0.4, 0.4, reports=[FAULTY] * 4)
    settings = ConvergenceSettings(open_severity="MEDIUM", patience=2)
    outcome = mending(model, convergence=settings)
    assert (outcome.termination_reason, outcome.converged) == ("converged", True)
    assert outcome.answer == "answer 1"
    assert outcome.history.final_convergence is not None
    assert outcome.history.final_convergence.converged
    assert advisories(outcome, "set_back")


def test_a_budget_that_ends_meanwhile_leaves_the_answer_that_had_converged() -> None:
    model = reviewed(1.0, 0.4, reports=[FAULTY] * 4)
    outcome = mending(model, ttl=8)
    assert (outcome.termination_reason, outcome.answer) == ("converged", "answer 1")


def test_one_refinement_is_made_and_no_more() -> None:
    model = reviewed(1.0, 1.0, 1.0, reports=[FAULTY] * 4)
    outcome = mending(model)
    assert outcome.history.overall_statistics.total_passes == 2
    model = reviewed(1.0, 0.4, 0.4, reports=[FAULTY] * 4)
    outcome = mending(model)
    assert outcome.history.overall_statistics.total_passes == 2
    assert (outcome.termination_reason, outcome.answer) == ("converged", "answer 1")


def test_the_last_pass_that_is_allowed_is_accepted_with_its_faults() -> None:
    outcome = mending(reviewed(1.0, reports=[FAULTY]), limits=LimitSettings(max_passes=1))
    assert outcome.history.overall_statistics.total_passes == 1
    assert outcome.termination_reason == "converged"


def test_a_mended_answer_that_converged_is_given_where_the_best_is_asked_for() -> None:
    model = reviewed(1.0, 0.99, reports=[FAULTY, report()])
    assert mending(model, takes_best=True).answer == "answer 2"


@pytest.mark.parametrize(
    "failure", [ServerFailed("down", status=500), RequestRefused("no", status=400)]
)
def test_an_answer_that_cannot_be_replaced_stays(failure: Exception) -> None:
    model = reviewed(1.0, 1.0, reports=[FAULTY] * 3)
    answers = iter([clear("answer 1")])
    model._answers["step"] = [lambda _: next(answers, failure)]
    outcome = mending(model)
    assert (outcome.termination_reason, outcome.answer) == ("converged", "answer 1")
    assert outcome.error is None
    assert advisories(outcome, "set_back")
