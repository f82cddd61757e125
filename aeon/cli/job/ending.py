"""How a run ended, in plain lines: the verdict, its figures, what is open, and what to type next."""

from __future__ import annotations

from pathlib import Path

from aeon.cli.job.forward import next_commands, open_points, steps_of
from aeon.cli.progress.view import StepView
from aeon.cli.terminal.text import counted, one_line
from aeon.domain.result import RunResult

_MOST_NAMED = 10
_REASONS = {"ttl_expired": "the TTL is spent", "stalled": "no step was ready and nothing changed"}


def ending(result: RunResult, directory: Path) -> str:
    """How a run ended, in one line, and where its artefacts are; what went wrong before it, and after it what is open
    and each command that would help."""
    failure = f"Error: {result.error.message}\n" if result.error else ""
    hint = f"{result.error.hint}\n" if result.error and result.error.hint else ""
    line = f"{verdict(result)} {figures(result)}{saved(result)} Artefacts: {directory}"
    points = "".join(f"\n  {name}: {text}" for name, text in open_points(result))
    commands = "".join(f"\n{purpose}: {command}" for purpose, command in next_commands(result, directory))
    return f"{failure}{hint}{line}{points}{commands}"


def verdict(result: RunResult) -> str:
    """How it ended, as a sentence."""
    if result.converged:
        return "Converged."
    if result.termination_reason == "completed":
        return "Completed."
    if result.termination_reason == "step_failed":
        return f"Finished, but {_incomplete(result)}."
    if result.termination_reason in ("failed", "interrupted"):
        return f"{result.termination_reason.capitalize()}."
    core = result.configuration.get("mode", {}).get("kind") == "core"
    why = _REASONS.get(result.termination_reason, f"limits.{result.termination_reason} was reached")
    return f"Finished without {'completing' if core else 'converging'}: {why} ({result.termination_reason})."


def _incomplete(result: RunResult) -> str:
    """The steps that are not complete, by their states: `step a failed, 2 steps are blocked (b, c)`."""
    states: dict[str, list[str]] = {}
    for step in steps_of(result):
        state = StepView(step).state
        if state not in ("complete", "replaced"):
            states.setdefault(state, []).append(one_line(step.step_id))
    return ", ".join(_in_state(state, states[state]) for state in sorted(states)) or "not every step is complete"


def _in_state(state: str, names: list[str]) -> str:
    one = len(names) == 1
    verb = state if state == "failed" else f"{'is' if one else 'are'} {state}"
    if one:
        return f"step {names[0]} {verb}"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{len(names)} steps {verb} ({', '.join(names[:_MOST_NAMED])}{more})"


def saved(result: RunResult) -> str:
    """What an earlier run's answers saved; of a replay, where nothing is called, nothing is said."""
    if result.parent is None or is_replay(result):
        return ""
    saved = result.parent.saved
    said = [f"{saved.total_tokens} tokens"] if saved.model_calls else []
    said += [f"cost {saved.cost:.4f}"] if saved.cost else []
    said += [counted(saved.tool_calls, "tool call")] if saved.tool_calls else []
    return f" Saved: {', '.join(said)}." if said else ""


def _calls(result: RunResult) -> str:
    """How many calls were answered, and how many of them by an earlier run's answers."""
    number, stored = result.usage.total.requests, result.parent.saved.model_calls if result.parent else 0
    if not stored:
        return counted(number, "call")
    which = "all" if stored >= number else f"{stored} of them"
    return f"{counted(number, 'call')}, {which} from the store"


def figures(result: RunResult) -> str:
    """What it came to: passes, TTL, calls, tokens and cost."""
    usage = result.usage.total
    head = f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}"
    if is_replay(result):
        return f"{head}, {counted(usage.requests, 'answer')} from a recording.{_differing(result)}"
    return f"{head}, {_calls(result)}, {usage.total_tokens} tokens{_cost(result)}.{_endpoints(result)}"


def _cost(result: RunResult) -> str:
    """What it cost; that it is not known, and why, where a model was paid and is not priced."""
    usage = result.usage
    if usage.total.cost is not None:
        return f", cost {usage.total.cost:.4f}"
    why = [f"no price for {', '.join(usage.unpriced)}"] if usage.unpriced else []
    why += [f"no usage told for {', '.join(usage.unreported)}"] if usage.unreported else []
    return f", cost unknown ({'; '.join(why)})" if why else ""


def _endpoints(result: RunResult) -> str:
    """Who answered how often, where not all answers came from the provider's own endpoint."""
    answered = result.provider.endpoints
    own = result.configuration.get("provider", {}).get("name", result.provider.kind)
    listed = ", ".join(f"{name} {number}" for name, number in answered.items())
    return f" Answered by: {listed}." if set(answered) - {own} else ""


def is_replay(result: RunResult) -> bool:
    """Whether no model and no tool was called, all being answered by a recording."""
    return bool(result.configuration.get("store", {}).get("mode") == "replay")


def _differing(result: RunResult) -> str:
    """That what was asked is not what had been recorded, where answers were matched by call and order."""
    number = result.parent.differing if result.parent else 0
    if not number:
        return ""
    which = "1 request is not the one" if number == 1 else f"{number} requests are not those"
    return f" {which} that had been recorded: prompts, schemas or settings have changed since."
