"""Judgements close to a threshold are made again, and the median counts."""

from __future__ import annotations

import pytest

from aeon.convergence.margin import is_close, take_median
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, ConvergenceSettings


def judged(
    completeness: float | None, coherence: float = 1.0, *, converged: bool = False
) -> ConvergenceAssessment:
    scores = ConvergenceScores(
        completeness_score=completeness, coherence_score=coherence, consistency_score=1.0
    )
    codes = ("complete",) if converged else ("incomplete",)
    return ConvergenceAssessment(converged=converged, reason_codes=codes, scores=scores)


@pytest.mark.parametrize(
    ("score", "margin", "close"),
    [(0.95, 0.0, False), (0.92, 0.03, True), (0.98, 0.03, True), (0.91, 0.03, False)],
)
def test_a_score_within_the_margin_of_its_threshold_is_close(
    score: float, margin: float, close: bool
) -> None:
    assert is_close(judged(score), ConvergenceSettings(margin=margin)) is close


def test_a_score_that_is_not_given_is_not_close() -> None:
    assert not is_close(judged(None), ConvergenceSettings(margin=0.05))


def test_the_judgement_in_the_middle_counts_whole() -> None:
    judgements = [judged(0.9), judged(0.97, converged=True), judged(0.94)]
    median = take_median(judgements)
    assert median.scores.completeness_score == 0.94
    assert not median.converged
    assert median.spread == {"completeness": 0.07, "coherence": 0.0, "consistency": 0.0}
    assert median.judgements == 3


def test_of_two_the_lower_counts() -> None:
    assert not take_median([judged(0.97, converged=True), judged(0.94)]).converged


def test_a_single_judgement_has_no_spread() -> None:
    assert take_median([judged(0.9)]).spread == {}
