"""Judges that vote, as a plug-in: a convergence engine of a person's own that takes several calls."""

from typing import Any

from aeon.convergence.engine import ConvergenceEngine
from aeon.domain.assessment import ConvergenceAssessment
from tests.kernel.build import TASK, kernel
from tests.support.scripted_model import ScriptedModel, assessment, unfinished


class ThreeJudges(ConvergenceEngine):
    """Asks three times; the majority decides."""

    cycles = 3

    def assess(self, *artefacts: Any, **given: Any) -> ConvergenceAssessment:
        votes = [super(ThreeJudges, self).assess(*artefacts, **given) for _ in range(self.cycles)]
        converged = sum(vote.converged for vote in votes) * 2 > len(votes)
        return next(vote for vote in votes if vote.converged == converged)


def test_the_majority_decides_and_each_judge_costs_a_cycle() -> None:
    model = ScriptedModel(convergence=[assessment(), unfinished(), assessment()])
    engine = kernel(model)
    engine.convergence_engine = ThreeJudges(model)
    outcome = engine.run(TASK)
    assert outcome.converged
    assert model.calls.count("convergence") == 3
    assert outcome.state.ttl_used == len(model.calls) - 1


def test_an_assessment_that_cannot_pay_all_judges_is_not_begun() -> None:
    model = ScriptedModel(convergence=assessment())
    engine = kernel(model, ttl=6)  # plan, validate, a, validate: two are left
    engine.convergence_engine = ThreeJudges(model)
    outcome = engine.run(TASK)
    assert outcome.termination_reason == "ttl_expired"
    assert "convergence" not in model.calls
