"""Every end that is not success says what is open and what to type next, by its reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from aeon.app.aeon import Aeon
from aeon.cli.terminal.lines import ending
from aeon.config.load import compose
from aeon.domain.assessment import ConvergenceAssessment, ConvergenceScores, CriterionResult
from aeon.domain.history import Advisory, EvaluationResults, StepResult
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.result import RunResult, TokenUsage, TTLReport, UsageReport
from aeon.report.diagnosis.next_commands import find_next_commands
from aeon.report.ending import open_points
from tests.plan.builders import step

DIRECTORY = Path("/runs/one")
RESUME = "python -m aeon resume=/runs/one"
QUESTION = FollowUpQuestion(question="Which currency?", assumption="Euro.")
LOW = ConvergenceScores(completeness_score=0.926, coherence_score=0.95, consistency_score=0.95)
BLOCKED = step(
    "rate", status="invalid", clarity_state="BLOCKED", clarity_reason="The bank is not known"
)


@pytest.fixture(scope="module")
def converged() -> RunResult:
    with Aeon(
        compose(["provider=simulated", "experiment=quick", "limits.max_passes=20"]), {}
    ) as aeon:
        return aeon.run("plan a move")


def _result_of(step: PlanStep) -> StepResult:
    state, reason = step.clarity_state, step.clarity_reason
    return StepResult(step_id=step.step_id, clarity_state=state, clarity_reason=reason)


def ended(result: RunResult, reason: str, *steps: PlanStep, **changes: Any) -> RunResult:
    """The run, had it ended so, with these steps (by default, complete ones)."""
    planned = result.history.passes[0]
    assessed = ConvergenceAssessment(converged=False, reason_codes=("incomplete",), scores=LOW)
    last = result.history.passes[-1].model_copy(
        update={
            "pass_number": 1,
            "execution_results": {one.step_id: _result_of(one) for one in steps},
            "steps": steps or (step("a", status="complete"),),
            "evaluation_results": EvaluationResults(
                convergence=assessed if changes.get("scores") else None
            ),
        }
    )
    history = result.history.model_copy(
        update={"passes": (planned, last), "final_convergence": assessed}
    )
    usage = UsageReport(total=TokenUsage(requests=9))
    of_this = {
        "converged": False,
        "termination_reason": reason,
        "history": history,
        "usage": usage,
        "scores": None,
        "follow_up_questions": (),
        "advisories": (),
        "ttl": TTLReport(allocated=24, used=24, remaining=0),
    }
    return result.model_copy(update={**of_this, **changes})


def configured(result: RunResult, **groups: dict[str, Any]) -> dict[str, Any]:
    known = result.configuration
    return {**known, **{name: {**known[name], **values} for name, values in groups.items()}}


@pytest.mark.parametrize(
    ("reason", "groups", "overrides"),
    [
        ("ttl_expired", {"ttl": {"base": 10, "limit": 100}}, "ttl.base=20"),
        ("ttl_expired", {"ttl": {"base": 10, "limit": 40}}, "ttl.base=20 ttl.limit=48"),
        ("ttl_expired", {"ttl": {"base": 50, "limit": 24}}, "ttl.base=100 ttl.limit=48"),
        (
            "ttl_expired",
            {"ttl": {"base": 10, "limit": 100}, "limits": {"max_llm_calls": 30}},
            "ttl.base=20 limits.max_llm_calls=48",
        ),
        ("max_passes", {"limits": {"max_passes": 3}}, "limits.max_passes=6"),
        ("max_seconds", {"limits": {"max_seconds": 90.0}}, "limits.max_seconds=270.0"),
        ("max_cost", {"limits": {"max_cost": 0.25}}, "limits.max_cost=0.75"),
        ("max_tokens", {"limits": {"max_tokens": 2000000}}, "limits.max_tokens=6000000"),
        ("interrupted", {}, ""),
        ("failed", {}, ""),
        ("step_failed", {}, ""),
    ],
)
def test_the_command_that_goes_on_has_the_override_that_helps(
    converged: RunResult, reason: str, groups: dict[str, Any], overrides: str
) -> None:
    run = ended(converged, reason, configuration=configured(converged, **groups))
    purpose = "To continue with higher limits" if overrides else "To resume from the stored answers"
    command = f"{RESUME} {overrides}".rstrip()
    assert find_next_commands(run, DIRECTORY) == [(purpose, command)]
    assert f"{purpose}: {command}" in ending(run, DIRECTORY)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("ttl_expired", "Finished without converging: the TTL is spent (ttl_expired). "),
        (
            "stalled",
            "Finished without converging: no step was ready and nothing changed (stalled). ",
        ),
        ("max_tokens", "Finished without converging: limits.max_tokens was reached (max_tokens). "),
        ("interrupted", "Interrupted. "),
    ],
)
def test_every_end_is_said_in_words(converged: RunResult, reason: str, said: str) -> None:
    assert ending(ended(converged, reason), DIRECTORY).startswith(said)


def test_a_larger_budget_in_core_mode_does_not_promise_the_answers_of_a_smaller_one(
    converged: RunResult,
) -> None:
    run = ended(
        converged, "ttl_expired", configuration=configured(converged, mode={"kind": "core"})
    )
    assert [purpose for purpose, _ in find_next_commands(run, DIRECTORY)] == [
        "To continue with higher limits"
    ]


def test_to_go_on_is_not_offered_where_all_that_is_open_has_a_stored_answer(
    converged: RunResult,
) -> None:
    run = ended(converged, "step_failed", BLOCKED)
    assert [command for _, command in find_next_commands(run, DIRECTORY)] == [
        f'{RESUME} inputs.NAME="..."'
    ]
    run = ended(converged, "step_failed", step("report"))
    assert find_next_commands(run, DIRECTORY) == [("To resume from the stored answers", RESUME)]


def test_scores_below_their_bar_are_named_with_it_and_with_the_threshold_that_they_reach(
    converged: RunResult,
) -> None:
    run = ended(
        converged,
        "stalled",
        scores=LOW,
        configuration=configured(converged, convergence={"completeness": 0.95}),
    )
    assert open_points(run) == [("completeness", "0.92 (threshold 0.95)")]
    assert find_next_commands(run, DIRECTORY) == [
        ("To accept the answer as it is", f"{RESUME} convergence.completeness=0.92")
    ]


@pytest.mark.parametrize(
    "steps",
    [(BLOCKED,), (step("a", status="complete"), step("b"))],
    ids=("a blocked step", "a step not reached"),
)
def test_a_lower_bar_is_not_offered_while_work_is_left(
    converged: RunResult, steps: tuple[PlanStep, ...]
) -> None:
    run = ended(converged, "stalled", *steps, scores=LOW)
    assert "To accept the answer as it is" not in dict(find_next_commands(run, DIRECTORY))


def test_a_blocked_step_is_named_with_what_it_misses_and_a_failed_one_with_its_error(
    converged: RunResult,
) -> None:
    failed = step("sum", status="failed", errors=("the tool is down", "timed out"))
    cut_off = step("draft", incomplete=True)
    run = ended(converged, "stalled", BLOCKED, failed, cut_off, step("report"))
    assert open_points(run) == [
        ("blocked", "rate: The bank is not known"),
        ("failed", "sum: timed out"),
        ("not finished", "draft"),
        ("not reached", "report"),
    ]
    assert "\n  blocked: rate: The bank is not known\n" in ending(run, DIRECTORY)
    given = (
        "To give the step what it misses (repeats every call)",
        f'{RESUME} inputs.NAME="..."',
    )
    assert find_next_commands(run, DIRECTORY) == [given]


def test_open_questions_stand_with_their_text_and_can_be_answered(converged: RunResult) -> None:
    answered = QUESTION.model_copy(update={"question": "When?", "answer": "Now."})
    run = ended(converged, "max_passes", follow_up_questions=(QUESTION, answered, QUESTION))
    assert open_points(run) == [("question", "Which currency? (assumed: Euro)")]
    passes = 2 * converged.configuration["limits"]["max_passes"]
    assert (
        "To answer the questions",
        f"{RESUME} limits.max_passes={passes} interaction=ask",
    ) in find_next_commands(run, DIRECTORY)
    asked = run.model_copy(
        update={"configuration": configured(converged, interaction={"kind": "ask"})}
    )
    assert "To answer the questions" not in dict(find_next_commands(asked, DIRECTORY))


def test_a_criterion_that_is_not_met_and_an_issue_in_the_way_are_named(
    converged: RunResult,
) -> None:
    run = ended(converged, "stalled", scores=LOW)
    assessed = ConvergenceAssessment(
        converged=False,
        reason_codes=("cites_sources",),
        scores=LOW,
        criteria=(
            CriterionResult(name="cites_sources", met=False, reason="No source stands in it"),
        ),
        detected_issues=("Two totals differ",),
        blocking_issues=("Two totals differ",),
    )
    planned, last = run.history.passes
    judged = last.model_copy(update={"evaluation_results": EvaluationResults(convergence=assessed)})
    history = {"passes": (planned, judged), "final_convergence": assessed}
    run = run.model_copy(update={"history": run.history.model_copy(update=history)})
    assert ("not met, cites_sources", "No source stands in it") in open_points(run)
    assert ("issue", "Two totals differ") in open_points(run)
    purposes = [purpose for purpose, _ in find_next_commands(run, DIRECTORY)]
    assert purposes == ["To word the criterion so that it can be met"]


def test_the_limit_on_refinements_is_named_where_it_held_a_run_up(converged: RunResult) -> None:
    held = Advisory(
        kind="refinement_limit", message="No more refinements are allowed", pass_number=3
    )
    left = Advisory(
        kind="manual_intervention", message="Step a needs a person's attention.", pass_number=3
    )
    run = ended(converged, "stalled", advisories=(held, left))
    twice = 2 * converged.configuration["refinement"]["max_attempts_total"]
    assert (
        find_next_commands(run, DIRECTORY)[0][1]
        == f"{RESUME} refinement.max_attempts_total={twice}"
    )
    assert ("for you", "Step a needs a person's attention.") in open_points(run)


def test_without_kept_answers_the_override_is_said_and_no_run_to_resume(
    converged: RunResult,
) -> None:
    off = configured(converged, store={"mode": "off"}, limits={"max_passes": 3})
    run = ended(converged, "max_passes", configuration=off)
    assert find_next_commands(run, DIRECTORY) == [
        ("To continue with higher limits", "run it again with limits.max_passes=6")
    ]
    assert find_next_commands(ended(converged, "interrupted", configuration=off), DIRECTORY) == []


def test_a_recording_cannot_go_on(converged: RunResult) -> None:
    run = ended(
        converged, "max_passes", configuration=configured(converged, store={"mode": "replay"})
    )
    own = ("To run it with a model of your own", "python -m aeon task='plan a move'")
    assert find_next_commands(run, DIRECTORY) == [own]


def test_a_directory_below_the_working_directory_is_named_from_there(
    converged: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ended(converged, "interrupted")
    assert (
        find_next_commands(run, tmp_path / "my runs" / "one")[0][1]
        == "python -m aeon resume='my runs/one'"
    )
