"""The input and output of a check."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from pydantic import Field

from aeon.domain.checks import CheckOutcome, RubricCheck
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite
from aeon.domain.values import JsonObject, Value


class CheckContext(Value):
    """The run as a check sees it. `outputs` are those of complete steps, by id; `previous_answer`
    is what the same check examined in the previous pass; `row` is the unchanged dataset row, if the
    run is for one."""

    task: str
    inputs: dict[str, str] = Field(default_factory=dict)
    outputs: dict[str, str] = Field(default_factory=dict)
    pass_number: int = 1
    previous_answer: str | None = None
    row: JsonObject | None = None


class CheckResult(Value):
    """The result of a check: whether the answer passes, the check's own score, and feedback for
    mending the answer."""

    passed: bool
    score: float | None = None
    feedback: str = ""


class CheckBroken(Exception):
    """A check returned no result: it crashed, timed out or was unreadable."""


def describe_failure(error: BaseException) -> str:
    """Return why a check returned no result; for a crash, with its place in the code."""
    if isinstance(error, CheckBroken):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"crashed: {type(error).__name__}: {error}{where}"


class AnswerChecks(Protocol):
    """The checks of one run, as the kernel calls them."""

    @property
    def rubrics(self) -> Mapping[str, RubricCheck]:
        """The rubrics for the judge, besides the criteria, by name."""

    def run(self, plan: Plan, answer: str, site: CallSite) -> tuple[CheckOutcome, ...]:
        """Run all checks on an answer, or return their earlier outcomes."""

    def run_on_sample(self, plan: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:
        """Run the checks of a step on one of several answers to it."""


class _NoChecks:
    rubrics: Mapping[str, RubricCheck] = {}

    def run(self, plan: Plan, answer: str, site: CallSite) -> tuple[CheckOutcome, ...]:  # noqa: ARG002
        """Return no outcomes."""
        return ()

    def run_on_sample(self, plan: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:  # noqa: ARG002
        """Return no outcomes."""
        return ()


NO_CHECKS: AnswerChecks = _NoChecks()
"""The checks of a run without any."""
