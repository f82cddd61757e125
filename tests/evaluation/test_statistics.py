"""What a few rows tell of all rows, held against scipy and against simulated measurements."""

import itertools
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from aeon.evaluation.statistics import (
    bootstrap_mean,
    change_interval,
    mcnemar,
    mcnemar_worse,
    pass_all,
    pass_at,
    rate_interval,
    rows_to_decide,
    student_quantile,
    wilson_interval,
)

PAGE = Path(__file__).parents[2] / "docs" / "eval.md"


@pytest.mark.parametrize(("passed", "of"), [(0, 1), (0, 20), (7, 20), (20, 20), (159, 160)])
def test_wilsons_interval_is_that_of_scipy(passed: int, of: int) -> None:
    expected = stats.binomtest(passed, of).proportion_ci(method="wilson")
    assert wilson_interval(passed / of, of) == pytest.approx((expected.low, expected.high))


def test_rows_that_are_run_once_have_wilsons_interval() -> None:
    assert rate_interval([1, 1, 0, 1], 1) == wilson_interval(0.75, 4)


def test_repeated_answers_that_all_resemble_each_other_tell_no_more_than_one_answer() -> None:
    assert rate_interval([5, 5, 0, 5], 5) == wilson_interval(0.75, 4)


def test_repeated_answers_that_differ_as_independent_ones_do_tell_as_much_as_all_of_them() -> None:
    assert rate_interval([3, 2, 3, 2, 3, 2, 2, 3], 5) == wilson_interval(0.5, 40)


def test_rows_that_all_passed_tell_nothing_about_repeating_them() -> None:
    assert rate_interval([5, 5, 5, 5], 5) == wilson_interval(1.0, 4)


def test_the_chance_that_one_of_k_answers_passes_is_that_of_drawing_them() -> None:
    assert pass_at(2, 5, 1) == pytest.approx(2 / 5)
    assert pass_at(2, 5, 2) == pytest.approx(1 - 3 / 10)
    assert pass_at(0, 5, 5) == 0
    assert pass_at(1, 5, 5) == 1


def test_the_chance_that_all_of_k_answers_pass_is_that_of_drawing_them() -> None:
    assert pass_all(3, 5, 1) == pytest.approx(3 / 5)
    assert pass_all(3, 5, 2) == pytest.approx(3 / 10)
    assert pass_all(4, 5, 5) == 0
    assert pass_all(5, 5, 5) == 1


@pytest.mark.parametrize("k", [1, 2, 3])
def test_neither_chance_is_biased(k: int) -> None:
    of, chance = 6, 0.3
    binomial = stats.binom(of, chance)
    weights = [(passed, float(binomial.pmf(passed))) for passed in range(of + 1)]
    at_least_one = sum(weight * pass_at(passed, of, k) for passed, weight in weights)
    all_of_them = sum(weight * pass_all(passed, of, k) for passed, weight in weights)
    assert at_least_one == pytest.approx(1 - (1 - chance) ** k)
    assert all_of_them == pytest.approx(chance**k)


@pytest.mark.parametrize(("freedom", "within"), [(1, 1e-9), (2, 1e-9), (3, 1e-2), (19, 1e-6)])
def test_the_quantile_of_student_is_that_of_scipy(freedom: int, within: float) -> None:
    expected = float(stats.t.ppf(0.975, freedom))
    assert student_quantile(0.975, freedom) == pytest.approx(expected, abs=within)


def test_the_bootstrap_interval_of_many_values_is_that_of_scipy() -> None:
    random = Random(1)
    values = [random.gauss(0.2, 1.0) for _ in range(400)]
    expected = stats.bootstrap((values,), fmean, vectorized=False, rng=1, n_resamples=2000)
    interval = bootstrap_mean(values)
    assert interval == pytest.approx(expected.confidence_interval, abs=0.02)


def test_the_bootstrap_draws_the_same_each_time() -> None:
    values = [0.0, 1.0, 0.5, 0.25, 1.0]
    assert bootstrap_mean(values) == bootstrap_mean(list(values))


def test_the_bootstrap_of_paired_values_draws_the_same_rows_of_each() -> None:
    values = [0.0, 1.0, 0.5, 0.25, 1.0]
    interval, higher = bootstrap_mean(values), bootstrap_mean([value + 2 for value in values])
    assert interval is not None
    assert higher == pytest.approx((interval.low + 2, interval.high + 2))


def test_one_value_has_no_interval() -> None:
    assert bootstrap_mean([0.5]) is None


