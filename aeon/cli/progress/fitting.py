"""Text that fits so many columns of a terminal; wide characters count two."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text


def fit(text: str | Text, width: int, style: str = "") -> Text:
    """The text, its end cut off where it does not fit."""
    fitting = Text(text, style) if isinstance(text, str) else text
    fitting.truncate(width, overflow="ellipsis")
    return fitting


def flow(items: Iterable[str], separator: str, width: int, style: str = "") -> list[Text]:
    """Items side by side, on as many lines as they need; empty ones are left out."""
    lines: list[str] = []
    for item in filter(None, items):
        if lines and cell_len(lines[-1] + separator + item) <= width:
            lines[-1] += separator + item
        else:
            lines.append(item)
    return [fit(line, width, style) for line in lines]


def wrap_line(line: str, width: int, most: int | None = None) -> list[str]:
    """A line as several, broken between words; of more than `most` the last one ends with an ellipsis."""
    lines = [str(text) for text in flow(line.split(" "), " ", width)]
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], str(fit(f"{lines[most - 1]} {lines[most]}", width))]
