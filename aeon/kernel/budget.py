"""The budget of a run in LLM cycles."""

from __future__ import annotations


class TTLExpired(Exception):
    """A call is not made because the budget is spent."""
