"""What a run leaves open, and the commands that would help, by the reason it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from aeon.app.directory import relative_to_here
from aeon.cli.job.plan_text import command_of
from aeon.cli.progress.view import SCORES, state_of
from aeon.cli.progress.words import open_questions
from aeon.cli.terminal.text import list_names, one_line, round_down
from aeon.domain.plan import PlanStep
from aeon.domain.result import RunResult

Points = list[tuple[str, str]]
_MOST, _LONGEST = 8, 300
_ON = "To go on from what was answered"
_HINDRANCES = ("failed", "blocked", "invalid")


def open_points(result: RunResult) -> Points:
    """What a run leaves open, as names and texts: scores below their threshold, unmet criteria, issues, steps that lack
    something, and the questions that only a person can answer; at most 8 of each kind."""
    kinds = [_low_scores, _unmet, _blocking, _hindered, _unreached, _manual] if result.exit_status else []
    found = [point for kind in (*kinds, _unanswered) for point in kind(result)[:_MOST]]
    return [(name, one_line(text, _LONGEST)) for name, text in found]


def next_commands(result: RunResult, directory: Path) -> Points:
    """What to type next, each with its purpose; nothing for a replay, where no model answers."""
    if is_replay(result):
        return []
    ways = [(purpose, " ".join(overrides)) for purpose, overrides in _ways(result)]
    if _is_resumable(result):
        return [(purpose, f"{resume_command(directory)} {overrides}".rstrip()) for purpose, overrides in ways]
    return [(purpose, f"run it again with {overrides}") for purpose, overrides in ways if overrides]


def onward(result: RunResult, directory: Path) -> Points:
    """What can be done next where nothing needs to be."""
    if is_replay(result):
        return [("A recording has no more answers; for a run of your own", 'python -m aeon task="..."')]
    if _is_core(result) or not _is_resumable(result):
        return []
    higher = (1 + result.configuration["convergence"]["completeness"]) / 2
    command = f"{resume_command(directory)} convergence.completeness={math.ceil(higher * 100) / 100:g}"
    return [("To ask for more, from these answers on", command)]


def resume_command(directory: Path) -> str:
    """The command that goes on with the run of a directory."""
    return command_of((f"resume={relative_to_here(directory)}",))


def steps_of(result: RunResult) -> tuple[PlanStep, ...]:
    """The steps as the run left them."""
    return result.history.passes[-1].steps if result.history.passes else ()


def scores_with_bars(result: RunResult) -> list[tuple[str, float, float]]:
    """The scores of the last assessment, each with its name and its threshold."""
    bars, scores = result.configuration["convergence"], result.scores
    given = [(name, scores[f"{name}_score"] if scores else None, bars[name]) for name in SCORES]
    return [(name, score, bar) for name, score, bar in given if score is not None]


def is_replay(result: RunResult) -> bool:
    """Whether a recording answered, so that no model and no tool was called."""
    return bool(result.configuration["store"]["mode"] == "replay")


def _ways(result: RunResult) -> list[tuple[str, Sequence[str]]]:
    """Purposes with the overrides that serve them, the most helpful first."""
    more = _more(result) if result.exit_status else []
    ways: list[tuple[str, Sequence[str]]] = []
    if more or result.termination_reason in ("failed", "interrupted", "step_failed"):
        # In core mode the prompts name the budget that is left, so with another one all is asked again.
        again = result.termination_reason == "ttl_expired" and _is_core(result)
        ways.append(("To let it go further" if again or not _is_resumable(result) else _ON, more))
    if (lower := _lower_bars(result)) and result.termination_reason != "interrupted":
        ways.append(("To accept what there is", lower))
    if _unanswered(result) and result.configuration["interaction"]["kind"] == "none":
        ways.append(("To answer the questions", (*more, "interaction=ask")))
    if result.exit_status and any(state_of(step) == "blocked" for step in steps_of(result)):
        ways.append(("To give what a blocked step misses (all is asked again)", (*more, 'inputs.NAME="..."')))
    return ways


def _low(result: RunResult) -> list[tuple[str, float, float]]:
    return [(name, score, bar) for name, score, bar in scores_with_bars(result) if score < bar]


def _low_scores(result: RunResult) -> Points:
    return [(name, f"{round_down(score):.2f}, needs {bar:.2f}") for name, score, bar in _low(result)]


def _unmet(result: RunResult) -> Points:
    assessed = result.history.final_convergence
    return [(f"not met, {one.name}", one.reason) for one in (assessed.criteria if assessed else ()) if not one.met]


def _blocking(result: RunResult) -> Points:
    assessed = result.history.final_convergence
    return [("issue", text) for text in (assessed.blocking_issues if assessed else ())]


def _hindered(result: RunResult) -> Points:
    found = [(state_of(step), step) for step in steps_of(result)]
    return [(state, f"{step.step_id}: {_lack(step)}") for state, step in found if state in _HINDRANCES]


def _lack(step: PlanStep) -> str:
    error = step.errors[-1] if step.errors else ""
    return (error if step.status == "failed" else step.clarity_reason or error) or step.description


def _unreached(result: RunResult) -> Points:
    names = [step.step_id for step in steps_of(result) if state_of(step) == "pending"]
    return [("not reached", list_names(names))] if names else []


def _manual(result: RunResult) -> Points:
    return [("for you", one.message) for one in result.advisories if one.kind == "manual_intervention"]


def _unanswered(result: RunResult) -> Points:
    return [("question", text) for text in open_questions(result.follow_up_questions)]


def _more(result: RunResult) -> list[str]:
    """Twice the limit that was reached."""
    reason, limits = result.termination_reason, result.configuration["limits"]
    if reason == "ttl_expired":
        return _more_cycles(result)
    if reason.startswith("max_") and limits[reason]:
        return [f"limits.{reason}={2 * limits[reason]}"]
    if any(one.kind == "refinement_limit" for one in result.advisories):
        return [f"refinement.max_attempts_total={2 * result.configuration['refinement']['max_attempts_total']}"]
    return []


def _more_cycles(result: RunResult) -> list[str]:
    """A larger base; or a higher limit, where that is what the table was cut off at."""
    ttl, wanted = result.configuration["ttl"], 2 * result.ttl.allocated
    overrides = [] if result.ttl.allocated == ttl["limit"] else [f"ttl.base={2 * ttl['base']}"]
    overrides += [f"ttl.limit={wanted}"] if wanted > ttl["limit"] else []
    calls = result.configuration["limits"]["max_llm_calls"]
    return overrides + ([f"limits.max_llm_calls={wanted}"] if calls and calls < wanted else [])


def _lower_bars(result: RunResult) -> list[str]:
    """The thresholds that the last scores would reach, where nothing else stands in the way."""
    if any(kind(result) for kind in (_unmet, _blocking, _hindered, _unreached)):
        return []
    return [f"convergence.{name}={round_down(score):g}" for name, score, _ in _low(result)]


def _is_core(result: RunResult) -> bool:
    return bool(result.configuration["mode"]["kind"] == "core")


def _is_resumable(result: RunResult) -> bool:
    """Whether answers are stored and there are any: a model's, or those of tools that completed a step."""
    answered = bool(result.usage.total.requests) or any(step.status == "complete" for step in steps_of(result))
    return answered and result.configuration["store"]["mode"] in ("record", "cache")
