"""The signs of a terminal, and what stands for each where the encoding has ASCII alone."""

from __future__ import annotations

STATES = {
    "complete": "✓",
    "running": "●",
    "blocked": "■",
    "failed": "✗",
    "invalid": "✗",
    "pending": "·",
    "replaced": "↷",
}
"""By state of a step."""
_ASCII = str.maketrans("✓●■✗·↷━─┃→←…│├┤╰╯┼┴", "+o#x.-#-|><~|++`'+^")


def is_utf(encoding: str) -> bool:
    """Whether an encoding can carry every character."""
    return encoding.lower().replace("-", "").startswith("utf")


def to_ascii(text: str) -> str:
    """The text with each sign as an ASCII character, so that its width stays the same; other characters stay."""
    return text.translate(_ASCII)
