"""The values of a calibration: judgements of labelled answers, and the content of
`calibration.json`."""

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
        """Count the judgements that let the answer pass."""
        return sum(one.passes(thresholds) for one in self.judgements)


class Rate(Value):
    """A share of the judged answers, with its interval."""

    share: float
    interval: Interval


class Rates(Value):
    """The rates of a judge at some thresholds: `sensitivity` is the share of the judgements of good
    answers that let them pass, `specificity` the share of those of bad answers that do not."""

    sensitivity: Rate
    specificity: Rate


class ThresholdReport(Value):
    """The labels' evidence about one threshold, the same for all three scores. With one judgement
    of each answer, `passed` answers passed, `wrong` of them bad; of the runs called converged at
    most the share `at_most` is wrong, None where no risk was left to try it with."""

    threshold: float
    rates: Rates
    passed: int
    wrong: int
    at_most: float | None
    is_promised: bool


class ScoreSpread(Value):
    """How far judgements of one answer differ: the standard deviation of a score, with its
    interval."""

    deviation: float
    interval: Interval | None


class CalibrationReport(Value):
    """The measured quality of a judge, from `good` and `bad` answers to a number of `tasks`.
    `in_force` are its rates at the configured thresholds. `chosen` is the promised threshold, None
    where there is none; `reason` then explains why. `flips` is the share of answers whose
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
        """The report on the promised threshold."""
        return next((one for one in self.tried if one.threshold == self.chosen), None)
