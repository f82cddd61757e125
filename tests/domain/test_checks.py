"""What checks found on an answer, and where a run says it."""

from __future__ import annotations

from aeon.domain.checks import CheckOutcome, count_passed, find_failed_codes, weight_passed
from aeon.domain.history import BestPass, EvaluationResults
from aeon.domain.outcome import final_checks
from tests.domain.test_outcome import a_pass

PASSED = CheckOutcome(name="short", type="word-count", passed=True, weight=2)
FAILED = CheckOutcome(name="tests", type="command", passed=False, feedback="1 failed")
ADVICE = CheckOutcome(name="polite", type="icontains", passed=False, required=False)


def test_a_required_check_that_failed_is_a_reason_not_to_converge():
    assert find_failed_codes((PASSED, FAILED, ADVICE)) == ("tests",)


def test_checks_are_counted_and_weighed():
    assert count_passed((PASSED, FAILED, ADVICE)) == "1 of 3"
    assert weight_passed((PASSED, FAILED, ADVICE)) == 2


def test_prompts_show_what_a_check_is_and_say_its_condition_once():
    asks = CheckOutcome(name="a", type="equals", passed=True, condition="must equal 1", step_id="s")
    assert asks.view == {
        "name": "a",
        "type": "equals",
        "passed": True,
        "step_id": "s",
        "condition": "must equal 1",
    }
    failed = asks.model_copy(update={"passed": False, "feedback": "The answer must equal 1."})
    assert "condition" not in failed.view
    assert failed.view["feedback"] == "The answer must equal 1."
    assert FAILED.view == {
        "name": "tests",
        "type": "command",
        "passed": False,
        "feedback": "1 failed",
    }


def test_the_checks_of_a_run_are_those_of_its_answer():
    passes = (
        a_pass(0),
        a_pass(1, evaluation_results=EvaluationResults(checks=(FAILED,))),
        a_pass(2, evaluation_results=EvaluationResults(checks=(PASSED,))),
        a_pass(3, complete=False),
    )
    assert final_checks(passes) == (PASSED,)
    assert final_checks(()) == ()
    best = BestPass(pass_number=1, completeness_score=0.9, answer="answer of 1")
    assert final_checks(passes, best) == (FAILED,)
