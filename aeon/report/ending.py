"""How a run ended: the verdict, its figures, what is open, and what to type next by the reason it ended."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from aeon.domain.assessment import SCORE_CODES
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.domain.result import RunResult, Saved, UsageReport
from aeon.report.words import (
    command_of,
    count_noun,
    list_names,
    one_line,
    relative_to_here,
    round_down,
)

Points = list[tuple[str, str]]
_MOST, _LONGEST = 8, 300
_VERDICTS = {
    "converged": "Converged.",
    "completed": "Completed.",
    "failed": "Failed.",
    "interrupted": "Interrupted.",
    "step_failed": "Finished, but not every step is complete.",
}
_REASONS = {"ttl_expired": "the TTL is spent", "stalled": "no step was ready and nothing changed"}


def ending(result: RunResult, directory: Path, *, ways: bool = True) -> str:
    """What went wrong, how the run ended and where its artefacts are, what is open, and, with `ways`, each
    command that would help."""
    error = [f"Error: {result.error.message}", result.error.hint] if result.error else []
    line = f"{verdict(result)} {describe_spent(result)} Artefacts: {directory}"
    points = [f"  {name}: {text}" for name, text in open_points(result)]
    commands = [
        f"{purpose}: {command}" for purpose, command in next_commands(result, directory) if ways
    ]
    return "\n".join((*filter(None, error), line, *points, *commands))


def verdict(result: RunResult) -> str:
    """How the run ended, as a sentence."""
    reason, verb = result.termination_reason, "completing" if _is_core(result) else "converging"
    unfinished = f"Finished without {verb}: {_REASONS.get(reason, f'limits.{reason} was reached')} ({reason})."
    return _VERDICTS.get(reason, unfinished)


def describe_spent(result: RunResult) -> str:
    """Passes, TTL, calls, tokens and cost, and what the answers of an earlier run saved."""
    total, parent = result.usage.total, result.parent
    head = f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}"
    if is_replay(result):
        differing = parent.differing if parent else 0
        changed = (
            f" Requests that are not those that had been recorded: {differing}."
            if differing
            else ""
        )
        return f"{head}, {count_noun(total.requests, 'answer')} from a recording.{changed}"
    kept = parent.saved if parent else Saved()
    saved = (
        [count_noun(kept.model_calls, "call"), f"{kept.total_tokens} tokens"]
        if kept.model_calls
        else []
    )
    saved += [f"cost {kept.cost:.4f}"] if kept.cost else []
    saved += [count_noun(kept.tool_calls, "tool call")] if kept.tool_calls else []
    cost = f", cost unknown ({unknown})" if (unknown := why_cost_is_unknown([result.usage])) else ""
    cost = cost if total.cost is None else f", cost {total.cost:.4f}"
    endpoints = result.provider.endpoints
    if set(endpoints) - {result.configuration["provider"].get("name", result.provider.kind)}:
        cost += (
            f". Answered by: {', '.join(f'{name} {number}' for name, number in endpoints.items())}"
        )
    spent = f"{head}, {count_noun(total.requests, 'call')}, {total.total_tokens} tokens{cost}."
    return f"{spent} Saved: {', '.join(saved)}." if saved else spent


def why_cost_is_unknown(usages: Iterable[UsageReport]) -> str:
    """The models that have no price, and those whose server did not say what an answer used; empty without any."""
    unpriced, unreported = set[str](), set[str]()
    for usage in usages:
        unpriced.update(usage.unpriced)
        unreported.update(usage.unreported)
    named = (("no price for", unpriced), ("no usage reported for", unreported))
    return "; ".join(f"{what} {', '.join(sorted(models))}" for what, models in named if models)


def state_of(step: PlanStep) -> str:
    """pending, running, complete, failed, invalid, blocked or replaced."""
    if step.replaced_by is not None:
        return "replaced"
    return "blocked" if step.blocked else step.status


def open_questions(questions: Iterable[FollowUpQuestion]) -> list[str]:
    """The questions without an answer, each once, with the assumption made meanwhile."""
    texts = (
        f"{one.question.rstrip()} (assumed: {one.assumption.strip().rstrip('.')})"
        for one in questions
        if one.answer is None
    )
    return [one_line(text, 400) for text in dict.fromkeys(texts)]


def open_points(result: RunResult) -> Points:
    """What a run leaves open, as names and texts: scores below their threshold, unmet criteria, issues, steps that lack
    something, and the questions that only a person can answer; at most 8 of each kind."""
    questions = [("question", text) for text in open_questions(result.follow_up_questions)]
    steps = [(state_of(step), step) for step in _steps(result)]
    unreached = [step.step_id for state, step in steps if state == "pending"]
    assessed = result.history.final_convergence
    kinds: list[Points] = [
        [
            (name, f"{round_down(score):.2f}, needs {bar:.2f}")
            for name, score, bar in scores(result)
            if score < bar
        ],
        [
            (f"not met, {one.name}", one.reason)
            for one in (assessed.criteria if assessed else ())
            if not one.met
        ],
        [("issue", text) for text in (assessed.blocking_issues if assessed else ())],
        [
            (state, _lack(step))
            for state, step in steps
            if state in ("failed", "blocked", "invalid")
        ],
        [("not reached", list_names(unreached))] if unreached else [],
        [
            ("for you", one.message)
            for one in result.advisories
            if one.kind == "manual_intervention"
        ],
    ]
    shown = [*kinds, questions] if result.exit_status else [questions]
    return [(name, one_line(text, _LONGEST)) for kind in shown for name, text in kind[:_MOST]]


def _lack(step: PlanStep) -> str:
    error = step.errors[-1] if step.errors else ""
    reason = error if step.status == "failed" else step.clarity_reason or error
    return f"{step.step_id}: {reason or step.description}"


def next_commands(result: RunResult, directory: Path) -> Points:
    """What to type next, each with its purpose; nothing for a replay, where no model answers."""
    if is_replay(result):
        return []
    reason, more, resumable = (
        result.termination_reason,
        _raised_limits(result),
        is_resumable(result),
    )
    names = {name for name, _ in open_points(result)}
    ways: list[tuple[str, list[str]]] = []
    stays = reason == "step_failed" and "blocked" in names <= {
        "blocked",
        "question",
    }  # its answer is stored
    if more or (reason in ("failed", "interrupted", "step_failed") and not stays):
        # In core mode the prompts name the budget that is left, so with another one all is asked again.
        is_reused = resumable and not (more and _is_core(result))
        ways.append(
            ("To go on from what was answered" if is_reused else "To let it go further", more)
        )
    if (
        reason != "interrupted"
        and names & {*SCORE_CODES}
        and names <= {*SCORE_CODES, "question", "for you"}
    ):
        lower = [
            f"convergence.{name}={round_down(score):g}"
            for name, score, bar in scores(result)
            if score < bar
        ]
        ways.append(("To accept what there is", lower))
    if "question" in names and result.configuration["interaction"]["kind"] == "none":
        ways.append(("To answer the questions", [*more, "interaction=ask"]))
    if "blocked" in names:
        ways.append(
            (
                "To give what a blocked step misses (all is asked again)",
                [*more, 'inputs.NAME="..."'],
            )
        )
    if not resumable:
        return [
            (purpose, f"run it again with {' '.join(overrides)}")
            for purpose, overrides in ways
            if overrides
        ]
    return [
        (purpose, " ".join((resume_command(directory), *overrides))) for purpose, overrides in ways
    ]


def ask_for_more(result: RunResult, directory: Path) -> Points:
    """After a run that leaves nothing to do, the command for a higher threshold."""
    if not result.scores or not is_resumable(result):
        return []
    higher = math.ceil(50 * (1 + result.configuration["convergence"]["completeness"])) / 100
    more = f"{resume_command(directory)} convergence.completeness={higher:g}"
    return [("To ask for more, from these answers on", more)]


def _raised_limits(result: RunResult) -> list[str]:
    reason, configuration, budget = (
        result.termination_reason,
        result.configuration,
        2 * result.ttl.allocated,
    )
    limits, ttl = configuration["limits"], configuration["ttl"]
    if reason == "ttl_expired":
        bounds = {"ttl.limit": ttl["limit"], "limits.max_llm_calls": limits["max_llm_calls"]}
        raised = [f"{key}={budget}" for key, bound in bounds.items() if bound and bound < budget]
        return [f"ttl.base={2 * ttl['base']}", *raised]
    if reason.startswith("max_") and limits[reason]:
        return [f"limits.{reason}={2 * limits[reason]}"]
    if result.exit_status and any(one.kind == "refinement_limit" for one in result.advisories):
        return [
            f"refinement.max_attempts_total={2 * configuration['refinement']['max_attempts_total']}"
        ]
    return []


def resume_command(directory: Path) -> str:
    """The command that goes on with the run of a directory."""
    return command_of((f"resume={relative_to_here(directory)}",))


def scores(result: RunResult) -> list[tuple[str, float, float]]:
    """The scores of the last assessment, each with its name and its threshold."""
    given = result.scores.model_dump() if result.scores else {}
    found = [
        (name, given.get(f"{name}_score"), result.configuration["convergence"][name])
        for name in SCORE_CODES
    ]
    return [(name, score, bar) for name, score, bar in found if score is not None]


def _steps(result: RunResult) -> tuple[PlanStep, ...]:
    return result.history.passes[-1].steps if result.history.passes else ()


def _is_core(result: RunResult) -> bool:
    return bool(result.configuration["mode"]["kind"] == "core")


def is_replay(result: RunResult) -> bool:
    """Whether a recording answered, so that no model and no tool was called."""
    return bool(result.configuration["store"]["mode"] == "replay")


def is_resumable(result: RunResult) -> bool:
    """Whether answers are stored and there are any: a model's, or those of tools that completed a step."""
    answered = bool(result.usage.total.requests) or any(
        step.status == "complete" for step in _steps(result)
    )
    return answered and result.configuration["store"]["mode"] in ("record", "cache")
