"""Corrects judged pass rates for the judge's known errors. Pure functions of the standard
library."""

from __future__ import annotations

import math

from aeon.domain.assessment import Calibration
from aeon.domain.values import Value
from aeon.evaluation.statistics import CRITICAL, Interval


class CorrectedRate(Value):
    """The share of good answers, derived from the share that a judge lets pass and from how often
    it is right."""

    share: float
    interval: Interval


def correct_rate(judged: float, trials: float, calibration: Calibration) -> CorrectedRate | None:
    """Return the share of good answers where a judge lets the share `judged` of `trials` pass: (p +
    q0 - 1) / (q0 + q1 - 1), with q0 its specificity and q1 its sensitivity (Rogan and Gladen),
    within [0, 1]. The interval allows for the uncertainty of all three, each moved a little towards
    one half, after Lee and others. None for a judge that is no better than chance."""
    power = calibration.specificity + calibration.sensitivity - 1
    if power <= 0:
        return None
    share = (judged + calibration.specificity - 1) / power
    interval = _interval(judged, trials, calibration)
    return None if interval is None else CorrectedRate(share=_clip(share), interval=interval)


def _interval(judged: float, trials: float, calibration: Calibration) -> Interval | None:
    z = CRITICAL
    of_judged = trials + z * z
    p = (trials * judged + z * z / 2) / of_judged
    q0 = _shrink(calibration.specificity, calibration.bad)
    q1 = _shrink(calibration.sensitivity, calibration.good)
    power = q0 + q1 - 1
    if power <= 0:
        return None
    share = (p + q0 - 1) / power
    of_bad = q0 * (1 - q0) / (calibration.bad + 2)
    of_good = q1 * (1 - q1) / (calibration.good + 2)
    shift = 2 * z * z * (share * of_good - (1 - share) * of_bad)
    variance = p * (1 - p) / of_judged + (1 - share) ** 2 * of_bad + share**2 * of_good
    reach = z * math.sqrt(variance) / power
    return Interval(_clip(share + shift - reach), _clip(share + shift + reach))


def _shrink(share: float, of: int) -> float:
    return (share * of + 1) / (of + 2)


def _clip(share: float) -> float:
    return min(1.0, max(0.0, share))
