"""The signs of a terminal: of step states, bars and separators, as far as its encoding carries them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Glyphs:
    """One set of signs."""

    states: dict[str, str]
    full: str
    empty: str
    bar: str
    dot: str
    arrow: str
    spinner: str
    ascii_only: bool = False


_UNICODE = Glyphs(
    {"complete": "✓", "running": "●", "blocked": "■", "failed": "✗", "invalid": "✗", "pending": "·", "replaced": "↷"},
    "━",
    "─",
    "┃",
    " · ",
    " → ",
    "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏",
)
_ASCII = Glyphs(
    {"complete": "+", "running": ">", "blocked": "!", "failed": "x", "invalid": "x", "pending": ".", "replaced": "-"},
    "#",
    "-",
    "|",
    ", ",
    " > ",
    "|/-\\",
    ascii_only=True,
)


def is_utf(encoding: str) -> bool:
    """Whether an encoding can carry every character."""
    return encoding.lower().replace("-", "").startswith("utf")


def glyphs(encoding: str) -> Glyphs:
    """The signs that an encoding can carry."""
    return _UNICODE if is_utf(encoding) else _ASCII
