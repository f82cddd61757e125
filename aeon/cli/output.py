"""Writing to standard output and standard error, whatever is at the other end of them."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TextIO

from aeon.errors import AeonError
from aeon.result import RunResult


def tolerant(*streams: TextIO) -> None:
    """Make the streams write what their encoding does not have as backslash escapes, in place of failing."""
    for stream in streams:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def say(text: str) -> None:
    """A line for the person, on standard error; nobody there to read it is no error."""
    with contextlib.suppress(OSError, ValueError):
        print(text, file=sys.stderr, flush=True)


def report(error: AeonError) -> None:
    """What went wrong, and what can be done."""
    say(f"Error: {error.message}")
    if error.hint:
        say(error.hint)


def write_answer(result: RunResult, form: str) -> None:
    """The answer, or with `json` the whole result as one line of JSON, on standard output.

    A reader that has gone away (`| head`) is no error.
    """
    text = _as_json(result) if form == "json" else result.answer
    if not text:
        return
    try:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_stdout()


def _as_json(result: RunResult) -> str:
    unicode = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    return result.model_dump_json(ensure_ascii=not unicode)


def _discard_stdout() -> None:
    """Point standard output at nothing, so that flushing it when the process ends does not fail again."""
    with contextlib.suppress(OSError, ValueError), open(os.devnull, "w") as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), sys.stdout.fileno())


def ending(result: RunResult, directory: Path) -> str:
    """How a run ended, in one line, and where its artefacts are; why, where that takes a line of its own."""
    failure = f"Error: {result.error.message}\n" if result.error else ""
    hint = f"{result.error.hint}\n" if result.error and result.error.hint else ""
    return f"{failure}{hint}{_verdict(result)} {_figures(result)} Artefacts: {directory}"


def _verdict(result: RunResult) -> str:
    if result.converged:
        return "Converged."
    if result.termination_reason in ("failed", "interrupted"):
        return f"{result.termination_reason.capitalize()}."
    return f"Finished without converging ({result.termination_reason})."


def _figures(result: RunResult) -> str:
    usage = result.usage.total
    cost = f", cost {usage.cost:.4f}" if usage.cost is not None else ""
    return (
        f"Passes: {result.passes}, TTL {result.ttl.used} of {result.ttl.allocated}, "
        f"{usage.requests} calls, {usage.total_tokens} tokens{cost}."
    )
