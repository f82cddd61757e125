"""What follows from checks: pure decisions on values."""

from __future__ import annotations

from aeon.checks.decision import block, describe_rubrics, make_issues, read_rubrics
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, CriterionResult
from aeon.domain.checks import CheckOutcome, RubricCheck
from tests.plan.builders import done, plan_of, step

PASSED = CheckOutcome(name="short", type="word-count", passed=True)
FAILED = CheckOutcome(name="tests", type="command", passed=False, feedback="1 failed\nwhy")
ADVICE = CheckOutcome(name="kind", type="llm-rubric", passed=False, required=False)
GOOD = ConvergenceAssessment(converged=True, reason_codes=("as_good_as_it_gets",))


def unmet(*names: str, codes: tuple[str, ...] = ()) -> ConvergenceAssessment:
    return ConvergenceAssessment(
        converged=False,
        reason_codes=(*codes, *names),
        scores=ConvergenceScores(completeness_score=1),
        criteria=tuple(CriterionResult(name=name, met=False) for name in names),
    )


def test_without_checks_an_assessment_stays_as_it_is() -> None:
    assert block(GOOD, ()) is GOOD


def test_checks_that_passed_are_named_beside_what_was_satisfied() -> None:
    found = block(GOOD, (PASSED,))
    assert (found.converged, found.reason_codes) == (True, ("as_good_as_it_gets", "short"))


def test_a_required_check_blocks_a_converged_assessment() -> None:
    found = block(GOOD, (PASSED, FAILED))
    assert (found.converged, found.reason_codes) == (False, ("tests",))


def test_a_required_check_is_named_beside_what_the_judge_missed() -> None:
    found = block(unmet(codes=("incomplete",)), (FAILED,))
    assert (found.converged, found.reason_codes) == (False, ("incomplete", "tests"))


def test_a_rubric_that_is_not_required_blocks_nothing() -> None:
    found = block(unmet("kind"), (PASSED, ADVICE))
    assert found.converged
    assert found.reason_codes == ("complete", "coherent", "consistent", "short")


def test_a_criterion_of_another_name_still_blocks() -> None:
    found = block(unmet("kind", "cited"), (ADVICE,))
    assert (found.converged, found.reason_codes) == (False, ("cited",))


def test_a_rubric_that_must_not_hold_is_asked_so() -> None:
    rubrics = {
        "kind": RubricCheck(type="llm-rubric", value="It is kind."),
        "rude": RubricCheck(type="not-llm-rubric", value="It is rude."),
    }
    words = {"kind": "It is kind.", "rude": "This must not hold: It is rude."}
    assert describe_rubrics(rubrics) == words
    met = CriterionResult(name="kind", met=True, reason="'Dear all'")
    judged = GOOD.model_copy(update={"criteria": (met,)})
    kind, rude = read_rubrics(judged, rubrics)
    assert (kind.passed, kind.measured, kind.feedback) == (True, True, "'Dear all'")
    assert (rude.passed, rude.measured) == (False, False)


def test_a_failed_check_is_an_issue_of_the_step_that_the_answer_comes_from() -> None:
    plan = plan_of(done("a"), done("b", "a"))
    (issue,) = make_issues((PASSED, FAILED, ADVICE), plan)
    assert (issue.issue_id, issue.type, issue.severity) == ("check:tests", "failed_check", "HIGH")
    assert issue.description == "1 failed\nwhy"
    assert issue.step_id == "b"


def test_a_rubric_without_a_finding_says_so_and_is_no_issue() -> None:
    (kind,) = read_rubrics(None, {"kind": RubricCheck(type="llm-rubric", value="It is kind.")})
    assert (kind.measured, kind.blocks) == (False, True)
    assert kind.feedback == "The judge gave no usable finding on it."
    crashed = FAILED.model_copy(update={"measured": False})
    issues = make_issues((kind, crashed), plan_of(done("a")))
    assert [issue.issue_id for issue in issues] == ["check:tests"]


def test_of_an_unfinished_answer_only_checks_of_steps_are_issues() -> None:
    plan = plan_of(done("a"), step("b", "a"))
    of_step = FAILED.model_copy(update={"name": "a.tests", "step_id": "a"})
    (issue,) = make_issues((FAILED, of_step), plan)
    assert (issue.issue_id, issue.step_id) == ("check:a.tests", "a")
