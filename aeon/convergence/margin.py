"""Judgements close to a threshold: when to repeat one, and which of several counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from aeon.domain.assessment import SCORE_CODES, ConvergenceAssessment, ConvergenceSettings
from aeon.domain.errors import LLMError, ValidationError, go_on_without
from aeon.domain.request import Budget, ask_sample

MOST_JUDGEMENTS = 3
_ROUNDING = 1e-9


def settle_judgement(
    first: ConvergenceAssessment,
    settings: ConvergenceSettings,
    budget: Budget,
    assess: Callable[[], ConvergenceAssessment],
    cycles: int,
) -> ConvergenceAssessment:
    """Return the median of several judgements, costing `cycles` each, if the first is close to a
    threshold and more are affordable; failed ones are left out. Raises errors that end the run."""
    judgements = [first]
    most = MOST_JUDGEMENTS if is_close(first, settings) else 1
    for number in range(1, most):
        if not budget.affordable(cycles):
            break
        again = partial(ask_sample, number, assess)
        try:
            judgements.append(budget.call("convergence", again, cycles=cycles))
        except (LLMError, ValidationError) as error:
            go_on_without(error)
    return take_median(judgements)


def is_close(assessment: ConvergenceAssessment, settings: ConvergenceSettings) -> bool:
    """Whether a score is within `convergence.margin` of its threshold, so that another judgement
    might decide otherwise. Always False for a margin of 0."""
    distances = (
        abs(score - getattr(settings, name))
        for name, score in _read_scores(assessment).items()
        if score is not None
    )
    return settings.margin > 0 and any(
        distance <= settings.margin + _ROUNDING for distance in distances
    )


def take_median(judgements: Sequence[ConvergenceAssessment]) -> ConvergenceAssessment:
    """Return the middle judgement by verdict and lowest score, the lower of two, with the number of
    judgements and the spread of each score."""
    if len(judgements) == 1:
        return judgements[0]
    ordered = sorted(judgements, key=_rank)
    median = ordered[(len(ordered) - 1) // 2]
    repeated = {"judgements": len(judgements), "spread": _measure_spread(judgements)}
    return median.model_copy(update=repeated)


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
