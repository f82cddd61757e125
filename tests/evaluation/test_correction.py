"""Judged pass rates, corrected by what is known of the judge's errors."""

from random import Random

import pytest

from aeon.domain.assessment import Calibration
from aeon.evaluation.correction import correct_rate


def calibration(
    sensitivity: float = 0.9, specificity: float = 0.8, good: int = 60, bad: int = 40
) -> Calibration:
    return Calibration(
        threshold=0.9,
        max_false=0.1,
        at_most=0.1,
        passes=3,
        models=("m",),
        hashes={},
        good=good,
        bad=bad,
        repeat=1,
        sensitivity=sensitivity,
        specificity=specificity,
    )


def test_a_rate_is_corrected_by_both_errors_of_the_judge() -> None:
    """Of 100 answers 60 are good: the judge lets 54 of these pass, and 8 of the 40 bad ones."""
    corrected = correct_rate(0.62, 100, calibration())
    assert corrected is not None
    assert corrected.share == pytest.approx(0.6)
    assert corrected.interval.low < 0.6 < corrected.interval.high


def test_a_judge_without_error_changes_nothing_and_few_labels_of_it_leave_doubt() -> None:
    few = correct_rate(0.7, 100, calibration(1.0, 1.0, 10, 10))
    many = correct_rate(0.7, 100, calibration(1.0, 1.0, 1_000, 1_000))
    assert few is not None
    assert many is not None
    assert few.share == many.share == pytest.approx(0.7)
    assert few.interval.low < many.interval.low
    assert many.interval.high < few.interval.high


@pytest.mark.parametrize(("judged", "share"), [(0.05, 0.0), (0.99, 1.0)])
def test_a_corrected_rate_is_a_share(judged: float, share: float) -> None:
    corrected = correct_rate(judged, 50, calibration())
    assert corrected is not None
    assert corrected.share == share
    assert 0 <= corrected.interval.low <= corrected.interval.high <= 1


def test_a_judge_at_chance_corrects_nothing() -> None:
    assert correct_rate(0.5, 50, calibration(0.6, 0.4)) is None
    assert correct_rate(0.5, 50, calibration(0.3, 0.5)) is None


@pytest.mark.slow
@pytest.mark.parametrize("rows", [20, 40, 160])
@pytest.mark.parametrize("good", [0.2, 0.6, 0.9])
@pytest.mark.parametrize(("sensitivity", "specificity"), [(0.85, 0.9), (0.95, 0.95)])
def test_the_interval_holds_the_true_share_in_95_of_100_measurements(
    rows: int, good: float, sensitivity: float, specificity: float
) -> None:
    """Each with labels and answers of its own; a little more often where the judge is hardly ever wrong."""
    random = Random(19)

    def count(share: float, of: int) -> int:
        return sum(random.random() < share for _ in range(of))

    passing = good * sensitivity + (1 - good) * (1 - specificity)
    held = 0
    for _ in range(1_500):
        found = calibration(count(sensitivity, 60) / 60, count(specificity, 40) / 40)
        corrected = correct_rate(count(passing, rows) / rows, rows, found)
        assert corrected is not None
        held += corrected.interval.low <= good <= corrected.interval.high
    assert 0.93 <= held / 1_500 <= 0.99
