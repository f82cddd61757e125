"""Measures a judge by its judgements of labelled answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, variance
from typing import NamedTuple

from aeon.batch.summary import Line
from aeon.domain.assessment import SCORE_CODES
from aeon.evaluation.calibration.labels import Label, name_judgement
from aeon.evaluation.calibration.models import (
    CalibrationReport,
    JudgedAnswer,
    Rate,
    Rates,
    ScoreSpread,
    ThresholdReport,
)
from aeon.evaluation.calibration.promise import (
    LabelledScore,
    Tried,
    find_promised,
    try_thresholds,
)
from aeon.evaluation.calibration.sentences import explain_no_promise
from aeon.evaluation.judging import Judgement, is_judged, list_judges, read_judgement
from aeon.evaluation.statistics import Interval, bootstrap_mean, rate_interval, wilson_interval


class CalibrationTask(NamedTuple):
    """The task of a calibration, and its judge: the file of the `labels`, how often each was
    judged, the share that may be wrong and over how many passes, the digests of the judge's
    requests, and the configured `thresholds`."""

    labels: str
    repeat: int
    max_false: float
    passes: int
    hashes: Mapping[str, str]
    thresholds: Mapping[str, float]


def read_judgements(
    labels: Sequence[Label], repeat: int, lines: Mapping[str, Line]
) -> tuple[list[JudgedAnswer], int]:
    """Return the labelled answers with all their judgements, and the number of missing judgements.
    An answer that lacks one is left out."""
    judged = []
    missing = 0
    for label in labels:
        names = _name_judgements(label, repeat)
        found = [lines[name] for name in names if name in lines and is_judged(lines[name])]
        missing += repeat - len(found)
        if len(found) == repeat:
            judged.append(JudgedAnswer(label.good, tuple(map(read_judgement, found))))
    return judged, missing


def _name_judgements(label: Label, repeat: int) -> list[str]:
    return [name_judgement(label, number) for number in range(1, repeat + 1)]


def measure_judge(
    asked: CalibrationTask, labels: Sequence[Label], lines: Mapping[str, Line]
) -> CalibrationReport | None:
    """Measure the judge; None where judgements of good answers, or of bad ones, are missing
    altogether."""
    lines = _select_lines(labels, asked.repeat, lines)
    judged, missing = read_judgements(labels, asked.repeat, lines)
    good = sum(one.good for one in judged)
    if good in (0, len(judged)):
        return None
    # One judgement of each answer, as a run has: the promise holds for that.
    first = [LabelledScore(one.good, _least(one.judgements[0])) for one in judged]
    tried = try_thresholds(first, asked.max_false, asked.passes)
    report = CalibrationReport(
        labels=asked.labels,
        tasks=len({label.asked for label in labels}),
        good=good,
        bad=len(judged) - good,
        repeat=asked.repeat,
        not_measured=missing,
        models=list_judges(lines.values()),
        hashes=dict(asked.hashes),
        max_false=asked.max_false,
        passes=asked.passes,
        thresholds=dict(asked.thresholds),
        in_force=_measure_rates(judged, asked.thresholds),
        tried=tuple(_report_threshold(one, judged) for one in tried),
        is_simulated=any(line.get("synthetic") for line in lines.values()),
    )
    return _with_repeats(_with_promise(report, tried), judged)


def _select_lines(
    labels: Sequence[Label], repeat: int, lines: Mapping[str, Line]
) -> dict[str, Line]:
    names = {name for label in labels for name in _name_judgements(label, repeat)}
    return {name: line for name, line in lines.items() if name in names}


def _with_promise(report: CalibrationReport, tried: Sequence[Tried]) -> CalibrationReport:
    """Return the report with the promised threshold, or with the reason why there is none."""
    chosen = None if report.not_measured else find_promised(tried)
    if chosen is not None:
        return report.model_copy(update={"chosen": chosen.threshold})
    reason = explain_no_promise(tried, report.max_false, report.passes, report.not_measured)
    return report.model_copy(update={"reason": reason})


def _with_repeats(report: CalibrationReport, judged: Sequence[JudgedAnswer]) -> CalibrationReport:
    """Return the report with the figures of repeated judgements."""
    if report.repeat == 1:
        return report
    in_use = report.thresholds if report.chosen is None else _same(report.chosen)
    repeated = {"spread": _measure_spread(judged), "flips": _measure_flips(judged, in_use)}
    return report.model_copy(update=repeated)


def _least(judgement: Judgement) -> float:
    return -1.0 if judgement.is_held_back else min(judgement.scores.values())


def _same(threshold: float) -> dict[str, float]:
    return dict.fromkeys(SCORE_CODES, threshold)


def _report_threshold(tried: Tried, judged: Sequence[JudgedAnswer]) -> ThresholdReport:
    return ThresholdReport(
        threshold=tried.threshold,
        rates=_measure_rates(judged, _same(tried.threshold)),
        passed=tried.passed,
        wrong=tried.wrong,
        at_most=tried.at_most if tried.risk else None,
        is_promised=tried.is_promised,
    )


def _measure_rates(judged: Sequence[JudgedAnswer], thresholds: Mapping[str, float]) -> Rates:
    repeat = len(judged[0].judgements)
    good = [one.count(thresholds) for one in judged if one.good]
    bad = [repeat - one.count(thresholds) for one in judged if not one.good]
    return Rates(sensitivity=_rate(good, repeat), specificity=_rate(bad, repeat))


def _rate(right: Sequence[int], repeat: int) -> Rate:
    return Rate(share=fmean(right) / repeat, interval=rate_interval(right, repeat))


def _measure_spread(judged: Sequence[JudgedAnswer]) -> dict[str, ScoreSpread]:
    """Return the standard deviation of each score between judgements of one answer, over all
    answers."""
    spread = {}
    for name in SCORE_CODES:
        variances = [variance([each.scores[name] for each in one.judgements]) for one in judged]
        interval = bootstrap_mean(variances)
        ends = interval and Interval(*(sqrt(max(0.0, end)) for end in interval))
        spread[name] = ScoreSpread(deviation=sqrt(fmean(variances)), interval=ends)
    return spread


def _measure_flips(judged: Sequence[JudgedAnswer], thresholds: Mapping[str, float]) -> Rate:
    """Return the share of answers that one judgement lets pass and another does not."""
    flipped = [0 < one.count(thresholds) < len(one.judgements) for one in judged]
    share = fmean(flipped)
    return Rate(share=share, interval=wilson_interval(share, len(judged)))
