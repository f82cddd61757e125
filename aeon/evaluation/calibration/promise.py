"""The promise that labelled answers allow for a threshold: the share of wrong runs among those that
a judge calls converged, over several looks. Pure functions of the standard library."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from aeon.evaluation.statistics import LEVEL

SHARES: tuple[tuple[float, float], ...] = (
    (0.97, 0.25),
    (0.95, 0.0),
    (0.9, 0.25),
    (0.85, 0.0),
    (0.8, 0.25),
    (0.7, 0.0),
    (0.6, 0.25),
    (0.5, 0.0),
)
"""The thresholds to try, the strictest first, each with its share of the risk. They are fixed
before any label is seen. One without a share inherits the risk of the one before it, once that
is confirmed."""
_HALVINGS = 60  # beyond the 53 bits of a float


@dataclass(frozen=True, slots=True)
class LabelledScore:
    """One judgement of a labelled answer: its least score, below 0 where something other than a
    score holds the answer back."""

    good: bool
    score: float

    def passes(self, threshold: float) -> bool:
        """Whether the judge finds the answer good enough at this threshold."""
        return self.score >= threshold


@dataclass(frozen=True, slots=True)
class Tried:
    """The labels' evidence about one threshold: how many answers the judge lets pass, how many of
    them are `wrong`, and which share of the runs called converged is wrong `at_most`. `risk` is the
    risk spent on it. `is_telling`: the judge tells good from bad; `is_promised`: it does, and
    `at_most` is within the requested share."""

    threshold: float
    passed: int
    wrong: int
    risk: float
    at_most: float
    is_telling: bool
    is_promised: bool


def try_thresholds(
    judged: Sequence[LabelledScore], max_false: float, passes: int
) -> tuple[Tried, ...]:
    """Try each threshold with one judgement of each labelled answer. The chance that any promised
    one lets more than `max_false` of the runs called converged be wrong, over `passes` looks, is at
    most LEVEL (the fallback procedure of Wiens)."""
    tried = []
    carried = 0.0
    for threshold, share in SHARES:
        risk = share * LEVEL + carried
        one = _try_threshold(judged, threshold, risk, max_false, passes)
        carried = risk if one.at_most <= max_false else 0.0
        tried.append(one)
    return tuple(tried)


def _try_threshold(
    judged: Sequence[LabelledScore], threshold: float, risk: float, max_false: float, passes: int
) -> Tried:
    passed = [one for one in judged if one.passes(threshold)]
    wrong = sum(not one.good for one in passed)
    at_most = spread_over_passes(bound_share(wrong, len(passed), risk), passes)
    is_telling = tells_apart(judged, threshold)
    is_promised = is_telling and at_most <= max_false
    return Tried(threshold, len(passed), wrong, risk, at_most, is_telling, is_promised)


def find_promised(tried: Sequence[Tried]) -> Tried | None:
    """Return the promised threshold that lets most good answers pass; of several the strictest,
    since no label lies between them."""
    promised = [one for one in tried if one.is_promised]
    return max(promised, key=lambda one: (one.passed - one.wrong, one.threshold), default=None)


def tolerate_in_one_look(max_false: float, passes: int) -> float:
    """Return the share of wrong answers that one look may let pass so that at most `max_false` of
    the runs called converged are wrong after `passes` looks. A wrong run may pass at each look, a
    right one is only sure of one look; nothing is assumed about how the looks depend on each other.
    """
    return max_false / (max_false + passes * (1 - max_false))


def spread_over_passes(share: float, passes: int) -> float:
    """Return the largest share of wrong runs among those called converged after `passes` looks,
    where one look lets pass this `share` of wrong answers."""
    return passes * share / (passes * share + 1 - share)


def bound_share(wrong: int, of: int, risk: float) -> float:
    """Return Clopper and Pearson's upper bound of a share, of which `wrong` were seen among `of`:
    it is below the true share with a chance of at most `risk`, for any number of trials."""
    if wrong >= of or risk <= 0:
        return 1.0
    low = 0.0
    high = 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(wrong, of, middle) > risk:
            low = middle
        else:
            high = middle
    return high


def _at_most(successes: int, of: int, chance: float) -> float:
    """Return the chance of at most this number of successes in `of` trials."""
    # Logarithms: the numbers of ways exceed a float for a few thousand trials.
    log_chance = math.log(chance)
    log_other = math.log1p(-chance)
    logs = (
        _log_ways(of, count) + count * log_chance + (of - count) * log_other
        for count in range(successes + 1)
    )
    return math.fsum(map(math.exp, logs))


def _log_ways(of: int, count: int) -> float:
    return math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1)


def count_needed(wrong: int, max_false: float, passes: int, risk: float) -> int:
    """Return how many answers must pass, `wrong` of them bad, for `max_false` to be promised."""
    tolerated = tolerate_in_one_look(max_false, passes)

    def is_enough(of: int) -> bool:
        return bound_share(wrong, of, risk) <= tolerated

    most = 2 * (wrong + 1)
    while not is_enough(most):
        most *= 2
    return bisect_left(range(most), True, lo=wrong, key=is_enough)


def tells_apart(judged: Sequence[LabelledScore], threshold: float) -> bool:
    """Check whether the judge lets good answers pass more often than bad ones, by Fisher's exact
    one-sided test: a judge at chance promises nothing, however few of the labels are bad."""
    good = sum(one.good for one in judged)
    passed = [one for one in judged if one.passes(threshold)]
    right = sum(one.good for one in passed)
    return fisher_greater(right, len(passed), good, len(judged)) <= LEVEL


def fisher_greater(right: int, passed: int, good: int, of: int) -> float:
    """Return the chance of at least `right` good answers among those that passed, if passing is
    independent of being good (Fisher's exact one-sided test)."""
    most = min(passed, good)
    ways = sum(
        math.comb(good, count) * math.comb(of - good, passed - count)
        for count in range(right, most + 1)
    )
    return ways / math.comb(of, passed)
