"""What is shown of the jobs of a multirun while they go on: a line for each in a picture, or lines of what happens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rich.cells import cell_len
from rich.text import Text

from aeon.cli.progress.plain import Display
from aeon.cli.progress.view import SCORES, RunView
from aeon.cli.progress.words import banner, lines
from aeon.domain import events as e
from aeon.domain.events import Recorded
from aeon.llm.stack.limits import Spent
from aeon.report.words import SPINNER, STATES, count_noun, format_clock, round_down

_INCIDENTS = (e.CallFailed, e.FallbackUsed, e.RetryScheduled, e.AdvisoryRaised)
_STYLES = {"waiting": "dim", "running": "cyan", "converged": "green", "complete": "green", "failed": "red"}
_SIGNS = {"waiting": STATES["pending"], "converged": STATES["complete"], "failed": STATES["failed"]}
_RANKS = ("running", "failed", "waiting")
_SHORT = ("compl.", "coher.", "cons.")
_WIDTH_OF_ALL_SCORES, _WIDTH_OF_CALLS = 108, 66


@dataclass(slots=True)
class Row:
    """A job as it stands: `state` is waiting, running, or how it ended; `view` is there while it runs."""

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


class Drawn(RunView):
    """What a screen draws by `draw` instead of a run."""

    def __init__(self, draw: Callable[[datetime, int, int], list[Text]]) -> None:
        super().__init__()
        self.draw = draw


@dataclass
class SweepView:
    """The jobs of a multirun as they stand. `spent` tells what all have really asked for, `caps` the most that they
    may, `stopping` is what is said once nothing new is started."""

    spent: Callable[[], Spent]
    caps: tuple[float | None, int | None] = (None, None)
    rows: dict[int, Row] = field(default_factory=dict)
    display: Display | None = None
    quiet: bool = False
    stopping: str = ""
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _introduced: bool = False

    def begin(self, number: int, view: RunView) -> Callable[[Recorded], None]:
        """Show that a job runs; gives the subscriber of its events."""
        with self._lock:
            row = self.rows[number]
            row.state, row.view, row.began = "running", view, datetime.now(UTC)
        if not self.quiet and not self._live:
            self.say(f"job {number}  {row.words}  started")

        def take(recorded: Recorded) -> None:
            with self._lock:
                view(recorded)
                row.update(view)
                told = self._tell(recorded.event, view)
            self.say(*told, of=number)

        return take

    def end(self, number: int, state: str, *texts: str) -> None:
        """Show how a job ended; `texts` are said of it."""
        with self._lock:
            row = self.rows[number]
            row.state, row.view = state, None
            row.seconds = (datetime.now(UTC) - row.began).total_seconds() if row.began else 0.0
        self.say(*texts, of=number)

    def say(self, *texts: str, of: int | None = None) -> None:
        """Write lines, said of a job where its number is given."""
        told = [line if of is None else f"job {of}  {line}" for text in texts for line in text.splitlines()]
        if told and self.display is not None:
            self.display.print(told)

    @property
    def _live(self) -> bool:
        return self.display is not None and self.display.live

    def _tell(self, event: e.Event, view: RunView) -> list[str]:
        if isinstance(event, e.RunStarted):
            shown, self._introduced = not self._introduced, True
            if shown and self.display is not None and (head := banner(event.synthetic, view.recording)):
                self.display.print(head)
            return []
        told = _INCIDENTS if self._live else (*_INCIDENTS, e.Assessed)
        return lines(event, view, brief=True) if isinstance(event, told) and not self.quiet else []

    def draw(self, now: datetime, width: int, height: int) -> list[Text]:
        """The lines of all jobs: at most `height - 1`, of at most `width` cells."""
        with self._lock:
            rows = list(self.rows.values())
            total = [_fit(Text(f"  {self.stopping}", "bold yellow"), width)] if self.stopping else []
            total.append(_fit(Text(f"  {self._total(rows)}", "dim"), width))
            shown = _select(rows, max(1, height - 4 - len(total)))
            turn = SPINNER[int(now.timestamp() * 8) % len(SPINNER)]
            clock = format_clock(now - self.started)
            title = Text.assemble((turn, "cyan"), " ", (f"Aeon  {count_noun(len(rows), 'job')}", "bold"))
            title = Text.assemble(title, " " * max(1, width - title.cell_len - len(clock)), (clock, "cyan"))
            widest = max((cell_len(row.words) for row in shown), default=0)
            table = [_head(width, widest), *(_line(row, now, width, widest, turn) for row in shown)]
        return [Text(""), title, *(_fit(line, width) for line in table), *total]

    def _total(self, rows: Sequence[Row]) -> str:
        states = [row.state for row in rows]
        order = (*_RANKS, *sorted(set(states) - set(_RANKS)))
        counts = ", ".join(f"{states.count(state)} {state}" for state in order if state in states)
        spent, (most, calls) = self.spent(), self.caps
        asked = count_noun(spent.calls, "call").replace(" ", f" of {calls} " if calls else " ")
        cost = "" if spent.cost is None or not (spent.cost or most) else f" · cost {spent.cost:.4f}"
        return f"{counts} · {asked} made{cost}{f' of {most:g}' if cost and most else ''}"


def _select(rows: list[Row], most: int) -> list[Row]:
    """What runs before what failed, what is next, and what is done; in the order of the numbers."""
    ranks = {state: rank for rank, state in enumerate(_RANKS)}
    chosen = sorted(rows, key=lambda row: (ranks.get(row.state, len(_RANKS)), row.number))[:most]
    return sorted(chosen, key=lambda row: row.number)


def _fit(line: Text, width: int) -> Text:
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _columns(width: int) -> tuple[int, bool]:
    """How many scores are shown, and whether calls and cost are."""
    return (3 if width >= _WIDTH_OF_ALL_SCORES else 1), width >= _WIDTH_OF_CALLS


def _head(width: int, widest: int) -> Text:
    scores, calls = _columns(width)
    names = _SHORT if scores == 3 else ("least",)
    figures = [*(f"{name:>6}" for name in names), *((f"{'calls':>5}", f"{'cost':>8}") if calls else ()), f"{'time':>6}"]
    return _assemble(Text("    job"), Text("now"), figures, width, widest, "dim")


def _line(row: Row, now: datetime, width: int, widest: int, turn: str) -> Text:
    scores, calls = _columns(width)
    known = [round_down(one) for one in row.scores if one is not None]
    given = row.scores if scores == 3 else ((min(known),) if known else (None,))
    figures = [f"{'' if one is None else f'{round_down(one):.2f}':>6}" for one in (*given, *(None,) * scores)[:scores]]
    if calls:
        figures += [f"{row.calls or '':>5}", f"{f'{row.cost:.4f}' if row.cost else '':>8}"]
    seconds = (now - row.began).total_seconds() if row.view and row.began else row.seconds
    figures.append(f"{format_clock(timedelta(seconds=seconds)) if row.began else '':>6}")
    sign = turn if row.state == "running" else _SIGNS.get(row.state, STATES["blocked"])
    style = _STYLES.get(row.state, "yellow")
    left = Text.assemble((sign, style), f" {row.number:>3}  {row.words}")
    return _assemble(left, Text(_now(row), style), figures, width, widest, "")


def _now(row: Row) -> str:
    if row.view is None:
        return row.state
    phase = row.view.phase.lower().replace("_", "-") or "starting"
    return f"pass {row.view.pass_number} {phase}" if row.view.pass_number else phase


def _assemble(left: Text, state: Text, figures: list[str], width: int, widest: int, style: str) -> Text:
    right = "  ".join(figures)
    room = width - len(right) - 2
    words = min(widest + 8, max(14, room - 20))
    left.truncate(words, overflow="ellipsis", pad=True)
    state.truncate(max(4, room - words - 2), overflow="ellipsis", pad=True)
    line = Text.assemble(left, "  ", state, "  ", right)
    line.stylize_before(style) if style else None
    return line
