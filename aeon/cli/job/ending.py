"""How a run ended, in plain lines: the verdict, its figures, what is open, and what to type next."""

from __future__ import annotations

from pathlib import Path

from aeon.cli.job.forward import is_replay, next_commands, open_points, steps_of
from aeon.cli.progress.view import state_of
from aeon.cli.terminal.text import count_noun, list_names
from aeon.domain.result import RunResult

_MOST_NAMES = 10
_REASONS = {"ttl_expired": "the TTL is spent", "stalled": "no step was ready and nothing changed"}
_PLAIN = {"completed": "Completed.", "failed": "Failed.", "interrupted": "Interrupted."}


def ending(result: RunResult, directory: Path) -> str:
    """What went wrong, how the run ended and where its artefacts are, what is open, and each command that would
    help."""
    error = [f"Error: {result.error.message}", result.error.hint] if result.error else []
    figures = f"{describe_spent(result)}{describe_saved(result)}"
    points = [f"  {name}: {text}" for name, text in open_points(result)]
    commands = [f"{purpose}: {command}" for purpose, command in next_commands(result, directory)]
    line = f"{verdict(result)} {figures} Artefacts: {directory}"
    return "\n".join((*filter(None, error), line, *points, *commands))


def verdict(result: RunResult) -> str:
    """How the run ended, as a sentence."""
    reason = result.termination_reason
    if result.converged:
        return "Converged."
    if reason in _PLAIN:
        return _PLAIN[reason]
    if reason == "step_failed":
        return f"Finished, but {_incomplete_steps(result)}."
    verb = "completing" if result.configuration["mode"]["kind"] == "core" else "converging"
    return f"Finished without {verb}: {_REASONS.get(reason, f'limits.{reason} was reached')} ({reason})."


def _incomplete_steps(result: RunResult) -> str:
    """The steps that are not complete, by their states: `step a failed, 2 steps are blocked (b, c)`."""
    states: dict[str, list[str]] = {}
    for step in steps_of(result):
        states.setdefault(state_of(step), []).append(step.step_id)
    groups = sorted((state, names) for state, names in states.items() if state not in ("complete", "replaced"))
    return ", ".join(_in_state(state, names) for state, names in groups) or "not every step is complete"


def _in_state(state: str, names: list[str]) -> str:
    one = len(names) == 1
    verb = state if state == "failed" else f"{'is' if one else 'are'} {state}"
    steps = list_names(names, _MOST_NAMES)
    return f"step {steps} {verb}" if one else f"{len(names)} steps {verb} ({steps})"


def describe_saved(result: RunResult) -> str:
    """What the answers of an earlier run saved; empty for a replay, where nothing is called."""
    if result.parent is None or is_replay(result):
        return ""
    saved = result.parent.saved
    parts = [f"{saved.total_tokens} tokens"] if saved.model_calls else []
    parts += [f"cost {saved.cost:.4f}"] if saved.cost else []
    parts += [count_noun(saved.tool_calls, "tool call")] if saved.tool_calls else []
    return f" Saved: {', '.join(parts)}." if parts else ""


def describe_spent(result: RunResult) -> str:
    """Passes, TTL, calls, tokens and cost."""
    usage = result.usage.total
    head = f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}"
    if is_replay(result):
        return f"{head}, {count_noun(usage.requests, 'answer')} from a recording.{_differing(result)}"
    stored = result.parent.saved.model_calls if result.parent else 0
    source = f", {'all' if stored >= usage.requests else f'{stored} of them'} from the store" if stored else ""
    calls = f"{count_noun(usage.requests, 'call')}{source}"
    return f"{head}, {calls}, {usage.total_tokens} tokens{_cost(result)}.{_endpoints(result)}"


def _cost(result: RunResult) -> str:
    """The cost; that it is not known, and why, where a model was paid and is not priced."""
    usage = result.usage
    if usage.total.cost is not None:
        return f", cost {usage.total.cost:.4f}"
    reasons = [f"no price for {', '.join(usage.unpriced)}"] if usage.unpriced else []
    reasons += [f"no usage reported for {', '.join(usage.unreported)}"] if usage.unreported else []
    return f", cost unknown ({'; '.join(reasons)})" if reasons else ""


def _endpoints(result: RunResult) -> str:
    """How often each endpoint answered, where not all answers came from the provider's own."""
    answered = result.provider.endpoints
    own = result.configuration["provider"].get("name", result.provider.kind)
    numbers = ", ".join(f"{name} {number}" for name, number in answered.items())
    return f" Answered by: {numbers}." if set(answered) - {own} else ""


def _differing(result: RunResult) -> str:
    """How many requests differ from those recorded, where answers were matched by call and order."""
    number = result.parent.differing if result.parent else 0
    if not number:
        return ""
    which = "1 request is not the one" if number == 1 else f"{number} requests are not those"
    return f" {which} that had been recorded: prompts, schemas or settings have changed since."
