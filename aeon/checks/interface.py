"""What a check is given, and what it may return."""

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
    """The run as a check sees it. `outputs` are those of the complete steps, by id;
    `previous_answer` is what the same check looked at in the pass before; `row` is the row of the
    dataset, as it stands there, for the run of a row."""

    task: str
    inputs: dict[str, str] = Field(default_factory=dict)
    outputs: dict[str, str] = Field(default_factory=dict)
    pass_number: int = 1
    previous_answer: str | None = None
    row: JsonObject | None = None


class CheckResult(Value):
    """What a check found: whether the answer passes, a score of the check's own, and what to say to
    those who mend the answer."""

    passed: bool
    score: float | None = None
    feedback: str = ""


class CheckBroken(Exception):
    """A check gave no result: it crashed, ran out of time or could not be read."""


def describe_failure(error: BaseException) -> str:
    """Why a check gave no result; of a crash the place, too, by which its person finds it."""
    if isinstance(error, CheckBroken):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"crashed: {type(error).__name__}: {error}{where}"


class AnswerChecks(Protocol):
    """The checks of one run, as the kernel calls them."""

    @property
    def rubrics(self) -> Mapping[str, RubricCheck]:
        """What the judge is asked beside the criteria, by name."""

    def run(self, plan: Plan, answer: str, site: CallSite) -> tuple[CheckOutcome, ...]:
        """Run all checks on an answer, or give what they found before."""

    def run_on_sample(self, plan: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:
        """Run the checks that look at a step on one of several answers to it."""


class _NoChecks:
    rubrics: Mapping[str, RubricCheck] = {}

    def run(self, plan: Plan, answer: str, site: CallSite) -> tuple[CheckOutcome, ...]:  # noqa: ARG002
        """Find nothing."""
        return ()

    def run_on_sample(self, plan: Plan, step: PlanStep) -> tuple[CheckOutcome, ...]:  # noqa: ARG002
        """Find nothing."""
        return ()


NO_CHECKS: AnswerChecks = _NoChecks()
"""The checks of a run that has none."""