@pytest.mark.parametrize(("improved", "degraded"), [(0, 0), (0, 5), (0, 6), (3, 9), (40, 61)])
def test_mcnemars_test_is_the_binomial_one_of_scipy(improved: int, degraded: int) -> None:
    changed = improved + degraded
    if changed == 0:
        assert mcnemar(0, 0) == mcnemar_worse(0, 0) == 1
        return
    two_sided = stats.binomtest(improved, changed).pvalue
    worse = stats.binomtest(degraded, changed, alternative="greater").pvalue
    assert mcnemar(improved, degraded) == pytest.approx(two_sided)
    assert mcnemar_worse(improved, degraded) == pytest.approx(worse)


def test_no_number_of_rows_decides_where_there_is_no_difference() -> None:
    assert rows_to_decide(4, 4, 40) is None
    assert rows_to_decide(0, 0, 40) is None


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
def test_never_fewer_rows_decide_than_the_exact_test_needs(rows: int) -> None:
    needed = rows_to_decide(0, rows, rows)
    assert needed == 6
    assert mcnemar(0, needed) <= 0.05 < mcnemar(0, needed - 1)


def test_of_rows_that_change_now_and_then_more_are_needed() -> None:
    assert rows_to_decide(4, 0, 5) == 8  # of which six change


def test_a_larger_difference_needs_fewer_rows() -> None:
    large, small = rows_to_decide(16, 2, 40), rows_to_decide(5, 3, 40)
    assert large is not None
    assert small is not None
    assert large < 40 < small


def test_so_many_rows_find_the_difference_in_four_of_five_measurements() -> None:
    improves, degrades = 0.25, 0.1
    rows = rows_to_decide(25, 10, 100)
    assert rows is not None
    random = Random(2)
    found = 0
    for _ in range(1_000):
        drawn = random.choices((1, -1, 0), (improves, degrades, 1 - improves - degrades), k=rows)
        found += mcnemar(drawn.count(1), drawn.count(-1)) <= 0.05
    assert 0.75 <= found / 1_000 <= 0.85


SIZES = (20, 40, 160)


@pytest.mark.parametrize("rows", SIZES)
def test_wilsons_interval_holds_95_of_100_rates_whatever_they_are(rows: int) -> None:
    rates = [number / 1000 for number in range(20, 981)]
    held = np.zeros(len(rates))
    for passed in range(rows + 1):
        low, high = wilson_interval(passed / rows, rows)
        is_inside = [low <= rate <= high for rate in rates]
        held += stats.binom.pmf(passed, rows, rates) * is_inside
    assert 0.94 <= fmean(held) <= 0.96
    assert list_figures(rows)[0] == f"{100 * fmean(held):.1f} %"
    range_of_rates = f"{100 * min(held):.1f} to {100 * max(held):.1f} %"
    assert list_figures(rows, single=True)[0] == range_of_rates


@pytest.mark.slow
@pytest.mark.parametrize("rows", SIZES)
def test_the_interval_of_repeated_rows_holds_95_of_100_rates(rows: int) -> None:
    """Rows differ in how hard they are: their chances are drawn around the rate."""
    random = Random(rows)
    held, trials, repeat = 0, 4_000, 4
    for _ in range(trials):
        rate = random.uniform(0.02, 0.98)
        chances = (random.betavariate(2 * rate, 2 * (1 - rate)) for _ in range(rows))
        passed = [sum(random.random() < chance for _ in range(repeat)) for chance in chances]
        low, high = rate_interval(passed, repeat)
        held += low <= rate <= high
    assert 0.94 <= held / trials <= 0.96


