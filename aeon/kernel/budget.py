"""What a run may spend in LLM cycles."""

from __future__ import annotations


class TTLExpired(Exception):
    """A call is not made, since the budget is spent."""
