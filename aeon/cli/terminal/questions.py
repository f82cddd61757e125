"""Questions to the user at the terminal: follow-up questions, and tools that need approval."""

from __future__ import annotations

import json
import select
import sys
from collections.abc import Callable
from contextlib import suppress

from aeon.cli.terminal.streams import say
from aeon.domain.errors import StopRequested
from aeon.domain.plan import FollowUpQuestion
from aeon.report.words import one_line
from aeon.tools.registry import ApprovalRequest

Stopping = Callable[[], bool]


def at_terminal() -> bool:
    """Whether somebody can be asked: standard input and standard error are terminals."""
    with suppress(AttributeError, ValueError):
        return sys.stdin.isatty() and sys.stderr.isatty()
    return False


def approve(request: ApprovalRequest, stopping: Stopping = lambda: False) -> bool:
    """Ask whether a tool may be called; anything but y or yes is no. Raises StopRequested when the
    run is to stop."""
    tool = request.tool
    step = request.step
    lines = [f"\nTool {tool.name}: {one_line(tool.description)}"]
    if step is not None:
        parent = step.parent_step_id
        name = f"substep {step.step_id} of step {parent}" if parent else f"step {step.step_id}"
        lines.append(f"  For {one_line(name)}: {one_line(step.description, 300)}")
    lines.append(
        f"  Side effects: {'yes, a call changes something outside' if tool.side_effects else 'none declared'}"
    )
    if request.repeated:
        lines.append(
            "  It may have been carried out already: it was being called when the earlier run was cut off."
        )
    lines.append(
        f"  Arguments: {one_line(json.dumps(dict(request.arguments), ensure_ascii=False))}"
    )
    return confirm("\n".join([*lines, "  May it be called?"]), stopping)


def confirm(question: str, stopping: Stopping = lambda: False) -> bool:
    """Ask; anything but y or yes is no. Raises StopRequested when what asks is to stop."""
    return _answer(f"{question} [y/N]", stopping).lower() in ("y", "yes")


def ask(question: FollowUpQuestion, stopping: Stopping = lambda: False) -> str | None:
    """Ask a question and wait for a line. None, which keeps the assumption, for an empty line, at
    the end of the input, and when the run is asked to stop."""
    if stopping():
        return None
    where = f" about step {one_line(question.step_id)}" if question.step_id else ""
    with suppress(StopRequested):
        prompt = (
            f"\nQuestion{where}: {one_line(question.question)}\n"
            f"  Assumed meanwhile: {one_line(question.assumption)}\n"
            "  Your answer (Enter keeps the assumption):"
        )
        return _answer(prompt, stopping) or None
    return None


def _answer(prompt: str, stopping: Stopping) -> str:
    # A read goes on after a signal handler has run, so `stopping` is polled while there is no
    # input.
    with suppress(ImportError, AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            import termios  # not on every system

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    say(prompt)
    # A stream without a descriptor cannot be polled.
    with suppress(OSError, ValueError):
        while not select.select([sys.stdin], [], [], 0.1)[0]:
            if stopping():
                raise StopRequested("the run was asked to stop")
    return sys.stdin.readline().strip()
