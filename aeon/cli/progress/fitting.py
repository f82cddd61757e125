"""Text that fits so many columns of a terminal; wide characters count two."""

from __future__ import annotations

from collections.abc import Iterable

from rich.cells import cell_len
from rich.text import Text


def fitted(text: Text, width: int) -> Text:
    """The text, its end cut off where it does not fit."""
    text.truncate(width, overflow="ellipsis")
    return text


def flow(items: Iterable[str], separator: str, width: int) -> list[Text]:
    """Items side by side, on as many lines as they need."""
    lines: list[str] = []
    for item in filter(None, items):
        if lines and cell_len(lines[-1] + separator + item) <= width:
            lines[-1] += separator + item
        else:
            lines.append(item)
    return [fitted(Text(line), width) for line in lines]


def wrapped(line: str, width: int, most: int | None = None) -> list[str]:
    """A line as several, broken between words; of more than `most` the last one says that there is more."""
    lines = [str(text) for text in flow(line.split(" "), " ", width)]
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], str(fitted(Text(f"{lines[most - 1]} {lines[most]}"), width))]
