"""`interaction=ask`: follow-up questions put to the person at the terminal."""

from __future__ import annotations

import sys

from aeon.cli.output import say
from aeon.plan.models import FollowUpQuestion


def ask(question: FollowUpQuestion) -> str | None:
    """Put a question and wait for a line; None, which keeps the assumption, for an empty one or no more input."""
    say(f"\nQuestion: {question.question}")
    say(f"  Assumed meanwhile: {question.assumption}")
    say("  Your answer (Enter keeps the assumption):")
    return sys.stdin.readline().strip() or None
