"""Rows of a batch or jobs of a sweep while they go on: a line for each in a picture, or lines of what happens."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from rich.cells import cell_len
from rich.text import Text

from aeon.cli.progress.plain import Display
from aeon.cli.progress.view import SCORES, RunView
from aeon.cli.progress.words import banner, lines
from aeon.domain import events as e
from aeon.domain.events import Recorded
from aeon.report.words import SPINNER, STATES, count_noun, format_clock, round_down

_INCIDENTS = (e.CallFailed, e.FallbackUsed, e.RetryScheduled, e.AdvisoryRaised)
_STYLES = {
    "waiting": "dim",
    "running": "cyan",
    "converged": "green",
    "complete": "green",
    "failed": "red",
}
_SIGNS = {"waiting": STATES["pending"], "converged": STATES["complete"], "failed": STATES["failed"]}
_RANKS = ("running", "failed", "waiting")
_SHORT = ("compl.", "coher.", "cons.")
_COLUMNS = (
    *((name, 6, 100, 10_000) for name in _SHORT),
    *(
        ("least", 5, 0, 100),
        ("calls", 5, 66, 10_000),
        ("cost", 8, 72, 10_000),
        ("time", 6, 0, 10_000),
    ),
)
"""The figures of a row, each with its cells and from which width to which it is shown."""
_OF_STATE, _WIDEST = 19, 140


@dataclass(slots=True)
class Row:
    """A row or a job as it stands: `state` is waiting, running, or how it ended; `view` is there while it runs."""

    number: int
    words: str
    state: str = "waiting"
    view: RunView | None = None
    began: datetime | None = None
    seconds: float = 0.0
    scores: tuple[float | None, ...] = ()
    calls: int = 0
    cost: float | None = None

    def update(self, view: RunView) -> None:
        """Take over the figures of its run."""
        self.calls, self.cost = view.requests, view.cost
        if view.scores:
            self.scores = tuple(view.scores[-1][f"{name}_score"] for name in SCORES)


class RowsView:
    """The rows as they stand, by their numbers; a row is called `noun`. `describe` gives the line below the picture,
    `stopping` what is shown once all are being stopped. What happens in a row is written in lines, too, unless it is
    `quiet`. With `forgets` rows that are over are not shown, and no lines are written: there may be any number."""

    def __init__(
        self,
        noun: str,
        describe: Callable[[Sequence[Row]], str],
        stopping: Callable[[], str],
        *,
        quiet: bool = False,
        forgets: bool = False,
    ) -> None:
        self.rows: dict[int, Row] = {}
        self.display: Display | None = None
        self._noun = noun
        self._describe = describe
        self._stopping = stopping
        self._quiet = quiet or forgets
        self._forgets = forgets
        self._started = datetime.now(UTC)
        self._lock = threading.Lock()
        self._introduced = False

    def add(self, number: int, words: str) -> None:
        """Show a row that waits."""
        with self._lock:
            self.rows.setdefault(number, Row(number, words))

    def begin(self, number: int, words: str, view: RunView) -> Callable[[Recorded], None]:
        """Show that a row is run; gives the subscriber of its events."""
        with self._lock:
            row = self.rows.setdefault(number, Row(number, words))
            row.state, row.view, row.began = "running", view, datetime.now(UTC)
        if not (self._quiet or self.live):
            self.say(f"{self._noun} {number}  {words}  started")

        def take(recorded: Recorded) -> None:
            with self._lock:
                view(recorded)
                row.update(view)
                lines_of_event = self._tell(recorded.event, view)
            self.say(*lines_of_event, of=number)

        return take

    def end(self, number: int, state: str, *texts: str) -> None:
        """Show how a row ended; `texts` are written as lines of it."""
        with self._lock:
            row = self.rows[number]
            row.state, row.view = state, None
            row.seconds = (datetime.now(UTC) - row.began).total_seconds() if row.began else 0.0
            if self._forgets:
                del self.rows[number]
        self.say(*texts, of=number)

    def say(self, *texts: str, of: int | None = None) -> None:
        """Write lines, beginning with the row where its number is given."""
        safe = (
            re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", line)
            for text in texts
            for line in text.splitlines()
        )
        written = [line if of is None else f"{self._noun} {of}  {line}" for line in safe]
        if written and self.display is not None:
            self.display.print(written)

    @property
    def live(self) -> bool:
        """Whether a picture is kept up to date."""
        return self.display is not None and self.display.live

    def _tell(self, event: e.Event, view: RunView) -> list[str]:
        if isinstance(event, e.RunStarted):
            is_first, self._introduced = not self._introduced, True
            if is_first and self.display is not None and not self._forgets:
                self.display.print(banner(event.synthetic, view.recording))
            return []
        if self._quiet:
            return []
        shown = _INCIDENTS if self.live else (*_INCIDENTS, e.Assessed)
        return lines(event, view, brief=True) if isinstance(event, shown) else []

    def draw(self, now: datetime, width: int, height: int) -> list[Text]:
        """The lines of all rows: at most `height - 1`, of at most `width` cells."""
        width = min(width, _WIDEST)
        with self._lock:
            rows = list(self.rows.values())
            below = [
                _fit(Text(f"  {line}", "bold yellow"), width)
                for line in self._stopping().splitlines()
            ]
            below.append(_fit(Text(f"  {self._describe(rows)}", "dim"), width))
            shown = _select(rows, max(1, height - 4 - len(below)))
            table = _table(shown, now, width) if shown else []
        return [Text(""), self._title(now, len(rows), width), *table, *below]

    def _title(self, now: datetime, count: int, width: int) -> Text:
        clock = format_clock(now - self._started)
        what = "Aeon" if self._forgets else f"Aeon  {count_noun(count, self._noun)}"
        title = Text.assemble((_turn(now), "cyan"), " ", (what, "bold"))
        blanks = " " * max(1, width - title.cell_len - len(clock))
        return Text.assemble(title, blanks, (clock, "cyan"))


def count_states(rows: Sequence[Row]) -> str:
    """How many rows are in each state, those that run first."""
    states = [row.state for row in rows]
    order = (*_RANKS, *sorted(set(states) - set(_RANKS)))
    return ", ".join(f"{states.count(state)} {state}" for state in order if state in states)


def _table(rows: list[Row], now: datetime, width: int) -> list[Text]:
    texts = _shorten([row.words for row in rows], _room(width))
    widest = max(map(cell_len, texts), default=0)
    names = {name: name for name, *_ in _COLUMNS}
    head = _assemble(Text("    "), Text("now"), names, width, widest)
    head.stylize("dim")
    lines_of_rows = [
        _line(row, text, now, width, widest) for row, text in zip(rows, texts, strict=True)
    ]
    return [_fit(line, width) for line in (head, *lines_of_rows)]


def _select(rows: list[Row], most: int) -> list[Row]:
    """What runs before what failed, what is next, and what is done; in the order of the numbers."""
    ranks = {state: rank for rank, state in enumerate(_RANKS)}
    chosen = sorted(rows, key=lambda row: (ranks.get(row.state, len(_RANKS)), row.number))[:most]
    return sorted(chosen, key=lambda row: row.number)


def _fit(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _room(width: int) -> int:
    """How much of a line is left for what a job was given."""
    taken = sum(2 + cells for _, cells, least, most in _COLUMNS if least <= width < most)
    return max(12, width - 8 - _OF_STATE - taken)


def _shorten(texts: list[str], room: int) -> list[str]:
    """The texts with their keys so short that all fit, if they can: the values tell the jobs apart."""
    for key in (r"([^ =]{12})[^ =]+=", r"([^ =]{8})[^ =]+=", r"([^ =]{4})[^ =]+=", "()[^ =]+="):
        if max(map(cell_len, texts), default=0) > room:
            texts = [re.sub(key, r"\1=", text).replace(" =", " ").lstrip("=") for text in texts]
    return texts


def _line(row: Row, words: str, now: datetime, width: int, widest: int) -> Text:
    seconds = (now - row.began).total_seconds() if row.view and row.began else row.seconds
    given = ["" if one is None else f"{round_down(one):.2f}" for one in row.scores]
    figures = {
        **dict(zip(_SHORT, given, strict=False)),
        "least": min(filter(None, given), default=""),
        "calls": str(row.calls or ""),
        "cost": f"{row.cost:.4f}" if row.cost else "",
        "time": format_clock(timedelta(seconds=seconds)) if row.began else "",
    }
    sign = _turn(now) if row.state == "running" else _SIGNS.get(row.state, STATES["blocked"])
    style, state = _STYLES.get(row.state, "yellow"), row.state
    if row.view is not None:
        phase = row.view.phase.lower().replace("_", "-") or "starting"
        state = f"pass {row.view.pass_number} {phase}" if row.view.pass_number else phase
    left = Text.assemble((sign, style), f" {row.number:>3}  {words}")
    return _assemble(left, Text(state, style), figures, width, widest)


def _assemble(left: Text, state: Text, figures: Mapping[str, str], width: int, widest: int) -> Text:
    left.truncate(8 + min(widest, _room(width)), overflow="ellipsis", pad=True)
    state.truncate(_OF_STATE - 2, overflow="ellipsis", pad=True)
    shown = [(name, cells) for name, cells, least, most in _COLUMNS if least <= width < most]
    return Text.assemble(
        left, "  ", state, *(f"  {figures.get(name, ''):>{cells}}" for name, cells in shown)
    )


def _turn(now: datetime) -> str:
    return SPINNER[int(now.timestamp() * 8) % len(SPINNER)]
