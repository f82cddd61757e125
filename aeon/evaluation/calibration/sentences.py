"""The sentences of a calibration."""

from __future__ import annotations

import math
from collections.abc import Sequence

from aeon.domain.assessment import SCORE_CODES
from aeon.evaluation.calibration.models import CalibrationReport, Rate
from aeon.evaluation.calibration.promise import (
    SHARES,
    Tried,
    bound_share,
    count_needed,
    spread_over_passes,
)
from aeon.evaluation.forms import align
from aeon.evaluation.sentences import format_interval, format_share
from aeon.evaluation.statistics import LEVEL
from aeon.report.words import count_noun

_LEAST_RISK = min(share for _, share in SHARES if share) * LEVEL
_USABLE = 0.5


def describe_need(good: int, max_false: float, passes: int) -> str:
    """Describe how many answers even a judge without error needs, where there are too few good ones
    for any promise; empty where there are enough."""
    needed = count_needed(0, max_false, passes, _LEAST_RISK)
    if good >= needed:
        return ""
    less = _describe_less(0, good, max_false, passes)
    return (
        f"With {count_noun(good, 'good answer')} nothing can be promised, "
        f"even for a judge without error: max_false={max_false:g} over "
        f"{count_noun(passes, 'pass')} takes {needed:,} answers that rightly pass. {less}".rstrip()
    )


def _describe_less(wrong: int, passed: int, max_false: float, passes: int) -> str:
    """Describe the weaker promises for which the passed answers suffice; empty if none is
    useful."""
    share = bound_share(wrong, passed, _LEAST_RISK)
    ways = []
    if passes > 1 and share <= max_false:
        most = max(n for n in range(1, passes) if spread_over_passes(share, n) <= max_false)
        ways.append(f"passes={most}")
    over_all = math.ceil(100 * spread_over_passes(share, passes)) / 100
    if over_all < _USABLE:
        ways.append(f"max_false={over_all:g}")
    return f"They are enough for {' or '.join(ways)}." if ways else ""


def explain_no_promise(tried: Sequence[Tried], max_false: float, passes: int, missing: int) -> str:
    """Explain why no threshold is promised, and what would help."""
    if missing:
        return (
            f"{count_noun(missing, 'judgement')} failed, and nothing is promised without "
            "them: repeat the command to request them again."
        )
    useful = [one for one in tried if one.is_telling]
    if not useful:
        return (
            "At no threshold does the judge let good answers pass clearly more often than bad "
            "ones: it is no better than chance on these labels. Try another judge "
            '(roles.grader.model=NAME), criteria that say what is good (convergence.criteria.NAME="..."), or checks.'
        )
    best = min(useful, key=lambda one: (one.at_most, one.threshold))
    needed = count_needed(best.wrong, max_false, passes, _LEAST_RISK)
    found = "none of them wrong" if best.wrong == 0 else f"{best.wrong:,} of them wrong"
    sentence = (
        f"At its best threshold, {best.threshold:g}, the judge lets "
        f"{count_noun(best.passed, 'answer')} pass, {found}: of the runs called converged up to "
        f"{format_share(best.at_most)} may be wrong. max_false={max_false:g} over "
        f"{count_noun(passes, 'pass')} takes {needed:,} that pass with no more wrong."
    )
    return f"{sentence} {_describe_less(best.wrong, best.passed, max_false, passes)}".rstrip()


def write_report(report: CalibrationReport) -> str:
    """Return the figures of a judge as plain text."""
    parts = [
        [_describe_labels(report)],
        _list_in_force(report),
        align(_list_rows(report)),
        [_describe_outcome(report)],
    ]
    if report.is_simulated:
        parts.append(["SIMULATED: no model was called; these figures say nothing of any model."])
    return "\n\n".join("\n".join(lines) for lines in parts if lines)


def _describe_labels(report: CalibrationReport) -> str:
    judged = f"each judged {report.repeat} times" if report.repeat > 1 else "each judged once"
    by = f" by {', '.join(report.models)}" if report.models else ""
    total = count_noun(report.good + report.bad, "answer")
    total += f" to {count_noun(report.tasks, 'task')}"
    return f"{total}, {report.good:,} good and {report.bad:,} bad, {judged}{by}."


def _list_in_force(report: CalibrationReport) -> list[str]:
    """Return the judge's rates at the configured thresholds, and how far its judgements differ."""
    given = ", ".join(f"{name} {least:g}" for name, least in report.thresholds.items())
    rows = [
        (f"At {given}", "", "95 %"),
        ("sensitivity: good answers let pass", *_format_rate(report.in_force.sensitivity)),
        ("specificity: bad answers held back", *_format_rate(report.in_force.specificity)),
    ]
    if report.flips is not None:
        flips = _format_rate(report.flips)
        rows.append(("answers that one judgement lets pass and another does not", *flips))
    for name, spread in report.spread.items():
        ends = spread.interval
        interval = f"{ends.low:.3f} to {ends.high:.3f}" if ends else ""
        rows.append((f"spread of {name} in one answer", f"{spread.deviation:.3f}", interval))
    return align(rows)


def _list_rows(report: CalibrationReport) -> list[tuple[str, ...]]:
    title = ("threshold", "sensitivity", "95 %", "specificity", "95 %", "pass", "wrong")
    rows: list[tuple[str, ...]] = [(*title, "wrong of converged", "")]
    for one in report.tried:
        at_most = "not tried" if one.at_most is None else f"at most {format_share(one.at_most)}"
        mark = "promised" if one.is_promised else ""
        rates = (*_format_rate(one.rates.sensitivity), *_format_rate(one.rates.specificity))
        rows.append(
            (f"{one.threshold:.2f}", *rates, f"{one.passed:,}", f"{one.wrong:,}", at_most, mark)
        )
    return rows


def _format_rate(rate: Rate) -> tuple[str, str]:
    return format_share(rate.share), format_interval(rate.interval)


def _describe_outcome(report: CalibrationReport) -> str:
    promised = report.promised
    if promised is None:
        return f"No threshold is promised. {report.reason}"
    names = ", ".join(SCORE_CODES)
    return f"The threshold for {names} is {promised.threshold:g}: {describe_promise(report)}"


def describe_promise(report: CalibrationReport) -> str:
    """Describe the promise for the chosen threshold."""
    return (
        f"of the runs called converged at most {100 * report.max_false:g} % are wrong, over "
        f"{count_noun(report.passes, 'pass')}, with {100 * (1 - LEVEL):.0f} % confidence."
    )
