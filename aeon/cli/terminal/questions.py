"""Questions to the user at the terminal: follow-up questions, and tools that need approval."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable
from contextlib import suppress

from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.text import one_line
from aeon.domain.errors import StopRequested
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.tools.approval import ApprovalRequest

Stopping = Callable[[], bool]
_MOMENT = 0.1
_DESCRIBED = 300


def _never() -> bool:
    return False


def at_terminal() -> bool:
    """Whether somebody can be asked: standard input and standard error are terminals."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and not stream.closed and stream.isatty() for stream in streams)


def approve(request: ApprovalRequest, stopping: Stopping = _never) -> bool:
    """Ask whether a tool may be called; anything but y or yes is no. Raises StopRequested when the run is to stop."""
    tool = request.tool
    effects = "yes, a call changes something outside" if tool.side_effects else "none declared"
    _put(
        f"\nTool {tool.name}: {one_line(tool.description)}\n"
        f"{_asked_by(request.step)}"
        f"  Side effects: {effects}\n"
        f"  Arguments: {one_line(json.dumps(dict(request.arguments), ensure_ascii=False))}\n"
        "  May it be called? [y/N]"
    )
    return _line(stopping).strip().lower() in ("y", "yes")


def _asked_by(step: PlanStep | None) -> str:
    if step is None:
        return ""
    of_parent = f" of step {one_line(step.parent_step_id)}" if step.parent_step_id else ""
    name = f"{'substep' if of_parent else 'step'} {one_line(step.step_id)}{of_parent}"
    return f"  For {name}: {one_line(step.description, _DESCRIBED)}\n"


def ask(question: FollowUpQuestion, stopping: Stopping = _never) -> str | None:
    """Ask a question and wait for a line. None, which keeps the assumption, for an empty line, at the end of the input,
    and when the run is asked to stop."""
    if stopping():
        return None
    where = f" about step {one_line(question.step_id)}" if question.step_id else ""
    _put(
        f"\nQuestion{where}: {one_line(question.question)}\n"
        f"  Assumed meanwhile: {one_line(question.assumption)}\n"
        "  Your answer (Enter keeps the assumption):"
    )
    with suppress(StopRequested):
        return _line(stopping).strip() or None
    return None


def _put(prompt: str) -> None:
    """Show a prompt, and discard what was typed before it: nobody had seen the question."""
    with suppress(ImportError, AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            import termios  # not on every system

            with suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    say(prompt)


def _line(stopping: Stopping) -> str:
    """A line of standard input. Raises StopRequested when `stopping` says so before there is one.

    A read goes on after a signal handler has run, so `stopping` is polled while there is no input.
    """
    while not _readable():
        if stopping():
            raise StopRequested("the run was asked to stop")
    return sys.stdin.readline()


def _readable() -> bool:
    """Whether there is input, after a moment; True for a stream that cannot be polled (no descriptor, Windows)."""
    try:
        return bool(select.select([sys.stdin], [], [], _MOMENT)[0])
    except (OSError, ValueError):
        return True
