"""What is put to the person at the terminal: follow-up questions, and tools that need approval."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any

from aeon.cli.output import say
from aeon.plan.models import FollowUpQuestion
from aeon.tools.registry import Tool


def at_terminal() -> bool:
    """Whether there is a person who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def approve(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Ask whether a tool may be called; anything but y or yes is no."""
    say(f"\nTool {tool.name}: {tool.description}")
    say(f"  Arguments: {json.dumps(dict(arguments), ensure_ascii=False)}")
    say("  May it be called? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask(question: FollowUpQuestion) -> str | None:
    """Put a question and wait for a line; None, which keeps the assumption, for an empty one or no more input."""
    say(f"\nQuestion: {question.question}")
    say(f"  Assumed meanwhile: {question.assumption}")
    say("  Your answer (Enter keeps the assumption):")
    return sys.stdin.readline().strip() or None
