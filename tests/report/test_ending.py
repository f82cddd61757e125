"""The sentences of a run's end, each with when it is true."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from aeon.app.aeon import Aeon
from aeon.cli.terminal.lines import ending as describe_ending
from aeon.config.load import compose
from aeon.domain.assessment import SCORE_CODES, ConvergenceAssessment, ConvergenceScores
from aeon.domain.checks import CheckOutcome
from aeon.domain.history import EvaluationResults, SampleRecord, TerminationReason
from aeon.domain.plan import PlanStep
from aeon.domain.result import (
    Degradation,
    Overrun,
    ParentRun,
    RunResult,
    Saved,
    TokenUsage,
    UsageReport,
)
from aeon.report import ending
from aeon.report.diagnosis.next_commands import find_next_commands
from tests.plan.builders import step

DIRECTORY = Path("/runs/one")
DONE = step("a", status="complete")
NOT_RUN = step("b")
FAILED = step("c", status="failed", errors=("down",))
BLOCKED = step("d", status="invalid", clarity_state="BLOCKED", clarity_reason="who?")
REPLACED = step("e", status="invalid", replaced_by="f")
TOOL = Degradation(
    kind="tool_missing",
    step="a",
    message="Tool 'x' not found in registry",
    remedy="Register it: tools=builtin",
    overrides=("tools=builtin",),
)
SERVER = Degradation(kind="server_down", message="The MCP server 'y' did not start", remedy="r")
REVIEW = Degradation(kind="review_lost", message="Pass 0 lacks a review", remedy="r")


@pytest.fixture(scope="module")
def converged() -> RunResult:
    with Aeon(
        compose(["provider=simulated", "experiment=quick", "limits.max_passes=20"]), {}
    ) as aeon:
        return aeon.run("plan a move")


def with_steps(result: RunResult, *steps: PlanStep, **changes: Any) -> RunResult:
    """The run, had these been its steps at the end."""
    last = result.history.passes[-1].model_copy(update={"steps": steps})
    passes = (*result.history.passes[:-1], last)
    left = {one.step_id: one.state for one in steps if one.state not in ("complete", "replaced")}
    history = result.history.model_copy(update={"passes": passes})
    return result.model_copy(update={"history": history, "steps_left": left, **changes})


def configured(result: RunResult, group: str, **values: Any) -> dict[str, Any]:
    return {**result.configuration, group: {**result.configuration[group], **values}}


@pytest.mark.parametrize(
    ("steps", "changes", "sentence"),
    [
        ((DONE,), {}, "Converged."),
        ((DONE, REPLACED), {}, "Converged."),
        ((DONE, NOT_RUN), {}, "Converged; 1 of 2 steps was not needed and did not run."),
        (
            (DONE, NOT_RUN, NOT_RUN.model_copy(update={"step_id": "b2"}), REPLACED),
            {},
            "Converged; 2 of 3 steps were not needed and did not run.",
        ),
        ((DONE, FAILED), {}, "Converged; 1 of 2 steps was not completed: failed."),
        ((DONE, BLOCKED), {}, "Converged; 1 of 2 steps was not completed: blocked or invalid."),
        (
            (DONE,),
            {"degraded": (TOOL,)},
            "Converged; 1 of 1 step was done by the model instead of its tool.",
        ),
        (
            (DONE, DONE.model_copy(update={"step_id": "a2"}), NOT_RUN),
            {"degraded": (TOOL, TOOL.model_copy(update={"step": "a2"}))},
            "Converged; 1 of 3 steps was not needed and did not run; "
            "2 of 3 steps were done by the model instead of their tools.",
        ),
        ((DONE,), {"degraded": (SERVER,)}, "Converged; 1 MCP server did not start."),
        (
            (DONE,),
            {"degraded": (REVIEW, REVIEW)},
            "Converged; 2 reviews or assessments could not be had.",
        ),
        ((DONE,), {"self_judged": True}, "Converged; judged by the model that did the work."),
        (
            (DONE,),
            {"self_judged": True, "termination_reason": "plateau", "converged": False},
            "Finished without converging: the last passes gained nothing (plateau); "
            "judged by the model that did the work.",
        ),
        (
            (DONE,),
            {
                "self_judged": True,
                "assessed_pass": None,
                "termination_reason": "interrupted",
                "converged": False,
            },
            "Interrupted.",
        ),
        (
            (DONE,),
            {"degraded": (TOOL,), "termination_reason": "completed", "converged": False},
            "Completed; 1 of 1 step was done by the model instead of its tool.",
        ),
        (
            (DONE, NOT_RUN),
            {"termination_reason": "stalled", "converged": False},
            "Finished without converging: no step was ready and nothing changed (stalled).",
        ),
        (
            (FAILED,),
            {
                "degraded": (TOOL.model_copy(update={"step": "c"}),),
                "termination_reason": "step_failed",
                "converged": False,
            },
            "Finished, but not every step is complete.",
        ),
    ],
)
def test_the_headline_says_how_it_ended_and_what_it_did_without(
    converged: RunResult, steps: tuple[PlanStep, ...], changes: dict[str, Any], sentence: str
) -> None:
    run = with_steps(converged, *steps, **changes)
    assert ending.headline(run) == sentence
    assert describe_ending(run, DIRECTORY).startswith(sentence)


@pytest.mark.parametrize("mode", ["adaptive", "core"])
@pytest.mark.parametrize("reason", get_args(TerminationReason))
def test_every_reason_has_a_sentence_which_names_it(
    converged: RunResult, reason: str, mode: str
) -> None:
    run = converged.model_copy(
        update={
            "termination_reason": reason,
            "converged": reason == "converged",
            "configuration": configured(converged, "mode", kind=mode),
        }
    )
    said = ending.verdict(run)
    assert said.endswith(".")
    if said.startswith("Finished without"):
        assert said.endswith(f"({reason}).")
        assert said.startswith(
            f"Finished without {'completing' if mode == 'core' else 'converging'}:"
        )
    else:
        assert reason in (
            *("converged", "completed", "failed", "interrupted", "waiting", "step_failed"),
            "check_failed",
        )


@pytest.mark.parametrize(
    ("limit", "cap", "used", "words"),
    [
        ("max_tokens", 2000, 2052, "the cap of 2,000 tokens was reached with 2,052"),
        ("max_cost", 0.5, 0.51234, "the cap of 0.5 on cost was reached with 0.51234"),
        ("max_seconds", 1.5, 12.3, "the cap of 1.5 s was reached with 12.3"),
    ],
)
def test_a_cap_that_was_overrun_is_named_with_both_figures(
    converged: RunResult, limit: str, cap: float, used: float, words: str
) -> None:
    ended = {"termination_reason": limit, "converged": False}
    run = converged.model_copy(update={**ended, "overrun": Overrun(cap=cap, used=used)})
    assert ending.headline(run) == f"Finished without converging: {words} ({limit})."


def test_a_cap_that_the_last_call_exceeded_is_named_whatever_ended_the_run(
    converged: RunResult,
) -> None:
    run = converged.model_copy(update={"overrun": Overrun(limit="max_cost", cap=0.03, used=0.05)})
    words = "the cap of 0.03 on cost was exceeded with 0.05"
    assert ending.headline(run) == f"Converged; {words}."
    stopped = run.model_copy(update={"termination_reason": "max_llm_calls", "converged": False})
    assert ending.headline(stopped) == (
        f"Finished without converging: limits.max_llm_calls was reached (max_llm_calls); {words}."
    )


@pytest.mark.parametrize(
    ("changes", "tone"),
    [
        ({}, "good"),
        ({"steps_left": {"b": "pending"}}, "good"),
        ({"degraded": (TOOL,)}, "warn"),
        ({"degraded": (SERVER,)}, "warn"),
        ({"degraded": (REVIEW,)}, "warn"),
        ({"converged": False, "termination_reason": "completed"}, "good"),
        ({"converged": False, "termination_reason": "stalled"}, "warn"),
        ({"converged": False, "termination_reason": "interrupted"}, "warn"),
        ({"converged": False, "termination_reason": "failed"}, "bad"),
        ({"converged": False, "termination_reason": "failed", "degraded": (TOOL,)}, "bad"),
    ],
)
def test_nothing_is_green_that_did_without_something(
    converged: RunResult, changes: dict[str, Any], tone: str
) -> None:
    assert ending.tone(converged.model_copy(update=changes)) == tone


@pytest.mark.parametrize(
    ("score", "is_converged", "offered"),
    [
        (0.95, True, "0.98"),
        (0.9, True, "0.95"),
        (0.2, True, "0.6"),
        (0.97, True, "0.99"),
        (0.98, True, "0.99"),
        (0.99, True, None),
        (1.0, True, None),
        (0.95, False, None),
    ],
)
def test_more_is_offered_after_convergence_alone_and_always_above_the_score(
    converged: RunResult, score: float, is_converged: bool, offered: str | None
) -> None:
    scores = ConvergenceScores(
        completeness_score=score, coherence_score=0.99, consistency_score=0.99
    )
    changes: dict[str, Any] = {"scores": scores, "converged": is_converged}
    if not is_converged:
        changes["termination_reason"] = "stalled"
    found = ending.ask_for_more(converged.model_copy(update=changes), DIRECTORY)
    assert [command.partition("completeness=")[2] for _, command in found] == (
        [offered] if offered else []
    )


@pytest.mark.parametrize("threshold", [0.2, 0.8, 0.95])
def test_what_is_offered_does_not_depend_on_the_threshold_that_was_reached(
    converged: RunResult, threshold: float
) -> None:
    scores = ConvergenceScores(
        completeness_score=0.95, coherence_score=0.99, consistency_score=0.99
    )
    run = converged.model_copy(
        update={
            "scores": scores,
            "configuration": configured(converged, "convergence", completeness=threshold),
        }
    )
    ((_, command),) = ending.ask_for_more(run, DIRECTORY)
    assert command.endswith("convergence.completeness=0.98")


def test_more_is_not_offered_where_nothing_is_kept_or_nothing_was_judged(
    converged: RunResult,
) -> None:
    for mode in ("off", "replay"):
        run = converged.model_copy(
            update={"configuration": configured(converged, "store", mode=mode)}
        )
        assert ending.ask_for_more(run, DIRECTORY) == []
    assert ending.ask_for_more(converged.model_copy(update={"scores": None}), DIRECTORY) == []


@pytest.mark.parametrize(
    ("completeness", "consistency", "steps", "reason", "lower"),
    [
        (0.9, 0.95, (DONE,), "stalled", "convergence.completeness=0.9"),
        (
            0.9,
            0.91,
            (DONE,),
            "stalled",
            "convergence.completeness=0.9 convergence.consistency=0.91",
        ),
        (0.89, 0.95, (DONE,), "stalled", None),
        (0.9, 0.5, (DONE,), "stalled", None),
        (0.9, 0.95, (DONE, NOT_RUN), "stalled", None),
        (0.9, 0.95, (DONE, BLOCKED), "stalled", None),
        (0.9, 0.95, (DONE,), "interrupted", None),
        (0.95, 0.95, (DONE,), "stalled", None),
    ],
)
def test_what_there_is_is_offered_where_little_is_missing_and_nothing_else_is_open(
    converged: RunResult,
    completeness: float,
    consistency: float,
    steps: tuple[PlanStep, ...],
    reason: str,
    lower: str | None,
) -> None:
    scores = ConvergenceScores(
        completeness_score=completeness, coherence_score=0.95, consistency_score=consistency
    )
    bars = dict.fromkeys(("completeness", "coherence", "consistency"), 0.95)
    run = with_steps(
        converged,
        *steps,
        scores=scores,
        converged=False,
        termination_reason=reason,
        configuration=configured(converged, "convergence", **bars),
    )
    low = [
        code
        for name, (_, code) in SCORE_CODES.items()
        if getattr(scores, f"{name}_score") < bars[name]
    ]
    assessed = ConvergenceAssessment(converged=False, reason_codes=low or ["stale"], scores=scores)
    *earlier, last = run.history.passes
    judged = last.model_copy(update={"evaluation_results": EvaluationResults(convergence=assessed)})
    shown = {"passes": (*earlier, judged), "configuration": {"convergence_criteria": bars}}
    history = run.history.model_copy(update=shown)
    run = run.model_copy(update={"history": history})
    found = find_next_commands(run, DIRECTORY)
    given = dict(found).get("To accept the answer as it is", "")
    assert given.partition("resume=/runs/one ")[2] == (lower or "")
    if lower:
        assert found[-1][0] == "To accept the answer as it is"


def test_what_registers_a_missing_tool_can_be_typed(converged: RunResult) -> None:
    both = TOOL.model_copy(update={"overrides": ("tools=[builtin,mcp]", "tools=[builtin,mcp]")})
    run = with_steps(converged, DONE, degraded=(both, both))
    assert find_next_commands(run, DIRECTORY) == [
        (
            "To register the missing tools",
            "python -m aeon resume=/runs/one tools='[builtin,mcp]'",
        )
    ]
    assert ("missing tool", "Tool 'x' not found in registry. Register it: tools=builtin") in (
        ending.open_points(with_steps(converged, DONE, degraded=(TOOL,)))
    )


@pytest.mark.parametrize(
    ("reason", "converged_too", "is_offered"),
    [("converged", True, True), ("completed", False, True), ("interrupted", False, False)],
)
def test_lost_reviews_are_asked_for_again_after_a_run_that_ended_well(
    converged: RunResult, reason: str, converged_too: bool, is_offered: bool
) -> None:
    run = with_steps(
        converged, DONE, degraded=(REVIEW,), termination_reason=reason, converged=converged_too
    )
    found = dict(find_next_commands(run, DIRECTORY)).get("To ask again for what was lost")
    again = "python -m aeon resume=/runs/one store.retry_unusable=all"
    assert found == (again if is_offered else None)


@pytest.mark.parametrize("reason", ["stalled", "plateau", "converged"])
@pytest.mark.parametrize("unusable", [(), ("semantic_validation",)])
def test_a_run_whose_answers_could_not_all_be_used_can_go_on(
    converged: RunResult, reason: str, unusable: tuple[str, ...]
) -> None:
    ended = {"termination_reason": reason, "converged": reason == "converged"}
    run = with_steps(converged, DONE, FAILED, unusable_calls=unusable, **ended)
    ways = [way for way, _ in find_next_commands(run, DIRECTORY)]
    goes_on = bool(unusable) and reason != "converged"
    assert ("To resume from the stored answers" in ways) == goes_on


def usage(**total: Any) -> UsageReport:
    return UsageReport(total=TokenUsage(**total))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"usage": usage(requests=1, total_tokens=7, cost=0.5)},
            "1 call, 7 tokens, cost 0.5000.",
        ),
        ({"usage": usage(requests=2, total_tokens=7)}, "2 calls, 7 tokens."),
        (
            {"usage": usage(requests=2, total_tokens=7, cached_tokens=3, cache_write_tokens=2)},
            "7 tokens (3 read from the provider's cache, 2 written to it).",
        ),
        (
            {
                "usage": usage(requests=2, total_tokens=7).model_copy(
                    update={"unpriced": ("m",), "unreported": ("n",)}
                )
            },
            "2 calls, 7 tokens, cost unknown (no price for m; no usage reported for n).",
        ),
        (
            {
                "usage": usage(requests=2, total_tokens=7, cost=0.0),
                "parent": ParentRun(
                    path="p", saved=Saved(model_calls=1, total_tokens=9, cost=0.1, tool_calls=2)
                ),
            },
            "cost 0.0000. Saved: 1 call, 9 tokens, cost 0.1000, 2 tool calls.",
        ),
    ],
)
def test_what_was_spent_says_what_is_known_and_why_the_rest_is_not(
    converged: RunResult, changes: dict[str, Any], said: str
) -> None:
    assert ending.describe_spent(converged.model_copy(update=changes)).endswith(said)


@pytest.mark.parametrize(
    ("differing", "said"),
    [
        (0, "from a recording."),
        (3, "from a recording. Requests that are not those that had been recorded: 3."),
    ],
)
def test_a_replay_says_what_differs_only_where_something_does(
    converged: RunResult, differing: int, said: str
) -> None:
    run = converged.model_copy(
        update={
            "configuration": configured(converged, "store", mode="replay"),
            "parent": ParentRun(path="p", differing=differing),
        }
    )
    assert ending.describe_spent(run).endswith(said)


def test_the_page_is_named_where_there_is_one(converged: RunResult, tmp_path: Path) -> None:
    assert "Page:" not in describe_ending(converged, tmp_path)
    (tmp_path / "report.html").touch()
    assert f"\nPage: {tmp_path}/report.html\n" in f"{describe_ending(converged, tmp_path)}\n"


def test_checks_are_counted_in_the_headline_and_those_that_failed_are_open(
    converged: RunResult,
) -> None:
    checks = (
        CheckOutcome(name="short", type="word-count", passed=True),
        CheckOutcome(name="tests", type="command", passed=False, feedback="1 failed\nwhy"),
        CheckOutcome(name="mine", type="python", passed=False, feedback="crashed", measured=False),
        CheckOutcome(name="kind", type="llm-rubric", passed=False, required=False),
    )
    run = converged.model_copy(
        update={"checks": checks, "termination_reason": "check_failed", "converged": False}
    )
    assert ending.headline(run).startswith(
        "Finished, but a required check failed; checks passed 1 of 4"
    )
    points = dict(ending.open_points(run))
    assert points["check tests"] == "failed: 1 failed why"
    assert points["check mine"] == "could not be had: crashed"
    assert "check kind" not in points


def test_the_headline_says_how_the_answer_was_chosen_of_several(tmp_path: Path) -> None:
    settings = compose(
        ["provider=simulated", "mode=single", "execution.samples=3", "execution.select=vote"]
    )
    with Aeon(settings, {}) as aeon:
        result = aeon.run("name a river", directory=tmp_path / "run")
    assert "chosen of 3 answers: 3 of 3 votes" in ending.headline(result)
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Its output: chosen of 3 answers: 3 of 3 votes" in page
    lost = SampleRecord(asked=3, usable=2, chosen=0, select="first", reason="the first")
    assert ending.describe_samples(lost) == "chosen of 3 answers, 1 of them unusable: the first"
