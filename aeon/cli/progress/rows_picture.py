"""The picture of rows while they run: a line for each, and below it their summary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from rich.cells import cell_len
from rich.text import Text

from aeon.cli.progress.picture import turn
from aeon.cli.progress.rows import RANKS, RowState, RowsView
from aeon.report.words import STATES, format_clock, round_down

_STYLES = {
    "waiting": "dim",
    "running": "cyan",
    "converged": "green",
    "complete": "green",
    "failed": "red",
}
_SIGNS = {"waiting": STATES["pending"], "converged": STATES["complete"], "failed": STATES["failed"]}
_SHORT = ("compl.", "coher.", "cons.")
_COLUMNS = (
    *((name, 6, 100, 10_000) for name in _SHORT),
    ("least", 5, 0, 100),
    ("calls", 5, 66, 10_000),
    ("cost", 8, 72, 10_000),
    ("time", 6, 0, 10_000),
)
"""The figures of a row, each with its cells and the range of widths in which it is shown."""
_OF_STATE = 19
_WIDEST = 140


def draw_rows(view: RowsView, now: datetime, width: int, height: int) -> list[Text]:
    """Draw all rows: at most `height - 1` lines of at most `width` cells."""
    width = min(width, _WIDEST)
    with view.lock:
        below = view.below
        shown = _select(list(view.rows.values()), max(1, height - 4 - len(below)))
        styles = [*["bold yellow"] * (len(below) - 1), "dim"]
        ends = [
            _fit(Text(f"  {line}", style), width) for line, style in zip(below, styles, strict=True)
        ]
        table = _table(shown, now, width) if shown else []
        return [Text(""), _title(view, now, width), *table, *ends]


def _title(view: RowsView, now: datetime, width: int) -> Text:
    clock = format_clock(now - view.started)
    line = Text.assemble((turn(now), "cyan"), " ", (view.title, "bold"))
    blanks = " " * max(1, width - line.cell_len - len(clock))
    return Text.assemble(line, blanks, (clock, "cyan"))


def _table(rows: list[RowState], now: datetime, width: int) -> list[Text]:
    texts = _shorten([row.words for row in rows], _room(width))
    widest = max(map(cell_len, texts), default=0)
    names = {name: name for name, *_ in _COLUMNS}
    head = _assemble(Text("    "), Text("now"), names, width, widest)
    head.stylize("dim")
    lines_of_rows = [
        _line(row, text, now, width, widest) for row, text in zip(rows, texts, strict=True)
    ]
    return [_fit(line, width) for line in (head, *lines_of_rows)]


def _select(rows: Sequence[RowState], most: int) -> list[RowState]:
    """Choose up to `most` rows, running ones first, then failed, waiting and done ones; return them
    in the order of their numbers."""
    ranks = {state: rank for rank, state in enumerate(RANKS)}
    chosen = sorted(rows, key=lambda row: (ranks.get(row.state, len(RANKS)), row.number))[:most]
    return sorted(chosen, key=lambda row: row.number)


def _fit(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _room(width: int) -> int:
    """Return the cells of a line that are left for a job's values."""
    taken = sum(2 + cells for _, cells, least, most in _COLUMNS if least <= width < most)
    return max(12, width - 8 - _OF_STATE - taken)


def _shorten(texts: list[str], room: int) -> list[str]:
    """Shorten the keys until all texts fit, if they can: the values tell the jobs apart."""
    for key in (r"([^ =]{12})[^ =]+=", r"([^ =]{8})[^ =]+=", r"([^ =]{4})[^ =]+=", "()[^ =]+="):
        if max(map(cell_len, texts), default=0) > room:
            texts = [re.sub(key, r"\1=", text).replace(" =", " ").lstrip("=") for text in texts]
    return texts


def _line(row: RowState, words: str, now: datetime, width: int, widest: int) -> Text:
    seconds = (now - row.began).total_seconds() if row.view and row.began else row.seconds
    given = ["" if one is None else f"{round_down(one):.2f}" for one in row.scores]
    figures = {
        **dict(zip(_SHORT, given, strict=False)),
        "least": min(filter(None, given), default=""),
        "calls": str(row.calls or ""),
        "cost": f"{row.cost:.4f}" if row.cost else "",
        "time": format_clock(timedelta(seconds=seconds)) if row.began else "",
    }
    sign = turn(now) if row.state == "running" else _SIGNS.get(row.state, STATES["blocked"])
    style = _STYLES.get(row.state, "yellow")
    left = Text.assemble((sign, style), f" {row.number:>3}  {words}")
    return _assemble(left, Text(_describe_state(row), style), figures, width, widest)


def _describe_state(row: RowState) -> str:
    if row.view is None:
        return row.state
    phase = row.view.phase.lower().replace("_", "-") or "starting"
    return f"pass {row.view.pass_number} {phase}" if row.view.pass_number else phase


def _assemble(left: Text, state: Text, figures: Mapping[str, str], width: int, widest: int) -> Text:
    left.truncate(8 + min(widest, _room(width)), overflow="ellipsis", pad=True)
    state.truncate(_OF_STATE - 2, overflow="ellipsis", pad=True)
    shown = [(name, cells) for name, cells, least, most in _COLUMNS if least <= width < most]
    return Text.assemble(
        left, "  ", state, *(f"  {figures.get(name, ''):>{cells}}" for name, cells in shown)
    )
