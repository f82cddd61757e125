"""Inference from a few rows to all rows: intervals, exact tests, and how many rows would decide.
Pure functions of the standard library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from random import Random
from statistics import NormalDist, fmean, variance
from typing import NamedTuple

LEVEL = 0.05
"""The chance that a test finds a difference where there is none."""
_POWER = 0.8
_NORMAL = NormalDist()
CRITICAL = _NORMAL.inv_cdf(1 - LEVEL / 2)
"""The standard errors that an interval extends to each side, for many rows."""
_SEED = 19  # any number, but always the same: equal answers give equal intervals
_MOST_DRAWS = 2_000_000
_MOST_RESAMPLES = 2_000
_FEWEST_RESAMPLES = 200


class Interval(NamedTuple):
    """The interval that holds the true value in 95 of 100 measurements."""

    low: float
    high: float


def wilson_interval(share: float, of: float) -> Interval:
    """Return Wilson's interval of a share that was seen in `of` independent trials."""
    weight = CRITICAL**2 / of
    centre = (share + weight / 2) / (1 + weight)
    spread = CRITICAL * math.sqrt(share * (1 - share) / of + weight / (4 * of)) / (1 + weight)
    # Exact at both ends, where the two are equal but for their last bits.
    low = centre - spread if share > 0 else 0.0
    high = centre + spread if share < 1 else 1.0
    return Interval(low, high)


def rate_interval(passed: Sequence[int], repeat: int) -> Interval:
    """Return Wilson's interval of the pass rate of rows that were each run `repeat` times; `passed`
    holds each row's passes. Answers to one row resemble each other: they count as fewer trials, by
    how much more rows differ than independent answers would."""
    return wilson_interval(fmean(passed) / repeat, count_trials(passed, repeat))


def count_trials(passed: Sequence[int], repeat: int) -> float:
    """Return the number of independent trials that rows, each run `repeat` times, are worth."""
    rows = len(passed)
    if rows == 1:
        return rows
    shares = [count / repeat for count in passed]
    rate = fmean(shares)
    between = variance(shares)
    if between == 0:
        return rows  # how much the answers to one row differ is unknown
    # How much they differ is itself an estimate, which Student's distribution allows for.
    uncertain = CRITICAL / student_quantile(1 - LEVEL / 2, rows - 1)
    independent = rate * (1 - rate) / between * rows * uncertain**2
    return min(rows * repeat, max(rows, independent))


def change_interval(changes: Sequence[int], repeat: int) -> Interval:
    """Return the interval of the mean change of the pass rate between two arms; `changes` holds
    how many more answers passed to each row, run `repeat` times. It is Wald's, adjusted in the way
    of Agresti and Min so that it also holds where few rows change: half a row is added that
    improved by one answer, and half a row that degraded by one."""
    rows = len(changes)
    weight = rows + 1
    mean = sum(changes) / weight
    square = (sum(change**2 for change in changes) + 1) / weight
    critical = CRITICAL
    if repeat > 1:  # the halves are too small to make up for few rows
        critical = student_quantile(1 - LEVEL / 2, max(1, rows - 1))
    spread = critical * math.sqrt((square - mean**2) / weight)
    return Interval(max(-1.0, (mean - spread) / repeat), min(1.0, (mean + spread) / repeat))


def pass_at(passed: int, of: int, k: int) -> float:
    """Return the unbiased chance that at least one of k answers passes, where `passed` of `of`
    answers passed."""
    return 1 - math.comb(of - passed, k) / math.comb(of, k)


def pass_all(passed: int, of: int, k: int) -> float:
    """Return the unbiased chance that all of k answers pass (pass^k)."""
    return math.comb(passed, k) / math.comb(of, k)


def bootstrap_mean(values: Sequence[float]) -> Interval | None:
    """Return the bootstrap interval of a mean, its percentiles widened like a t interval, so that
    it also holds for few values. The seed is fixed: for equally many values the same indices are
    drawn, so that values of the same rows are paired. None for fewer than two values."""
    count = len(values)
    if count < 2:
        return None
    random = Random(_SEED)
    resamples = max(_FEWEST_RESAMPLES, min(_MOST_RESAMPLES, _MOST_DRAWS // count))
    means = sorted(math.fsum(random.choices(values, k=count)) / count for _ in range(resamples))
    wide = math.sqrt(count / (count - 1)) * student_quantile(1 - LEVEL / 2, count - 1)
    tail = 1 - _NORMAL.cdf(wide)
    return Interval(_quantile(means, tail), _quantile(means, 1 - tail))


def _quantile(ordered: Sequence[float], share: float) -> float:
    place = min(max(share * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def student_quantile(share: float, freedom: int) -> float:
    """Return a quantile of Student's t distribution: exact for 1 and 2 degrees of freedom, else by
    the expansion of Cornish and Fisher, to 1 % for 3 degrees and closer for more."""
    if freedom == 1:
        return math.tan(math.pi * (share - 0.5))
    if freedom == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z = _NORMAL.inv_cdf(share)
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + math.fsum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def mcnemar(improved: int, degraded: int) -> float:
    """Return the exact two-sided p value of McNemar's test: the chance of so uneven a split of the
    changed rows if both directions are equally likely."""
    return min(1.0, 2 * _tail(min(improved, degraded), improved + degraded))


def mcnemar_worse(improved: int, degraded: int) -> float:
    """Return the exact one-sided p value of McNemar's test: the chance that so many of the changed
    rows got worse if both directions are equally likely."""
    return _tail(improved, improved + degraded)


def _tail(most: int, of: int) -> float:
    """Return the chance of at most `most` heads in `of` throws of a coin."""
    ways: int = sum(math.comb(of, heads) for heads in range(most + 1))
    return ways / (1 << of)


def rows_to_decide(improved: int, degraded: int, rows: int) -> int | None:
    """Return about how many rows McNemar's test needs to find a difference of this size in four of
    five measurements (Connor's formula), and never fewer than have as many changed rows as an exact
    test needs; None where there is no difference."""
    changed = (improved + degraded) / rows
    difference = abs(improved - degraded) / rows
    if difference == 0:
        return None
    powerful = _NORMAL.inv_cdf(_POWER)
    spread = CRITICAL * math.sqrt(changed) + powerful * math.sqrt(changed - difference**2)
    fewest = next(count for count in itertools.count(1) if mcnemar(count, 0) <= LEVEL)
    return max(math.ceil((spread / difference) ** 2), math.ceil(fewest / changed))
