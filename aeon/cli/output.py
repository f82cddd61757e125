"""Writing to standard output and standard error, whatever is at the other end of them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TextIO
from unicodedata import category

from aeon.cli.progress_view import StepView, counted, one_line
from aeon.cli.streams import discard, put, stdout
from aeon.errors import ArtefactError
from aeon.result import RunResult

_MOST_NAMED = 10


def write_answer(result: RunResult, form: str) -> None:
    """The answer, or with `json` the whole result as one line of JSON, on standard output.

    A terminal is shown control characters, other than newlines and tabs, as escapes; pipes and files get them as
    they are. A reader that has gone away (`| head`) is no error. Raises ArtefactError when standard output is closed or
    full.
    """
    stream = stdout()
    text = _as_json(result, stream) if form == "json" else result.answer
    if stream is not None and stream.isatty():
        text = _harmless(text, r"\u{:04x}" if form == "json" else r"\x{:02x}")
    if not text:
        return
    if stream is None:
        raise ArtefactError("the answer cannot be printed: standard output is closed")
    try:
        put(text)
    except OSError as error:
        discard()
        if not isinstance(error, BrokenPipeError):
            raise ArtefactError(f"the answer cannot be printed: standard output: {error.strerror}") from error


def _as_json(result: RunResult, stream: TextIO | None) -> str:
    unicode = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    return result.model_dump_json(ensure_ascii=not unicode)


def _harmless(text: str, escape: str) -> str:
    """The text without a character that could steer a terminal."""
    return "".join(escape.format(ord(ch)) if category(ch) == "Cc" and ch not in "\n\t" else ch for ch in text)


def ending(result: RunResult, directory: Path) -> str:
    """How a run ended, in one line, and where its artefacts are; why, where that takes a line of its own."""
    failure = f"Error: {result.error.message}\n" if result.error else ""
    hint = f"{result.error.hint}\n" if result.error and result.error.hint else ""
    line = f"{_verdict(result)} {_figures(result)}{_saved(result)} Artefacts: {directory}"
    return f"{failure}{hint}{line}{_going_on(result, directory)}"


def _going_on(result: RunResult, directory: Path) -> str:
    """How a run that was cut short goes on, where its answers were kept and there are any."""
    kept = result.configuration.get("store", {}).get("mode") in ("record", "cache")
    if result.termination_reason not in ("failed", "interrupted") or not (kept and _was_answered(result)):
        return ""
    return f"\nTo go on from what was answered: python -m aeon {shlex.quote(f'resume={directory}')}"


def _was_answered(result: RunResult) -> bool:
    """Whether a model answered, or else a tool: a step without a model is complete only by one."""
    steps = result.history.passes[-1].steps if result.history.passes else ()
    return bool(result.usage.total.requests) or any(step.status == "complete" for step in steps)


def _verdict(result: RunResult) -> str:
    if result.converged:
        return "Converged."
    if result.termination_reason == "completed":
        return "Completed."
    if result.termination_reason == "step_failed":
        return f"Finished, but {_incomplete(result)}."
    if result.termination_reason in ("failed", "interrupted"):
        return f"{result.termination_reason.capitalize()}."
    core = result.configuration.get("mode", {}).get("kind") == "core"
    return f"Finished without {'completing' if core else 'converging'} ({result.termination_reason})."


def _incomplete(result: RunResult) -> str:
    """The steps that are not complete, by their states: `step a failed, 2 steps are blocked (b, c)`."""
    steps = result.history.passes[-1].steps if result.history.passes else ()
    states: dict[str, list[str]] = {}
    for step in steps:
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


def _saved(result: RunResult) -> str:
    """What an earlier run's answers saved; of a replay, where nothing is called, nothing is said."""
    if result.parent is None or _is_replay(result):
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


def _figures(result: RunResult) -> str:
    usage = result.usage.total
    head = f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}"
    if _is_replay(result):
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


def _is_replay(result: RunResult) -> bool:
    return bool(result.configuration.get("store", {}).get("mode") == "replay")


def _differing(result: RunResult) -> str:
    """That what was asked is not what had been recorded, where answers were matched by call and order."""
    number = result.parent.differing if result.parent else 0
    if not number:
        return ""
    which = "1 request is not the one" if number == 1 else f"{number} requests are not those"
    return f" {which} that had been recorded: prompts, schemas or settings have changed since."
