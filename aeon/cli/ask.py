"""What is put to the person at the terminal: follow-up questions, and tools that need approval."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from aeon.cli.output import say
from aeon.cli.progress_view import one_line
from aeon.plan.models import FollowUpQuestion
from aeon.tools.registry import Tool


def at_terminal() -> bool:
    """Whether there is a person who can be asked."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


def approve(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Ask whether a tool may be called; anything but y or yes is no."""
    say(f"\nTool {tool.name}: {one_line(tool.description)}")
    say(f"  Arguments: {one_line(json.dumps(dict(arguments), ensure_ascii=False))}")
    say("  May it be called? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask(question: FollowUpQuestion) -> str | None:
    """Put a question and wait for a line; None, which keeps the assumption, for an empty one or no more input."""
    say(f"\nQuestion: {one_line(question.question)}")
    say(f"  Assumed meanwhile: {one_line(question.assumption)}")
    say("  Your answer (Enter keeps the assumption):")
    return sys.stdin.readline().strip() or None
