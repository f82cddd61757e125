"""The values of a measurement: the content of `eval.json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from aeon.domain.values import Value
from aeon.evaluation.correction import CorrectedRate
from aeon.evaluation.grading import Grade, Verdict
from aeon.evaluation.statistics import Interval


class GradedAnswer(Value):
    """An answer of one arm to one row, with its number from 1, its grade and its usage; unless
    `is_usage_reported` it took at least `tokens`, and maybe more."""

    arm: str
    repeat: int
    ended: str
    grade: Grade
    answer: str = ""
    tokens: int = 0
    is_usage_reported: bool = True
    calls: int = 0
    cost: float | None = 0.0
    seconds: float = 0.0
    is_simulated: bool = False


class MeasuredRow(Value):
    """A row of the dataset with its answers. `asked` is a digest of its task, inputs, target and
    checks: it identifies the same row in two measurements."""

    id: str
    asked: str
    answers: tuple[GradedAnswer, ...]

    def of_arm(self, arm: str) -> tuple[GradedAnswer, ...]:
        """Return the answers of an arm."""
        return tuple(answer for answer in self.answers if answer.arm == arm)

    def count(self, arm: str, verdict: Verdict = "passed") -> int:
        """Count the answers of an arm with a verdict."""
        return sum(answer.grade.verdict == verdict for answer in self.of_arm(arm))

    def score(self, arm: str) -> float:
        """Return the mean score of an arm's answers; an unmeasured one counts as 0."""
        answers = self.of_arm(arm)
        return sum(answer.grade.score or 0.0 for answer in answers) / len(answers)


class ArmSummary(Value):
    """The results of an arm. Every share is of all answers: an unmeasured one has not passed.
    `pass_at` and `pass_all` hold the chance that one, or all, of k answers to a row pass. `cost` is
    None where that of one answer is unknown, `unreported` the number of answers whose server did not
    report the usage of all calls, so that `tokens` is only the least, `mean_score_interval` where all scores are equal.
    `corrected` is the pass rate of answers graded by a judge, corrected by its calibration."""

    name: str
    overrides: tuple[str, ...]
    answers: int
    passed: int
    failed: int
    not_measured: int
    pass_rate: float
    pass_rate_interval: Interval
    corrected: CorrectedRate | None = None
    pass_at: dict[int, float] = Field(default_factory=dict)
    pass_all: dict[int, float] = Field(default_factory=dict)
    mean_score: float
    mean_score_interval: Interval | None
    tokens: int
    unreported: int = 0
    calls: int
    cost: float | None
    seconds: float
    simulated: int = 0

    @property
    def rate(self) -> float:
        """The pass rate, the corrected one where there is one."""
        return self.pass_rate if self.corrected is None else self.corrected.share


class ArmComparison(Value):
    """One arm against another, row by row: in how many rows more of its answers passed, in how many
    fewer. `p` is that of McNemar's exact test, `rows_to_decide` how many rows such a difference
    needs in all, None where there is no difference or rows and pass rates differ in opposite
    directions; that is never decisive. `score_difference_interval` is None where all scores changed
    alike, `improvements_per_degradation` where no row degraded. `tokens_ratio` is the arm's tokens
    divided by the other's, None where one of them is unknown. Without `has_same_checks` different
    ones decided which answers pass, so that nothing is decisive."""

    arm: str
    other: str
    improved: int
    degraded: int
    difference: float
    difference_interval: Interval | None
    score_difference: float
    score_difference_interval: Interval | None
    improvements_per_degradation: float | None
    p: float
    is_decisive: bool
    rows_to_decide: int | None
    tokens_ratio: float | None
    has_same_checks: bool = True
    sentence: str


class BaselineComparison(Value):
    """An arm against the same rows of an earlier measurement, the `baseline`. `p` is that of the
    one-sided test that the arm is worse; it is worse only if fewer of its answers passed, too."""

    arm: str
    baseline: str
    rows: int
    improved: int
    degraded: int
    p: float
    is_worse: bool
    sentence: str


class Measurement(Value):
    """A measurement: arms on the rows of a dataset, each row answered `repeat` times by each arm.
    `judged` is the arm that `threshold` and the baseline apply to, and that is compared with the
    others. `decided_by` has for each arm a digest of what decided, besides the rows, which answers
    pass; older files have none. `equality` tells how far `equal=tokens` was reached, `judging` how
    the rates of a judge that graded the answers were corrected, or why not."""

    format: Literal["aeon.eval/1"] = "aeon.eval/1"
    dataset: str
    repeat: int
    judged: str
    threshold: float | None = None
    decided_by: dict[str, str] = Field(default_factory=dict)
    arms: tuple[ArmSummary, ...]
    comparisons: tuple[ArmComparison, ...] = ()
    baseline: BaselineComparison | None = None
    equality: str = ""
    judging: str = ""
    rows: tuple[MeasuredRow, ...]

    @property
    def not_measured(self) -> int:
        """The number of answers that are not measured."""
        return sum(arm.not_measured for arm in self.arms)

    def arm(self, name: str) -> ArmSummary:
        """Return the summary of an arm."""
        return next(arm for arm in self.arms if arm.name == name)

    @property
    def is_below(self) -> bool:
        """Whether the judged arm is below the threshold, or worse than the baseline."""
        judged = self.arm(self.judged)
        is_below = self.threshold is not None and judged.rate < self.threshold
        return is_below or (self.baseline is not None and self.baseline.is_worse)
