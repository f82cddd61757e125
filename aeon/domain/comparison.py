"""Two answers to one task beside each other."""

from __future__ import annotations

from typing import Literal

from aeon.domain.values import Value

Preference = Literal["first", "second", "neither"]
ComparedWithEarlier = Literal["better", "as_good", "worse"]


class Preferred(Value):
    """Which of two answers one judgement found better, and why, in the model's words."""

    better: Preference
    explanation: str = ""


class AnswerComparison(Value):
    """A later answer against an earlier one: `better` or `worse` only where the judgements of both
    orders agree. `explanations` are theirs, in the order in which they were asked."""

    outcome: ComparedWithEarlier
    explanations: tuple[str, ...] = ()


def settle_comparison(later_second: Preferred, later_first: Preferred) -> AnswerComparison:
    """What two judgements of the same answers come to: one that was shown the later answer second,
    and one that was shown it first."""
    outcome: ComparedWithEarlier = "as_good"
    if (later_second.better, later_first.better) == ("second", "first"):
        outcome = "better"
    if (later_second.better, later_first.better) == ("first", "second"):
        outcome = "worse"
    explanations = (later_second.explanation, later_first.explanation)
    return AnswerComparison(outcome=outcome, explanations=tuple(filter(None, explanations)))
