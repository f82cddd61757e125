"""Grades an answer: by its row's target and by the checks that ran on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from aeon.batch.dataset import Row
from aeon.batch.summary import REPEATED_ENDS, Line
from aeon.domain.checks import CheckOutcome
from aeon.domain.errors import (
    AnswerError,
    ContextFull,
    EmptyAnswer,
    Filtered,
    Oversized,
    PlanError,
    Refused,
    Truncated,
    ValidationError,
)
from aeon.domain.result import SIMULATED_LINE
from aeon.domain.values import Value
from aeon.schema.equality import is_same

Verdict = Literal["passed", "failed", "not_measured"]


class Grade(Value):
    """The grade of one answer. `score` is the weighted share of its passed checks and its target,
    which has weight 1, None where it is not measured; `reason` explains why it did not pass."""

    verdict: Verdict
    score: float | None = None
    is_target_met: bool | None = None
    checks: tuple[CheckOutcome, ...] = ()
    reason: str = ""


_FAULTS_OF_MODELS = frozenset(
    kind.__name__
    for kind in (
        AnswerError,
        Truncated,
        ContextFull,
        Refused,
        Filtered,
        EmptyAnswer,
        Oversized,
        ValidationError,
        PlanError,
    )
)
"""The errors of runs that a model causes: they count against the arm."""


def is_done(line: Line) -> bool:
    """Check whether the run in a line of the results is final. A run that failed by its provider is
    resumed, and one with a check that could not run; one that failed by its model is done, since
    repeating it until it succeeds would measure something else."""
    if line["ended"] in REPEATED_ENDS and not _is_fault_of_model(line):
        return False
    if lacks_answer(line):
        return True
    checks = map(CheckOutcome.model_validate, line.get("checks") or ())
    return all(check.measured for check in checks if check.blocks)


def _is_fault_of_model(line: Line) -> bool:
    return (line.get("error") or {}).get("type") in _FAULTS_OF_MODELS


def has_text(line: Line) -> bool:
    """Check whether the answer in a line has any text, besides the mark of a simulated one."""
    answer: str = line.get("answer") or ""
    return bool(answer.removeprefix(SIMULATED_LINE).strip())


def lacks_answer(line: Line) -> bool:
    """Check whether a run ended without an answer: it has no text, and some step is not complete,
    or there was never a plan. The empty text of a complete step is an answer."""
    return not has_text(line) and bool(line.get("steps_left") or line.get("passes") == 0)


def grade(row: Row, line: Line | None) -> Grade:
    """Grade the answer in a line of the results; None stands for a row that was not run. Without
    enough evidence it does not pass: it is `not_measured`. A run that gave no answer has failed,
    whatever its checks find in the empty text."""
    if line is None or line["ended"] in REPEATED_ENDS:
        return grade_failure(line)
    if lacks_answer(line):
        return fail_without_answer(line)
    checks = tuple(map(CheckOutcome.model_validate, line.get("checks") or ()))
    is_met = is_same(line.get("answer") or "", row.target) if row.target else None
    verdict, reason = _judge(is_met, checks)
    score = None if verdict == "not_measured" else _score(is_met, checks)
    return Grade(verdict=verdict, score=score, is_target_met=is_met, checks=checks, reason=reason)


def grade_failure(line: Line | None) -> Grade:
    """Grade a row that was not run, or did not come to an end."""
    if line is None:
        return leave_unmeasured("it was not run")
    reason = (line.get("error") or {}).get("message") or f"it ended {line['ended']}"
    if _is_fault_of_model(line):
        return Grade(verdict="failed", score=0.0, reason=reason)
    return leave_unmeasured(reason)


def fail_without_answer(line: Line) -> Grade:
    """Return the grade of a run that gave no answer."""
    reason = f"no usable answer came: the run ended {line['ended']}"
    return Grade(verdict="failed", score=0.0, reason=reason)


def leave_unmeasured(reason: str) -> Grade:
    """Return the grade of an answer that cannot be graded."""
    return Grade(verdict="not_measured", reason=reason)


def _judge(is_target_met: bool | None, checks: Sequence[CheckOutcome]) -> tuple[Verdict, str]:
    """Return the verdict, and the reasons against a better one. A failure decides, whatever else
    could not be measured."""
    blocking = [check for check in checks if check.blocks]
    failed = [check for check in blocking if check.measured]
    if is_target_met is False:
        return "failed", "; ".join(["the answer is not the target", *map(_describe, failed)])
    if failed:
        return "failed", "; ".join(map(_describe, failed))
    if blocking:
        return "not_measured", "; ".join(map(_describe, blocking))
    if is_target_met is None and not checks:
        return "not_measured", "the row has no target, and no check ran"
    return "passed", ""


def _describe(check: CheckOutcome) -> str:
    return f"{check.name}: {check.feedback}" if check.feedback else check.name


def _score(is_target_met: bool | None, checks: Sequence[CheckOutcome]) -> float:
    parts = [(_score_of(check), check.weight) for check in checks]
    if is_target_met is not None:
        parts.append((float(is_target_met), 1.0))
    weight = sum(weight for _, weight in parts)
    if not weight:
        return float(all(check.passed for check in checks))
    return sum(score * weight for score, weight in parts) / weight


def _score_of(check: CheckOutcome) -> float:
    """Return a check's own score where it has one, else whether it passed."""
    if check.score is not None and 0 <= check.score <= 1:
        return check.score
    return float(check.passed)
