"""Rows of plain values as tables: as text, as HTML, as frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import floor
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
_WIDEST = 60


def as_frame(rows: Iterable[Row]) -> pandas.DataFrame:
    """Rows as a frame. Raises ConfigError without pandas."""
    try:
        import pandas
    except ImportError:
        raise ConfigError("to_frame() needs the package pandas", hint="pip install 'aeon-engine[pandas]'") from None
    return pandas.DataFrame(list(rows))


def as_text(rows: Sequence[Row]) -> str:
    """Rows as a table of characters; texts are on one line, without control characters."""
    columns = [(name, [row[name] for row in rows]) for name in rows[0]]
    shown = []
    for name, values in columns:
        cells = [name, *map(_cell, values)]
        aligned = str.ljust if isinstance(values[0], str) else str.rjust
        shown.append([aligned(cell, max(map(len, cells))) for cell in cells])
    return "\n".join("  ".join(line).rstrip() for line in zip(*shown, strict=True))


def as_html(rows: Sequence[Row]) -> str:
    """Rows as an HTML table; texts are escaped, and cannot turn the direction of what stands beside them."""
    head = "".join(f"<th>{escape(name.replace('_', ' '))}</th>" for name in rows[0])
    lines = ("".join(f"<td><bdi>{escape(_cell(value))}</bdi></td>" for value in row.values()) for row in rows)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"


def _cell(value: Any) -> str:
    # Scores are rounded down, never up to a threshold that they do not reach.
    text = "" if value is None else f"{floor(value * 100 + 1e-9) / 100:.2f}" if isinstance(value, float) else str(value)
    line = " ".join("".join(ch if ch.isprintable() else " " for ch in text).split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 3]}..."
