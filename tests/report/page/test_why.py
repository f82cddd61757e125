"""The sentence under the headline: each form of it, and when it is true."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from aeon.checks.decision import block
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import RunError
from aeon.report.diagnosis.finding import Evidence
from aeon.report.page.why import explain_end
from tests.report.diagnosis.builders import (
    UNAVAILABLE,
    a_pass,
    a_run,
    a_step,
    assessed,
    blocked,
)

DOWN = RunError(type="ConnectionFailed", message="No answer.")
OMISSION = {"kind": "omission", "description": "No prices.", "blocking": True}
OTHER = {**OMISSION, "kind": "other"}
CHECKS = (
    CheckOutcome(name="tests", type="command", passed=False),
    CheckOutcome(name="kind", type="llm-rubric", passed=False, measured=False),
)
FAILED = a_step("facts", status="failed")


def core() -> dict[str, Any]:
    configuration = a_run().result.configuration
    return {**configuration, "mode": {**configuration["mode"], "kind": "core"}}


CASES: dict[str, tuple[Callable[[], Evidence], str]] = {
    "an error": (
        lambda: a_run(a_pass(1, assessed(0.5)), reason="failed", error=DOWN),
        "ConnectionFailed: No answer.",
    ),
    "core mode": (
        lambda: a_run(reason="completed", configuration=core()),
        "In core mode the plan is carried out step by step, and nothing is judged.",
    ),
    "converged": (
        lambda: a_run(a_pass(1, assessed(0.5)), a_pass(2, assessed(0.96)), reason="converged"),
        "Pass 2 reached every threshold: completeness 0.96 (threshold 0.95); "
        "coherence 0.95 (threshold 0.90); consistency 0.95 (threshold 0.90).",
    ),
    "converged with criteria": (
        lambda: a_run(
            a_pass(1, assessed(0.96, criteria={"cited": True, "short": True})), reason="converged"
        ),
        "Pass 1 reached every threshold: completeness 0.96 (threshold 0.95); coherence 0.95 "
        "(threshold 0.90); consistency 0.95 (threshold 0.90); `cited` and `short` met.",
    ),
    "a score, never rounded up": (
        lambda: a_run(a_pass(1, assessed(0.9499)), passes=1),
        "After 1 pass, completeness is 0.94 (threshold 0.95).",
    ),
    "a criterion": (
        lambda: a_run(a_pass(1, assessed(criteria={"cited": False})), passes=1),
        "After 1 pass, the criterion `cited` is not met.",
    ),
    "an issue": (
        lambda: a_run(a_pass(1, assessed(issues=(OMISSION,))), passes=1),
        "After 1 pass, a blocking issue stands (omission).",
    ),
    "an issue of no kind": (
        lambda: a_run(a_pass(1, assessed(issues=(OTHER,))), passes=1),
        "After 1 pass, a blocking issue stands.",
    ),
    "no assessment": (
        lambda: a_run(a_pass(1, assessed(0.5)), a_pass(2, UNAVAILABLE), passes=2),
        "After 2 passes, the judge gave no usable assessment.",
    ),
    "a check that failed, and one that was not measured": (
        lambda: a_run(a_pass(1, block(assessed(), CHECKS), checks=CHECKS), passes=1),
        "After 1 pass, the check `tests` failed; the check `kind` could not be measured.",
    ),
    "steps that are held": (
        lambda: a_run(a_pass(1, None, steps=(blocked("facts"), FAILED)), passes=1),
        "After 1 pass, the step `facts` is BLOCKED; the step `facts` failed.",
    ),
    "only what the last pass still lacks": (
        lambda: a_run(
            a_pass(1, assessed(criteria={"cited": False})), a_pass(2, assessed(0.5)), passes=2
        ),
        "After 2 passes, completeness is 0.50 (threshold 0.95).",
    ),
    "nothing was judged": (lambda: a_run(a_pass(1), reason="max_seconds"), "No pass was judged."),
    "judged, and nothing is missing": (
        lambda: a_run(a_pass(1, assessed()), reason="interrupted"),
        "",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_sentence_says_what_decided_the_end(name: str) -> None:
    run, sentence = CASES[name]
    evidence = run()
    assert explain_end(evidence.result, evidence.patterns) == sentence
