"""The values of a calibration: judgements of labelled answers, and what `calibration.json`
holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from aeon.domain.values import Value
from aeon.evaluation.judging import Judgement
from aeon.evaluation.statistics import Interval


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """A labelled answer with all judgements of it."""

    good: bool
    judgements: tuple[Judgement, ...]

    def count(self, thresholds: Mapping[str, float]) -> int:
        """How many judgements let the answer pass."""
        return sum(one.passes(thresholds) for one in self.judgements)


class Rate(Value):
    """A share of what was judged, with its interval."""

    share: float
    interval: Interval


class Rates(Value):
    """How a judge does at some thresholds: `sensitivity` is the share of the judgements of good
    answers that let them pass, `specificity` the share of those of bad answers that do not."""

    sensitivity: Rate
    specificity: Rate


class ThresholdReport(Value):
    """What labels tell of one threshold, the same for all three scores. By one judgement of each
    answer so many `passed`, of which so many were `wrong`; of the runs called converged at most the
    share `at_most` is wrong, None where no risk was left to try it with."""

    threshold: float
    rates: Rates
    passed: int
    wrong: int
    at_most: float | None
    is_promised: bool


class ScoreSpread(Value):
    """How far judgements of one answer go apart: the standard deviation of a score, with its
    interval."""

    deviation: float
    interval: Interval | None


class CalibrationReport(Value):
    """What labelled answers tell of a judge: `good` and `bad` ones, to so many `tasks`. `in_force`
    is how it does at the thresholds that are configured. `chosen` is the threshold that is
    promised, None where none is; `reason` then says why. `flips` is the share of answers whose
    judgements differ, at `chosen` or else in force."""

    format: Literal["aeon.calibration/1"] = "aeon.calibration/1"
    labels: str
    tasks: int
    good: int
    bad: int
    repeat: int
    not_measured: int
    models: tuple[str, ...]
    hashes: dict[str, str]
    max_false: float
    passes: int
    thresholds: dict[str, float]
    in_force: Rates
    tried: tuple[ThresholdReport, ...]
    spread: dict[str, ScoreSpread] = Field(default_factory=dict)
    flips: Rate | None = None
    chosen: float | None = None
    reason: str = ""
    is_simulated: bool = False

    @property
    def promised(self) -> ThresholdReport | None:
        """What is told of the threshold that is promised."""
        return next((one for one in self.tried if one.threshold == self.chosen), None)
