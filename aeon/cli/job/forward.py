"""The way forward from the end of a run: what is open, and the commands that would help, by the reason it ended."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from aeon.app.directory import shown
from aeon.cli.job.plan_text import command_of
from aeon.cli.progress.view import SCORES, StepView
from aeon.cli.progress.words import open_questions
from aeon.cli.terminal.text import one_line, rounded_down
from aeon.domain.plan import PlanStep
from aeon.domain.result import RunResult

_MOST, _LONGEST = 8, 300
_ON = "To go on from what was answered"
_HINDRANCES = ("failed", "blocked", "invalid")


def open_points(result: RunResult) -> list[tuple[str, str]]:
    """What a run leaves open, as names and texts: scores below their bar, criteria that are not met, issues, steps that
    lack something, and the questions that only a person can answer; at most 8 of each kind."""
    kinds = [_low_scores, _unmet, _blocking, _hindered, _unreached, _left] if result.exit_status else []
    found = [points for kind in (*kinds, _unanswered) for points in kind(result)[:_MOST]]
    return [(name, one_line(text, _LONGEST)) for name, text in found]


def next_commands(result: RunResult, directory: Path) -> list[tuple[str, str]]:
    """What to type next, each with its purpose; nothing for a run that was replayed, since no model answers there."""
    if _stored(result) == "replay":
        return []
    ways = [(purpose, " ".join(overrides)) for purpose, overrides in _ways(result)]
    if _is_resumable(result):
        return [(purpose, f"{resume_command(directory)} {overrides}".rstrip()) for purpose, overrides in ways]
    return [(purpose, f"run it again with {overrides}") for purpose, overrides in ways if overrides]


def onward(result: RunResult, directory: Path) -> list[tuple[str, str]]:
    """What can be done next where nothing needs to be."""
    if _stored(result) == "replay":
        return [("A recording has no more answers; for a run of your own", 'python -m aeon task="..."')]
    if result.configuration["mode"]["kind"] == "core" or not _is_resumable(result):
        return []
    higher = (1 + result.configuration["convergence"]["completeness"]) / 2
    command = f"{resume_command(directory)} convergence.completeness={math.ceil(higher * 100) / 100:g}"
    return [("To ask for more, from these answers on", command)]


def steps_of(result: RunResult) -> tuple[PlanStep, ...]:
    """The steps as the run left them."""
    return result.history.passes[-1].steps if result.history.passes else ()


def resume_command(directory: Path) -> str:
    """The command that goes on with the run of a directory."""
    return command_of((f"resume={shown(directory)}",))


def _ways(result: RunResult) -> list[tuple[str, Sequence[str]]]:
    """Purposes with the overrides that serve them, the most helpful first."""
    more = [] if result.exit_status == 0 else _more(result)
    goes_on = more or result.termination_reason in ("failed", "interrupted", "step_failed")
    ways: list[tuple[str, Sequence[str]]] = [(_purpose(result), more)] if goes_on else []
    if (lower := _lower_bar(result)) and result.termination_reason != "interrupted":
        ways.append(("To accept what there is", lower))
    if _unanswered(result) and result.configuration["interaction"]["kind"] == "none":
        ways.append(("To answer the questions", (*more, "interaction=ask")))
    if result.exit_status and any(StepView(step).state == "blocked" for step in steps_of(result)):
        ways.append(("To give what a blocked step misses (all is asked again)", (*more, 'inputs.NAME="..."')))
    return ways


def _purpose(result: RunResult) -> str:
    """In core mode the prompts say how much is left of the budget, so with another one all is asked again."""
    again = result.termination_reason == "ttl_expired" and result.configuration["mode"]["kind"] == "core"
    return "To let it go further" if again or not _is_resumable(result) else _ON


def _low_scores(result: RunResult) -> list[tuple[str, str]]:
    bars = result.configuration["convergence"]
    return [(name, f"{rounded_down(score):.2f}, needs {bars[name]:.2f}") for name, score in _below(result)]


def _below(result: RunResult) -> list[tuple[str, float]]:
    """The scores of the last assessment that do not reach their threshold."""
    if result.scores is None:
        return []
    bars, given = result.configuration["convergence"], [(name, result.scores[f"{name}_score"]) for name in SCORES]
    return [(name, score) for name, score in given if score is not None and score < bars[name]]


def _unmet(result: RunResult) -> list[tuple[str, str]]:
    assessed = result.history.final_convergence
    return [(f"not met, {one.name}", one.reason) for one in (assessed.criteria if assessed else ()) if not one.met]


def _blocking(result: RunResult) -> list[tuple[str, str]]:
    assessed = result.history.final_convergence
    return [("issue", text) for text in (assessed.blocking_issues if assessed else ())]


def _hindered(result: RunResult) -> list[tuple[str, str]]:
    """The steps that lack something, and what."""
    states = [(StepView(step).state, step) for step in steps_of(result)]
    return [(state, f"{step.step_id}: {_missing(step)}") for state, step in states if state in _HINDRANCES]


def _unreached(result: RunResult) -> list[tuple[str, str]]:
    names = [step.step_id for step in steps_of(result) if StepView(step).state == "pending"]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return [("not reached", f"{', '.join(names[:_MOST])}{more}")] if names else []


def _missing(step: PlanStep) -> str:
    error = step.errors[-1] if step.errors else ""
    return (error if step.status == "failed" else step.clarity_reason or error) or step.description


def _left(result: RunResult) -> list[tuple[str, str]]:
    return [("for you", one.message) for one in result.advisories if one.kind == "manual_intervention"]


def _unanswered(result: RunResult) -> list[tuple[str, str]]:
    return [("question", text) for text in open_questions(result.follow_up_questions)]


def _more(result: RunResult) -> list[str]:
    """Twice of what was used up."""
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


def _lower_bar(result: RunResult) -> list[str]:
    """The thresholds that the last scores would reach, where nothing else stands in the way."""
    if _unmet(result) or _blocking(result) or _hindered(result) or _unreached(result):
        return []
    return [f"convergence.{name}={rounded_down(score):g}" for name, score in _below(result)]


def _is_resumable(result: RunResult) -> bool:
    """Whether answers were kept and there are any: a model's, or else a tool's, for a step without a model is complete
    only by one."""
    answered = bool(result.usage.total.requests) or any(step.status == "complete" for step in steps_of(result))
    return answered and _stored(result) in ("record", "cache")


def _stored(result: RunResult) -> str:
    return str(result.configuration["store"]["mode"])
