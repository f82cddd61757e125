"""Judgements close to a threshold: when one is made again, and which of several counts."""

from __future__ import annotations

from collections.abc import Sequence

from aeon.domain.assessment import SCORE_CODES, ConvergenceAssessment, ConvergenceSettings

MOST_JUDGEMENTS = 3
_ROUNDING = 1e-9


def is_close(assessment: ConvergenceAssessment, settings: ConvergenceSettings) -> bool:
    """Whether a score is within `convergence.margin` of its threshold, so that another judgement
    might decide otherwise. Never with a margin of 0."""
    distances = (
        abs(score - getattr(settings, name))
        for name, score in _read_scores(assessment).items()
        if score is not None
    )
    return settings.margin > 0 and any(
        distance <= settings.margin + _ROUNDING for distance in distances
    )


def take_median(judgements: Sequence[ConvergenceAssessment]) -> ConvergenceAssessment:
    """The judgement in the middle, by verdict and least score, the lower of two; with how far each
    score went apart."""
    if len(judgements) == 1:
        return judgements[0]
    ordered = sorted(judgements, key=_rank)
    median = ordered[(len(ordered) - 1) // 2]
    return median.model_copy(update={"spread": _measure_spread(judgements)})


def _rank(assessment: ConvergenceAssessment) -> tuple[bool, float]:
    scores = [score for score in _read_scores(assessment).values() if score is not None]
    return assessment.converged, min(scores, default=0.0)


def _measure_spread(judgements: Sequence[ConvergenceAssessment]) -> dict[str, float]:
    by_name = {
        name: [score for each in judgements if (score := _read_scores(each)[name]) is not None]
        for name in SCORE_CODES
    }
    return {name: round(max(scores) - min(scores), 6) for name, scores in by_name.items() if scores}


def _read_scores(assessment: ConvergenceAssessment) -> dict[str, float | None]:
    return {name: assessment.scores[f"{name}_score"] for name in SCORE_CODES}
