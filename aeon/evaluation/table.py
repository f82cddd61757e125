"""Computes the figures of the arms from graded answers, and compares the judged arm with the
others."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from statistics import fmean
from typing import Any

from aeon.batch.dataset import Arm, Dataset, Row, digest
from aeon.batch.summary import Line
from aeon.domain.assessment import Calibration
from aeon.domain.request import add_costs
from aeon.evaluation import statistics
from aeon.evaluation.arms import AnswerName, list_shard
from aeon.evaluation.correction import correct_rate
from aeon.evaluation.grading import Grade, grade
from aeon.evaluation.judging import AnswerJudge
from aeon.evaluation.models import ArmComparison, ArmSummary, GradedAnswer, MeasuredRow, Measurement
from aeon.evaluation.sentences import (
    count_unmeasured,
    describe_comparison,
    describe_different_checks,
)
from aeon.evaluation.statistics import Interval


def measure(
    dataset: Dataset,
    arms: Sequence[Arm],
    repeat: int,
    lines: Iterable[Line],
    judged: str = "",
    threshold: float | None = None,
    shard: tuple[int, int] = (1, 1),
    judge: AnswerJudge | None = None,
) -> Measurement:
    """Compute the figures of the arms from the lines of the results. `judged` is the last arm
    unless one is named; of a `shard` of the dataset only its own rows count. A `judge` grades the
    answers, if given."""
    samples = [(arm.name, number) for arm in arms for number in range(1, repeat + 1)]
    found = {line["id"]: line for line in lines}
    grade_answer = _by_program if judge is None else judge.grade
    rows = tuple(
        _measure_row(row, samples, found, grade_answer) for row in list_shard(dataset.rows(), shard)
    )
    judged = judged or arms[-1].name
    summaries = {arm.name: summarize_arm(arm, rows, repeat) for arm in arms}
    return Measurement(
        dataset=dataset.path.name,
        repeat=repeat,
        judged=judged,
        threshold=threshold,
        arms=tuple(summaries.values()),
        comparisons=tuple(
            compare_arms(summaries[judged], other, rows)
            for name, other in summaries.items()
            if name != judged
        ),
        rows=rows,
    )


def _measure_row(
    row: Row,
    samples: Sequence[tuple[str, int]],
    found: Mapping[str, Line],
    grade_answer: Callable[[Row, str, Line | None], Grade],
) -> MeasuredRow:
    answers = []
    for arm, repeat in samples:
        name = AnswerName(arm, repeat, row.id).id
        line = found.get(name)
        answers.append(_describe_answer(arm, repeat, line, grade_answer(row, name, line)))
    return MeasuredRow(id=row.id, asked=digest_row(row), answers=tuple(answers))


def digest_row(row: Row) -> str:
    """Return a digest of a row's request and its expected answer."""
    asked: list[Any] = [row.task, sorted(row.inputs.items()), row.target]
    if row.checks:
        asked.append({name: one.model_dump(mode="json") for name, one in row.checks.items()})
    return digest(json.dumps(asked)).hex()


def _by_program(row: Row, _: str, line: Line | None) -> Grade:
    return grade(row, line)


def _describe_answer(arm: str, repeat: int, line: Line | None, graded: Grade) -> GradedAnswer:
    if line is None:
        return GradedAnswer(arm=arm, repeat=repeat, ended="not run", grade=graded)
    return GradedAnswer(
        arm=arm,
        repeat=repeat,
        ended=line["ended"],
        grade=graded,
        answer=line.get("answer") or "",
        tokens=line.get("input_tokens", 0) + line.get("output_tokens", 0),
        is_usage_reported=not line.get("unreported"),
        calls=line.get("calls", 0),
        cost=line.get("cost", 0.0),
        seconds=line.get("seconds", 0.0),
        is_simulated=bool(line.get("synthetic")),
    )


def summarize_arm(arm: Arm, rows: Sequence[MeasuredRow], repeat: int) -> ArmSummary:
    """Summarise the results of an arm over all rows."""
    answers = [answer for row in rows for answer in row.of_arm(arm.name)]
    passed = [row.count(arm.name) for row in rows]
    scores = [row.score(arm.name) for row in rows]
    verdicts = Counter(answer.grade.verdict for answer in answers)
    return ArmSummary(
        name=arm.name,
        overrides=arm.overrides,
        answers=len(answers),
        passed=verdicts["passed"],
        failed=verdicts["failed"],
        not_measured=verdicts["not_measured"],
        pass_rate=verdicts["passed"] / len(answers),
        pass_rate_interval=statistics.rate_interval(passed, repeat),
        pass_at=_find_chances(statistics.pass_at, passed, repeat),
        pass_all=_find_chances(statistics.pass_all, passed, repeat),
        mean_score=fmean(scores),
        mean_score_interval=_find_interval(scores),
        tokens=sum(answer.tokens for answer in answers),
        unreported=_count_unreported(answers),
        calls=sum(answer.calls for answer in answers),
        cost=add_costs(map(attrgetter("cost"), answers)),
        seconds=sum(answer.seconds for answer in answers),
        simulated=sum(answer.is_simulated for answer in answers),
    )