def draw_thirds(random: Random, rows: int) -> tuple[float, list[float]]:
    """The true difference of two arms whose scores are of three checks each, and some rows'."""
    one, other = random.uniform(0.3, 0.8), random.uniform(0.3, 0.8)
    scores = [
        (sum(random.random() < one for _ in range(3)), sum(random.random() < other for _ in "abc"))
        for _ in range(rows)
    ]
    return one - other, [(first - second) / 3 for first, second in scores]


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "trials"), [(20, 3_000), (40, 2_000), (160, 1_500)])
def test_the_bootstrap_interval_holds_95_of_100_differences(
    rows: int, trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.evaluation.statistics._MOST_RESAMPLES", 400)
    random = Random(rows)
    held = 0
    for trial in range(trials):
        monkeypatch.setattr("aeon.evaluation.statistics._SEED", trial)
        true, values = draw_thirds(random, rows)
        interval = bootstrap_mean(values)
        assert interval is not None
        held += interval.low <= true <= interval.high
    assert 0.94 <= held / trials <= 0.96


def find_coverage(rows: int) -> list[float]:
    """How often the interval of a difference holds it, computed, for each pair of rates from 0.02
    to 0.98 of arms that answer each row once."""
    rates = [percent / 100 for percent in range(2, 99, 8)]
    pairs = [
        (one * (1 - other), other * (1 - one)) for one, other in itertools.product(rates, rates)
    ]
    improves, degrades = np.array(pairs).T
    held = np.zeros(len(pairs))
    for improved in range(rows + 1):
        first = stats.binom.pmf(improved, rows, improves)
        for degraded in range(rows + 1 - improved):
            then = stats.binom.pmf(degraded, rows - improved, degrades / (1 - improves))
            same = rows - improved - degraded
            changes = [1] * improved + [-1] * degraded + [0] * same
            low, high = change_interval(changes, 1)
            is_inside = (low <= improves - degrades) & (improves - degrades <= high)
            held += first * then * is_inside
    return [float(share) for share in held]


@pytest.mark.parametrize(
    ("rows", "mean", "least"),
    [(20, 95.5, 92.8), (40, 95.1, 94.1), pytest.param(160, 95.1, 94.8, marks=pytest.mark.slow)],
)
def test_the_interval_of_a_difference_holds_95_of_100_whatever_the_rates(
    rows: int, mean: float, least: float
) -> None:
    shares = find_coverage(rows)
    assert round(100 * fmean(shares), 1) == mean
    assert round(100 * min(shares), 1) == least
    assert list_figures(rows)[2] == f"{mean} %"
    assert list_figures(rows, single=True)[2] == f"{least} %"


@pytest.mark.slow
@pytest.mark.parametrize("rows", SIZES)
def test_the_interval_of_a_difference_of_repeated_rows_holds_95_of_100(rows: int) -> None:
    """Rows differ in how hard they are for each arm."""
    random = Random(rows)
    held, trials, repeat = 0, 2_000, 4
    for _ in range(trials):
        one, other = random.uniform(0.02, 0.98), random.uniform(0.02, 0.98)
        changes = []
        for _ in range(rows):
            first = random.betavariate(2 * one, 2 * (1 - one))
            second = random.betavariate(2 * other, 2 * (1 - other))
            both = [
                sum(random.random() < chance for _ in range(repeat)) for chance in (first, second)
            ]
            changes.append(both[0] - both[1])
        low, high = change_interval(changes, repeat)
        held += low <= one - other <= high
    assert 0.94 <= held / trials <= 0.96


def test_arms_that_answer_all_rows_alike_may_still_differ_a_little() -> None:
    low, high = change_interval([0] * 20, 1)
    assert -low == high == pytest.approx(0.0933, abs=1e-4)
    assert change_interval([1], 1).high == 1
    assert change_interval([1], 4).low == -1


def list_figures(rows: int, *, single: bool = False) -> list[str]:
    """The figures that the page has for so many rows, as means or at `single` rates."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    line = [line for line in lines if line.startswith(f"| {rows} |")][single]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def find_worst_error(test: Callable[[int, int], float], rows: int) -> float:
    """How often a test finds a difference between equal arms, at most: the share of rows that they
    answer differently is what makes it most often."""
    found = [
        sum(
            math.comb(changed, improved)
            for improved in range(changed + 1)
            if test(improved, changed - improved) <= 0.05
        )
        / 2**changed
        for changed in range(rows + 1)
    ]
    shares = (percent / 100 for percent in range(1, 101))
    return max(float(stats.binom.pmf(range(rows + 1), rows, share) @ found) for share in shares)


@pytest.mark.parametrize(
    ("rows", "two_sided", "worse"),
    [(20, 4.1, 3.4), (40, 3.8, 4.0), pytest.param(160, 4.8, 4.8, marks=pytest.mark.slow)],
)
def test_arms_that_are_equally_good_are_called_different_at_most_5_of_100_times(
    rows: int, two_sided: float, worse: float
) -> None:
    assert round(100 * find_worst_error(mcnemar, rows), 1) == two_sided
    assert round(100 * find_worst_error(mcnemar_worse, rows), 1) == worse
    assert list_figures(rows)[-2:] == [f"{two_sided} %", f"{worse} %"]
