"""A threshold keeps its promise: held against scipy, and against judges whose errors are known."""

from collections.abc import Callable
from random import Random

import pytest
from scipy import stats

from aeon.evaluation.calibration.promise import (
    SHARES,
    LabelledScore,
    bound_share,
    count_needed,
    find_promised,
    fisher_greater,
    spread_over_passes,
    tells_apart,
    tolerate_in_one_look,
    try_thresholds,
)
from aeon.evaluation.statistics import LEVEL

Score = Callable[[Random, bool], float]


def labels(good: int, bad: int, of_good: float = 1.0, of_bad: float = 0.2) -> list[LabelledScore]:
    return [LabelledScore(True, of_good)] * good + [LabelledScore(False, of_bad)] * bad


@pytest.mark.parametrize(
    ("wrong", "of", "risk"), [(0, 5, 0.05), (3, 40, 0.0125), (20, 160, 0.05), (7, 2000, 0.01)]
)
def test_the_bound_of_a_share_is_that_of_clopper_and_pearson(
    wrong: int, of: int, risk: float
) -> None:
    expected = stats.beta.ppf(1 - risk, wrong + 1, of - wrong)
    assert bound_share(wrong, of, risk) == pytest.approx(expected, rel=1e-9)


def test_nothing_that_passed_bounds_nothing() -> None:
    assert bound_share(0, 0, 0.05) == 1.0
    assert bound_share(4, 4, 0.05) == 1.0
    assert bound_share(0, 1000, 0.0) == 1.0


@pytest.mark.parametrize(
    ("right", "passed", "good", "of"), [(8, 9, 10, 20), (3, 5, 6, 9), (2, 2, 4, 4)]
)
def test_telling_apart_is_fishers_exact_test(right: int, passed: int, good: int, of: int) -> None:
    table = [[right, passed - right], [good - right, of - good - passed + right]]
    expected = stats.fisher_exact(table, alternative="greater").pvalue
    assert fisher_greater(right, passed, good, of) == pytest.approx(expected)


def test_one_look_may_be_wrong_as_often_as_the_run() -> None:
    assert tolerate_in_one_look(0.1, 1) == pytest.approx(0.1)
    assert tolerate_in_one_look(0.1, 3) == pytest.approx(0.1 / 2.8)


@pytest.mark.parametrize("passes", [1, 2, 5, 20])
def test_what_is_tolerated_in_one_look_comes_to_what_is_tolerated_in_all(passes: int) -> None:
    assert spread_over_passes(tolerate_in_one_look(0.1, passes), passes) == pytest.approx(0.1)


def test_the_shares_of_the_risk_are_all_of_it_and_the_strictest_threshold_comes_first() -> None:
    thresholds = [threshold for threshold, _ in SHARES]
    assert thresholds == sorted(thresholds, reverse=True)
    assert sum(share for _, share in SHARES) == pytest.approx(1)


def test_a_judge_without_error_is_promised_a_threshold_with_enough_labels() -> None:
    promised = find_promised(try_thresholds(labels(130, 40), 0.1, 3))
    assert promised is not None
    assert promised.wrong == 0
    assert promised.at_most <= 0.1


def test_the_threshold_that_lets_most_good_answers_pass_is_taken_and_of_several_the_strictest() -> (
    None
):
    judged = [*labels(150, 40, 0.92), *labels(30, 0, 0.86), *labels(10, 0, 0.4)]
    promised = find_promised(try_thresholds(judged, 0.1, 3))
    assert promised is not None
    assert (promised.threshold, promised.passed) == (0.85, 180)


def test_as_many_labels_are_needed_as_are_said_to_be() -> None:
    needed = count_needed(0, 0.1, 3, LEVEL / 4)
    assert find_promised(try_thresholds(labels(needed, 40), 0.1, 3)) is not None
    assert find_promised(try_thresholds(labels(needed - 1, 40), 0.1, 3)) is None


