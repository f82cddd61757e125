"""Rows of a batch or jobs of a sweep while they run: their states, and lines for their events."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from aeon.cli.progress.plain import Display
from aeon.cli.progress.view import SCORES, RunView
from aeon.cli.progress.words import banner, lines
from aeon.domain import events as e
from aeon.domain.events import Recorded
from aeon.report.words import count_noun

_INCIDENTS = (e.CallFailed, e.FallbackUsed, e.RetryScheduled, e.AdvisoryRaised)
RANKS = ("running", "failed", "waiting")
"""The order in which states are counted and shown."""


@dataclass(slots=True)
class RowState:
    """The present state of a row or a job: `state` is waiting, running, or how it ended; `view` is
    set while it runs."""

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
        """Copy the figures of its run."""
        self.calls = view.requests
        self.cost = view.cost
        if view.scores:
            self.scores = tuple(view.scores[-1][f"{name}_score"] for name in SCORES)


class RowsView:
    """The present state of all rows, by their numbers; a row is called `noun`. `describe` returns
    the line below the picture, `stopping` the text shown once all are being stopped. Events of a
    row are written as lines too, unless `quiet`. With `forgets` rows that are over are not shown,
    and no lines are written: there may be any number. `lock` is held while rows change."""

    def __init__(
        self,
        noun: str,
        describe: Callable[[Sequence[RowState]], str],
        stopping: Callable[[], str],
        *,
        quiet: bool = False,
        forgets: bool = False,
    ) -> None:
        self.rows: dict[int, RowState] = {}
        self.display: Display | None = None
        self._noun = noun
        self._describe = describe
        self._stopping = stopping
        self._quiet = quiet or forgets
        self._forgets = forgets
        self.started = datetime.now(UTC)
        self.lock = threading.Lock()
        self._introduced = False

    def add(self, number: int, words: str) -> None:
        """Show a row that waits."""
        with self.lock:
            self.rows.setdefault(number, RowState(number, words))

    def begin(self, number: int, words: str, view: RunView) -> Callable[[Recorded], None]:
        """Show that a row runs, and return the subscriber of its events."""
        with self.lock:
            row = self.rows.setdefault(number, RowState(number, words))
            row.state = "running"
            row.view = view
            row.began = datetime.now(UTC)
        if not (self._quiet or self.live):
            self.say(f"{self._noun} {number}  {words}  started")

        def take(recorded: Recorded) -> None:
            with self.lock:
                view(recorded)
                row.update(view)
                lines_of_event = self._tell(recorded.event, view)
            self.say(*lines_of_event, of=number)

        return take

    def end(self, number: int, state: str, *texts: str) -> None:
        """Show how a row ended; `texts` are written as its lines."""
        with self.lock:
            row = self.rows[number]
            row.state = state
            row.view = None
            row.seconds = (datetime.now(UTC) - row.began).total_seconds() if row.began else 0.0
            # A batch may have millions of rows.
            if self._forgets:
                del self.rows[number]
        self.say(*texts, of=number)

    def say(self, *texts: str, of: int | None = None) -> None:
        """Write lines, beginning with the row where its number is given."""
        # Words of a row come from its dataset, and must not control the terminal.
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
            is_first = not self._introduced
            self._introduced = True
            if is_first and self.display is not None and not self._forgets:
                self.display.print(banner(event.synthetic, view.recording))
            return []
        if self._quiet:
            return []
        shown = _INCIDENTS if self.live else (*_INCIDENTS, e.Assessed)
        return lines(event, view, brief=True) if isinstance(event, shown) else []

    @property
    def title(self) -> str:
        """The line above the rows."""
        return "Aeon" if self._forgets else f"Aeon  {count_noun(len(self.rows), self._noun)}"

    @property
    def below(self) -> tuple[str, ...]:
        """The lines below the rows: warnings, and last the summary of all."""
        return *self._stopping().splitlines(), self._describe(list(self.rows.values()))


def count_states(rows: Sequence[RowState]) -> str:
    """Count the rows in each state, running ones first."""
    states = [row.state for row in rows]
    order = (*RANKS, *sorted(set(states) - set(RANKS)))
    return ", ".join(f"{states.count(state)} {state}" for state in order if state in states)