def _count_unreported(answers: Iterable[GradedAnswer]) -> int:
    """Count the answers whose server did not report the usage of all calls."""
    return sum(not answer.is_usage_reported for answer in answers)


def _find_interval(values: Sequence[float]) -> Interval | None:
    """Return the interval of a mean; None where all values are equal, which says nothing of how far
    others would differ."""
    return None if len(set(values)) == 1 else statistics.bootstrap_mean(values)


def correct_arms(measurement: Measurement, calibration: Calibration) -> Measurement:
    """Return the measurement with the pass rates of its arms, found by a judge, corrected."""
    arms = []
    for arm in measurement.arms:
        passed = [row.count(arm.name) for row in measurement.rows]
        trials = statistics.count_trials(passed, measurement.repeat)
        corrected = correct_rate(arm.pass_rate, trials, calibration)
        arms.append(arm.model_copy(update={"corrected": corrected}))
    return measurement.model_copy(update={"arms": tuple(arms)})


def _find_chances(
    chance: Callable[[int, int, int], float], passed: Sequence[int], repeat: int
) -> dict[int, float]:
    """Return for each k up to `repeat` the mean chance over all rows, given how many answers to
    each row passed."""
    return {k: fmean(chance(count, repeat, k) for count in passed) for k in range(1, repeat + 1)}


def compare_arms(arm: ArmSummary, other: ArmSummary, rows: Sequence[MeasuredRow]) -> ArmComparison:
    """Compare an arm with another, on the same rows."""
    repeat = arm.answers // len(rows)
    changes = [row.count(arm.name) - row.count(other.name) for row in rows]
    scores = [row.score(arm.name) - row.score(other.name) for row in rows]
    improved = sum(change > 0 for change in changes)
    degraded = sum(change < 0 for change in changes)
    p = statistics.mcnemar(improved, degraded)
    # With repeats, more rows may improve than degrade although fewer answers pass.
    agrees = sum(changes) * (improved - degraded) > 0
    to_decide = statistics.rows_to_decide(improved, degraded, len(rows))
    unmeasured = arm.not_measured + other.not_measured
    comparison = ArmComparison(
        arm=arm.name,
        other=other.name,
        improved=improved,
        degraded=degraded,
        difference=sum(changes) / arm.answers,
        difference_interval=statistics.change_interval(changes, repeat),
        score_difference=fmean(scores),
        score_difference_interval=_find_interval(scores),
        improvements_per_degradation=improved / degraded if degraded else None,
        p=p,
        is_decisive=p <= statistics.LEVEL and agrees and not unmeasured,
        rows_to_decide=to_decide if agrees else None,
        tokens_ratio=_divide_tokens(arm, other),
        sentence="",
    )
    sentence = describe_comparison(
        comparison, len(rows), count_unmeasured(unmeasured, arm.answers + other.answers)
    )
    return comparison.model_copy(update={"sentence": sentence})


def tell_checks_apart(measurement: Measurement, decided_by: Mapping[str, str]) -> Measurement:
    """Return the measurement with what decided the arms' answers, and without a decision between
    arms that different checks decided."""
    comparisons = tuple(
        one if decided_by[one.arm] == decided_by[one.other] else _decide_nothing(one)
        for one in measurement.comparisons
    )
    return measurement.model_copy(
        update={"decided_by": dict(decided_by), "comparisons": comparisons}
    )


def _decide_nothing(comparison: ArmComparison) -> ArmComparison:
    nothing = {
        "has_same_checks": False,
        "is_decisive": False,
        "rows_to_decide": None,
        "sentence": describe_different_checks(comparison),
    }
    return comparison.model_copy(update=nothing)


def _divide_tokens(arm: ArmSummary, other: ArmSummary) -> float | None:
    """Return how many times the tokens of another an arm took; None where one is unknown."""
    if arm.unreported or other.unreported or not other.tokens:
        return None
    return arm.tokens / other.tokens
