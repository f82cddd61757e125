"""What is shown of the jobs of a multirun while they go on: a line for each in a picture, or lines of what happens."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping, Sequence
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
"""The figures of a job, each with its cells and from which width to which it is shown."""
_OF_STATE, _WIDEST = 19, 140


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

    def add(self, number: int, words: str) -> None:
        """Show a job that waits."""
        with self._lock:
            self.rows.setdefault(number, Row(number, words))

    def begin(self, number: int, view: RunView) -> Callable[[Recorded], None]:
        """Show that a job runs; gives the subscriber of its events."""
        with self._lock:
            row = self.rows[number]
            row.state, row.view, row.began = "running", view, datetime.now(UTC)
        if not self.quiet and not self.live:
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
        safe = (
            re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", line)
            for text in texts
            for line in text.splitlines()
        )
        told = [line if of is None else f"job {of}  {line}" for line in safe]
        if told and self.display is not None:
            self.display.print(told)

    @property
    def live(self) -> bool:
        """Whether a picture is kept up to date."""
        return self.display is not None and self.display.live

    def _tell(self, event: e.Event, view: RunView) -> list[str]:
        if isinstance(event, e.RunStarted):
            shown, self._introduced = not self._introduced, True
            if (
                shown
                and self.display is not None
                and (head := banner(event.synthetic, view.recording))
            ):
                self.display.print(head)
            return []
        told = _INCIDENTS if self.live else (*_INCIDENTS, e.Assessed)
        return lines(event, view, brief=True) if isinstance(event, told) and not self.quiet else []

    def draw(self, now: datetime, width: int, height: int) -> list[Text]:
        """The lines of all jobs: at most `height - 1`, of at most `width` cells."""
        width = min(width, _WIDEST)
        with self._lock:
            rows = list(self.rows.values())
            total = [
                _fit(Text(f"  {line}", "bold yellow"), width) for line in self.stopping.splitlines()
            ]
            total.append(_fit(Text(f"  {self._total(rows)}", "dim"), width))
            shown = _select(rows, max(1, height - 4 - len(total)))
            clock = format_clock(now - self.started)
            title = Text.assemble(
                (_turn(now), "cyan"), " ", (f"Aeon  {count_noun(len(rows), 'job')}", "bold")
            )
            title = Text.assemble(
                title, " " * max(1, width - title.cell_len - len(clock)), (clock, "cyan")
            )
            texts = _shorten([row.words for row in shown], _room(width))
            widest = max(map(cell_len, texts), default=0)
            head = _assemble(
                Text("    job"), Text("now"), {name: name for name, *_ in _COLUMNS}, width, widest
            )
            head.stylize("dim")
            table = [
                head,
                *(
                    _line(row, text, now, width, widest)
                    for row, text in zip(shown, texts, strict=True)
                ),
            ]
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