def test_more_looks_need_more_labels() -> None:
    needed = [count_needed(0, 0.1, passes, LEVEL / 4) for passes in (1, 3, 10)]
    assert needed == sorted(needed)
    assert needed[0] < needed[2] / 8


def test_a_threshold_below_what_bad_answers_get_is_not_promised() -> None:
    tried = {one.threshold: one for one in try_thresholds(labels(200, 60, 0.95, 0.82), 0.1, 1)}
    assert tried[0.85].is_promised
    assert not tried[0.8].is_promised
    assert tried[0.8].wrong == 60


def test_a_judge_that_calls_everything_good_is_promised_nothing_however_few_are_bad() -> None:
    judged = labels(980, 20, 1.0, 1.0)
    assert not tells_apart(judged, 0.9)
    tried = try_thresholds(judged, 0.1, 1)
    assert tried[2].at_most <= 0.1
    assert find_promised(tried) is None


def sharp(random: Random, good: bool) -> float:
    return random.gauss(0.95, 0.04) if good else random.gauss(0.60, 0.12)


def dull(random: Random, good: bool) -> float:
    return random.gauss(0.88, 0.10) if good else random.gauss(0.80, 0.12)


def at_chance(random: Random, good: bool) -> float:
    return random.gauss(0.9, 0.1)


def at_the_edge(random: Random, good: bool) -> float:
    """At every threshold one look lets pass 11 % that are bad: a little more than is promised of one."""
    if random.random() >= (0.9 if good else 0.2596):
        return 0.1
    return random.choice((0.98, 0.91, 0.82, 0.65))


def is_converged_rightly(
    random: Random, threshold: float, passes: int, score: Score, *, changes: bool
) -> bool | None:
    """Whether a run converged on a good answer; None where it did not converge. Its answer stays as
    it is in all passes, or is another one in each."""
    good = random.random() < GOOD
    for _ in range(passes):
        if score(random, good) >= threshold:
            return good
        good = random.random() < GOOD if changes else good
    return None


def measure_wrong(threshold: float, passes: int, score: Score, *, changes: bool) -> float:
    """The share of runs called converged that are wrong."""
    random = Random(5)
    ends = [
        is_converged_rightly(random, threshold, passes, score, changes=changes)
        for _ in range(6_000)
    ]
    converged = [end for end in ends if end is not None]
    return converged.count(False) / len(converged) if converged else 0.0


GOOD = 0.7
"""The share of answers that are good, among labels and in runs."""
CALIBRATIONS = 200


@pytest.mark.slow
@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("changes", [False, True])
@pytest.mark.parametrize(
    ("score", "fewest_promised"), [(sharp, 130), (dull, 0), (at_chance, 0), (at_the_edge, 0)]
)
def test_of_the_runs_called_converged_no_more_are_wrong_than_was_promised(
    score: Score, fewest_promised: int, changes: bool, passes: int
) -> None:
    """In 95 of 100 calibrations at least, each of labels of its own."""
    random = Random(19)
    wrong = {
        threshold: measure_wrong(threshold, passes, score, changes=changes)
        for threshold, _ in SHARES
    }
    promised = []
    for _ in range(CALIBRATIONS):
        goods = [random.random() < GOOD for _ in range(350)]
        judged = [LabelledScore(good, score(random, good)) for good in goods]
        promised.append(find_promised(try_thresholds(judged, 0.1, passes)))
    thresholds = [one.threshold for one in promised if one is not None]
    broken = sum(wrong[threshold] > 0.1 for threshold in thresholds)
    assert broken <= CALIBRATIONS * LEVEL
    assert len(thresholds) >= fewest_promised


@pytest.mark.slow
def test_the_bound_is_near_what_it_promises() -> None:
    """Where one look decides, about as many calibrations are wrong as may be: a bound that never
    fails would ask for labels that nobody needs."""
    random = Random(3)
    failed = 0
    for _ in range(2_000):
        wrong = sum(random.random() < 0.101 for _ in range(300))
        failed += bound_share(wrong, 300, LEVEL) <= 0.1
    assert 0.02 <= failed / 2_000 <= LEVEL + 0.01
