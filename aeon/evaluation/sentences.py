"""The sentences of a measurement."""

from __future__ import annotations

from aeon.domain.assessment import Calibration
from aeon.evaluation.models import ArmComparison, Measurement
from aeon.evaluation.statistics import Interval
from aeon.report.words import count_noun


def describe_comparison(comparison: ArmComparison, rows: int, unmeasured: str = "") -> str:
    """Describe how an arm did against another, whether that is decisive, and else how many more
    rows would decide, or which answers are `unmeasured`, so that nothing is decided."""
    arm = comparison.arm
    other = comparison.other
    if not comparison.improved and not comparison.degraded:
        if unmeasured:
            return f"{arm} and {other} cannot be told apart: {unmeasured}."
        return (
            f"{arm} passed the same rows as {other}{_describe_tokens(comparison)}: "
            "no row tells them apart."
        )
    points = abs(comparison.difference)
    way = "more" if comparison.difference > 0 else "fewer"
    head = f"{arm} passes {format_points(points)} {way} than {other}"
    if points == 0:
        head = f"{arm} passes as many as {other}"
    changed = f"{count_noun(comparison.improved, 'row')} improved, {comparison.degraded:,} degraded"
    if comparison.improvements_per_degradation is not None:
        changed += f" ({comparison.improvements_per_degradation:.2g} improvements per degradation)"
    head += f"{format_change(comparison.difference_interval)}{_describe_tokens(comparison)}"
    decision = _describe_decision(comparison, rows)
    if unmeasured:
        decision = f"This decides nothing: {unmeasured}."
    return f"{head}: {changed}, p = {comparison.p:.2g}. {decision}"


def describe_different_checks(comparison: ArmComparison) -> str:
    """State that different checks decided which answers of two arms pass."""
    return (
        f"{comparison.arm} and {comparison.other} were decided by different checks: "
        "their pass rates are not compared."
    )


def count_unmeasured(unmeasured: int, answers: int) -> str:
    """Describe how many of two arms' answers are not measured; empty for none."""
    verb = "is" if unmeasured == 1 else "are"
    return f"{unmeasured:,} of their {answers:,} answers {verb} not measured" if unmeasured else ""


def describe_correction(measurement: Measurement, calibration: Calibration) -> str:
    """Describe how the rates found by a judge were corrected."""
    labels = calibration.good + calibration.bad
    known = (
        f"sensitivity {format_share(calibration.sensitivity)}, specificity "
        f"{format_share(calibration.specificity)}, on {count_noun(labels, 'label')}"
    )
    if any(arm.corrected is None for arm in measurement.arms):
        return describe_uncorrected(f"the judge is no better than chance ({known})")
    return f"Graded by the judge, and corrected by its calibration ({known})."


def describe_uncorrected(reason: str) -> str:
    """State that a judge graded the answers, and that its rates are uncorrected."""
    return f"Graded by the judge; the rates are not corrected: {reason}."


def _describe_tokens(comparison: ArmComparison) -> str:
    ratio = comparison.tokens_ratio
    return "" if ratio is None else f", at {ratio:.3g} times the tokens"


def describe_unreported(measurement: Measurement) -> str:
    """Describe how many answers have tokens that their server did not report; empty for none."""
    unreported = sum(arm.unreported for arm in measurement.arms)
    if not unreported:
        return ""
    answers = count_noun(sum(arm.answers for arm in measurement.arms), "answer")
    return (
        f"Usage was not reported for every call of {unreported:,} of {answers}: "
        "their tokens are unknown, not zero."
    )


def _describe_decision(comparison: ArmComparison, rows: int) -> str:
    if comparison.is_decisive:
        return "This is decisive."
    if comparison.rows_to_decide is None:
        if comparison.difference or comparison.improved != comparison.degraded:
            return "This is not decisive: the rows and the pass rates do not point the same way."
        return "This is not decisive, and no number of rows can be foreseen from no difference."
    more = max(1, comparison.rows_to_decide - rows)
    noun = "row" if more == 1 else "rows"
    return (
        f"This is not decisive: it may be chance. About {more:,} more {noun} would decide, "
        "if the difference is what it seems."
    )


def format_points(share: float) -> str:
    """Format a difference of shares in percentage points."""
    return f"{100 * share:.1f} points"


def format_tokens(tokens: int, *, is_reported: bool) -> str:
    """Format a number of tokens, which is only the least of them unless all usage was reported."""
    if is_reported:
        return f"{tokens:,}"
    return f"at least {tokens:,}" if tokens else "unknown"


def format_share(share: float) -> str:
    """Format a share in percent."""
    return f"{100 * share:.1f} %"


def format_interval(interval: Interval | None) -> str:
    """Format an interval of a share, in percent."""
    if interval is None:
        return ""
    return f"{100 * interval.low:.1f} to {100 * interval.high:.1f}"


def format_change(interval: Interval | None) -> str:
    """Format an interval of a difference, in points, in brackets."""
    if interval is None:
        return ""
    return f" ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})"
