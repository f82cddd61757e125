"""Questions to the user at the terminal: follow-up questions, and tools that need approval."""

from __future__ import annotations

import select
import sys
from collections.abc import Callable
from contextlib import suppress

from aeon.cli.terminal.streams import say
from aeon.domain.errors import StopRequested
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.interaction.deferral import describe_step
from aeon.report.words import one_line
from aeon.tools.registry import ApprovalRequest

Stopping = Callable[[], bool]
_LONGEST_LINE = 320


def at_terminal() -> bool:
    """Check whether somebody can be asked: standard input and standard error are terminals."""
    with suppress(AttributeError, ValueError):
        return sys.stdin.isatty() and sys.stderr.isatty()
    return False


def approve(request: ApprovalRequest, stopping: Stopping = lambda: False) -> bool:
    """Ask whether a tool may be called; anything but y or yes is no. Raises StopRequested when the
    run is asked to stop."""
    first, *others, arguments = request.describe()
    lines = [f"\n{one_line(first)}"]
    lines += [f"  {one_line(line, _LONGEST_LINE)}" for line in others]
    lines.append(f"  {one_line(arguments)}")
    return confirm("\n".join([*lines, "  May it be called?"]), stopping)


def confirm(question: str, stopping: Stopping = lambda: False) -> bool:
    """Ask; anything but y or yes is no. Raises StopRequested when `stopping` returns True."""
    return read_line(f"{question} [y/N]", stopping).lower() in ("y", "yes")


def ask(question: FollowUpQuestion, stopping: Stopping = lambda: False) -> str | None:
    """Ask a question and wait for a line. Returns None, which keeps the assumption, for an empty
    line, at the end of the input, and when the run is asked to stop."""
    if stopping():
        return None
    where = f" about step {one_line(question.step_id)}" if question.step_id else ""
    with suppress(StopRequested):
        prompt = (
            f"\nQuestion{where}: {one_line(question.question)}\n"
            f"  Assumed meanwhile: {one_line(question.assumption)}\n"
            "  Your answer (Enter keeps the assumption):"
        )
        return read_line(prompt, stopping) or None
    return None


def do_step(step: PlanStep, stopping: Stopping = lambda: False) -> str | None:
    """Ask a person to do a step, and return the typed output, up to the end of the input (Ctrl-D).
    None for an empty one, and when the run is asked to stop."""
    if stopping():
        return None
    description, *others = describe_step(step)
    lines = [f"\nStep {one_line(step.step_id)} is yours: {one_line(description)}"]
    lines += [f"  {one_line(line)}" for text in others for line in text.splitlines()]
    with suppress(StopRequested):
        return read_text("\n".join([*lines, "  Its output"]), stopping) or None
    return None


def read_text(prompt: str, stopping: Stopping = lambda: False) -> str:
    """Ask for a text of any number of lines. Raises StopRequested when `stopping` returns True."""
    lines = [_read_line(f"{prompt} (Ctrl-D on a line of its own ends it):", stopping)]
    while lines[-1]:
        lines.append(_wait_for_line(stopping))
    return "".join(lines).strip()


def read_line(prompt: str, stopping: Stopping = lambda: False) -> str:
    """Ask for a line, without blanks around it. Raises StopRequested when `stopping` returns
    True."""
    return _read_line(prompt, stopping).strip()


def _read_line(prompt: str, stopping: Stopping) -> str:
    # A signal handler does not end a read, so `stopping` is polled while there is no input.
    with suppress(ImportError, AttributeError, OSError, ValueError):
        if sys.stdin.isatty():
            import termios  # not on every system

            # What was typed before a question does not answer it.
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
    say(prompt)
    return _wait_for_line(stopping)


def _wait_for_line(stopping: Stopping) -> str:
    """Wait for a line and return it with its end; empty at the end of the input."""
    # A stream without a descriptor cannot be polled.
    with suppress(OSError, ValueError):
        while not select.select([sys.stdin], [], [], 0.1)[0]:
            if stopping():
                raise StopRequested("the run was asked to stop")
    return sys.stdin.readline()
