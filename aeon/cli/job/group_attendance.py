"""The person at the terminal during the rows of a batch or the jobs of a sweep: one view and one
switch for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from aeon.app.attendance import Attendance
from aeon.batch.runner import GroupControl
from aeon.cli.job.attendance import attend, show_waits, view_of
from aeon.cli.progress.plain import Display
from aeon.cli.progress.rows import RowState, RowsView
from aeon.cli.progress.view import RunView
from aeon.cli.terminal.questions import at_terminal
from aeon.config.settings import Settings

if TYPE_CHECKING:
    from rich.text import Text


_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


class GroupAttendance:
    """The attendance of all rows that `control` stops; a row is called `noun`. `describe` returns
    the line below their picture. With `forgets` rows that are over are not shown: there may be any
    number."""

    _attendance: Attendance

    def __init__(
        self,
        noun: str,
        settings: Settings,
        control: GroupControl,
        describe: Callable[[Sequence[RowState]], str],
        *,
        forgets: bool = False,
    ) -> None:
        self._settings = settings
        self._control = control
        control.on_stop = lambda _: self.view.say(self._describe_stop())
        quiet = settings.progress.kind == "none"
        self.view = RowsView(noun, describe, self._describe_stop, quiet=quiet, forgets=forgets)
        self._warned = set[str]()
        self._lock = threading.Lock()
        self._asking = threading.Lock()

    @contextmanager
    def attend(self, ended_at_once: Callable[[], str]) -> Iterator[Display]:
        """Show the rows while the block lasts. A second Ctrl-C ends the program with
        `ended_at_once`."""
        attending = attend(
            RunView(draw=self._draw),
            self._settings.progress.kind,
            stopping=lambda display: "" if display.live else self._describe_stop(),
            ended_at_once=ended_at_once,
            control=self._control,
            # Each row has its own `interaction`; `attend_row` holds it to that.
            interaction="ask" if at_terminal() else "none",
        )
        with attending as (self._attendance, display), show_waits(display):
            self.view.display = display
            yield display
        self.view.display = None

    def attend_row(self, number: int, settings: Settings, words: str | None) -> Attendance:
        """Return the attendance of one row: shown if it has `words`, with questions if its settings
        allow them."""
        observers = [] if words is None else [self.view.begin(number, words, view_of(settings))]
        kind = settings.interaction.kind
        ask = self._attendance.ask if kind == "ask" else None
        approve = self._attendance.approve if kind != "defer" else None
        do_step = self._attendance.do_step if kind == "ask" else None
        return replace(
            self._attendance,
            observers=observers,
            ask=partial(self._put, number, ask) if ask else None,
            approve=partial(self._put, number, approve) if approve else None,
            do_step=partial(self._put, number, do_step) if do_step else None,
            warn=lambda text: self._warn(number, text),
        )

    def _put(
        self, number: int, to_person: Callable[[_Question], _Answer], question: _Question
    ) -> _Answer:
        """Ask the person one question at a time, below a line that names its row."""
        with self._asking:
            self.view.say("asks:", of=number)
            return to_person(question)

    def _draw(self, now: datetime, width: int, height: int) -> list[Text]:
        from aeon.cli.progress.rows_picture import draw_rows  # with rich, which is slow to load

        return draw_rows(self.view, now, width, height)

    def _warn(self, number: int, text: str) -> None:
        """Show a warning once: many rows may raise the same one."""
        with self._lock:
            is_known = text in self._warned
            self._warned.add(text)
        if not is_known:
            self.view.say(f"Warning: {text}", of=number)

    def _describe_stop(self) -> str:
        """Return the message shown once the group is stopping; empty before."""
        if not self._control.stop_requested:
            return ""
        if self._control.reason:
            return f"Stopping: {self._control.reason}. Nothing new is started."
        seconds = self._settings.execution.grace_seconds
        return (
            "Stopping: nothing new is started. "
            f"Work that is under way has {seconds:.0f} s to end.\n"
            "Ctrl-C again ends at once, without waiting."
        )
