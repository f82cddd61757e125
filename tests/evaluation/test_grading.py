"""Whether an answer passed."""

from typing import Any

import pytest

from aeon.batch.dataset import Row
from aeon.domain.checks import CheckOutcome
from aeon.domain.result import SIMULATED_LINE
from aeon.evaluation.grading import grade, is_done


def row(target: str = "15") -> Row:
    return Row(1, 1, "r1", "add 5 and 10", target=target)


def line(answer: str = "15", ended: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "r1", "ended": ended, "answer": answer, **more}


def check(name: str = "short", *, passed: bool = True, **fields: Any) -> dict[str, Any]:
    return CheckOutcome(name=name, type="word-count", passed=passed, **fields).model_dump()


def test_an_answer_that_is_the_target_passes_with_the_full_score() -> None:
    graded = grade(row(), line(" 15.0\n"))
    assert (graded.verdict, graded.score, graded.is_target_met) == ("passed", 1.0, True)


def test_an_answer_that_is_not_the_target_fails_and_says_so() -> None:
    graded = grade(row(), line("16"))
    assert (graded.verdict, graded.score, graded.is_target_met) == ("failed", 0.0, False)
    assert graded.reason == "the answer is not the target"


def test_without_an_answer_the_target_is_missed() -> None:
    assert grade(row(), line("", "ttl_expired")).verdict == "failed"


@pytest.mark.parametrize("text", ["", f"{SIMULATED_LINE}\n"])
@pytest.mark.parametrize("target", ["", "15"])
def test_a_run_that_gave_no_usable_answer_has_failed_whatever_its_checks_say(
    text: str, target: str
) -> None:
    left = line(text, "step_failed", passes=1, steps_left=1, checks=[check()])
    graded = grade(row(target), left)
    assert (graded.verdict, graded.score, graded.checks) == ("failed", 0.0, ())
    assert graded.reason == "no usable answer came: the run ended step_failed"


def test_a_run_that_ended_before_it_had_a_plan_has_no_answer() -> None:
    ended = line("", "ttl_expired", passes=0, steps_left=0, checks=[check()])
    assert grade(row(""), ended).reason == "no usable answer came: the run ended ttl_expired"


def test_a_run_without_an_answer_is_done_whatever_could_not_be_checked() -> None:
    unmeasured = [check(passed=False, measured=False)]
    assert is_done(line("", "step_failed", passes=1, steps_left=1, checks=unmeasured))


def test_an_empty_text_of_a_complete_step_is_graded_as_an_answer() -> None:
    empty = line("", passes=1, steps_left=0, checks=[check()])
    assert grade(row(""), empty).verdict == "passed"
    assert grade(row(), empty).reason == "the answer is not the target"


@pytest.mark.parametrize("ended", ["failed", "invalid", "interrupted"])
def test_a_run_that_failed_is_not_measured(ended: str) -> None:
    graded = grade(row(), line("", ended, error={"type": "run", "message": "no server"}))
    assert (graded.verdict, graded.score, graded.reason) == ("not_measured", None, "no server")


@pytest.mark.parametrize("kind", ["ValidationError", "Truncated", "Refused", "PlanError"])
def test_a_run_that_failed_by_its_model_has_failed_and_is_not_asked_again(kind: str) -> None:
    failed = line("", "failed", error={"type": kind, "message": "of no use"})
    assert grade(row(), failed).verdict == "failed"
    assert grade(row(), failed).score == 0
    assert is_done(failed)


@pytest.mark.parametrize("kind", ["ServerFailed", "AuthenticationFailed", "StoreFailed"])
def test_a_run_that_failed_by_its_provider_goes_on(kind: str) -> None:
    failed = line("", "failed", error={"type": kind, "message": "down"})
    assert grade(row(), failed).verdict == "not_measured"
    assert not is_done(failed)


def test_a_run_goes_on_whose_check_could_not_be_had() -> None:
    assert is_done(line(checks=[check(passed=False)]))
    assert not is_done(line(checks=[check(passed=False, measured=False)]))
    assert is_done(line(checks=[check(passed=False, measured=False, required=False)]))


def test_a_row_that_was_not_run_is_not_measured() -> None:
    assert grade(row(), None).verdict == "not_measured"


def test_a_row_without_target_and_checks_is_not_measured() -> None:
    graded = grade(row(target=""), line())
    assert graded.verdict == "not_measured"
    assert graded.reason == "the row has no target, and no check ran"


def test_an_answer_passes_with_its_target_and_all_required_checks() -> None:
    assert grade(row(), line(checks=[check()])).verdict == "passed"
    assert grade(row(target=""), line(checks=[check()])).verdict == "passed"
    assert grade(row("16"), line(checks=[check()])).verdict == "failed"


def test_a_required_check_that_failed_fails_the_answer_with_its_feedback() -> None:
    graded = grade(row(), line(checks=[check(passed=False, feedback="9 words")]))
    assert (graded.verdict, graded.score, graded.reason) == ("failed", 0.5, "short: 9 words")


def test_a_check_that_is_not_required_lowers_the_score_alone() -> None:
    checks = [check(passed=False, required=False, weight=3.0)]
    graded = grade(row(), line(checks=checks))
    assert (graded.verdict, graded.score) == ("passed", 0.25)


def test_the_score_of_a_check_counts_by_its_weight() -> None:
    checks = [check(score=0.5, weight=2.0), check("other", score=7.0)]
    assert grade(row(target=""), line(checks=checks)).score == pytest.approx((1.0 + 1.0) / 3)


def test_a_check_that_could_not_be_had_is_not_measured() -> None:
    checks = [check(passed=False, measured=False, feedback="the judge is down")]
    graded = grade(row(), line(checks=checks))
    assert (graded.verdict, graded.reason) == ("not_measured", "short: the judge is down")


def test_what_failed_has_failed_whatever_else_could_not_be_had() -> None:
    checks = [check(passed=False, measured=False), check("other", passed=False)]
    assert grade(row(), line(checks=checks)).verdict == "failed"
    assert grade(row(), line("16", checks=checks[:1])).verdict == "failed"
