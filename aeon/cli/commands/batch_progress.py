"""A batch at the terminal: its forecast, the question about its cost, its progress, and its
summary."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from math import inf
from pathlib import Path

from aeon.app.attendance import Attendance
from aeon.batch.batch import Batch
from aeon.batch.dataset import Row
from aeon.batch.endpoints import SharedEndpoints
from aeon.batch.forecast import FIRST_ROWS, Forecast, project
from aeon.batch.results import ReaderGone
from aeon.batch.runner import GroupControl
from aeon.batch.summary import REPEATED_ENDS, Line, Summary, write_page
from aeon.batch.summary import WAITING as ROW_WAITS
from aeon.cli.job.group_attendance import GroupAttendance
from aeon.cli.progress.plain import Display
from aeon.cli.terminal.questions import at_terminal, confirm
from aeon.cli.terminal.status import FAILED, NOT_CONVERGED, WAITING, status_of_all
from aeon.cli.terminal.streams import say, warn
from aeon.config.settings import Settings
from aeon.domain.errors import ArtefactError, ConfigError, StopRequested, StoreFailed
from aeon.domain.history import GOOD_ENDS
from aeon.kernel.control import RunControl
from aeon.report.words import (
    answer_command,
    command_of,
    count_noun,
    format_clock,
    one_line,
    relative_to_here,
)

_SECONDS_BETWEEN = 10.0
_MOST_PROBLEMS = 20
_MOST_FOLLOWED = 50


def run_attended(
    running: Batch,
    settings: Settings,
    forecast: Forecast,
    endpoints: SharedEndpoints,
    show_end: Callable[[Summary, Path | None], None] | None = None,
) -> int:
    """Run a batch to its end, with or without a person at the terminal, and return the exit status.

    `endpoints` count the calls made. However the batch ends, `show_end` gets its summary.
    Raises ConfigError when it would cost more than may be spent without asking, and nobody can be
    asked.
    """
    summary = running.results.summary
    control = running.control
    out = running.results.path
    show_end = show_end or show_rows
    if summary.count:
        say(f"{count_noun(summary.count, forecast.noun)} done before.")
    if forecast.rows:
        say(forecast.words)
    shown = _Progress(running, settings, forecast, endpoints)
    running.attend = shown.attend_row
    try:
        with shown.group.attend(lambda: "Ended at once.") as shown.display:
            _run(running, forecast, shown)
    except ReaderGone:
        return FAILED
    except (ArtefactError, StoreFailed) as error:
        # Mostly a full disk: the hint of a single run would name its folder.
        error.hint = error.hint if out is None else "Free space; then repeat the command to resume."
        show_end(summary, out)
        raise
    except BaseException:
        show_end(summary, out)
        raise
    show_end(summary, out)
    _say_how_to_go_on(summary, control, out)
    return _status(summary, control)


def _say_what_waits(summary: Summary, out: Path) -> None:
    say(f"{count_noun(summary.ends[ROW_WAITS], 'row')} waiting for a person. To answer:")
    for folder in summary.waiting:
        say(f"  {answer_command(Path(folder).absolute())}")
    if summary.ends[ROW_WAITS] > len(summary.waiting):
        running = out.with_name(f"{out.name}.running").absolute()
        say(f"All of them: {command_of(('runs', str(relative_to_here(running))))}")
    say("Then repeat the command to resume.")


def _say_how_to_go_on(summary: Summary, control: GroupControl, out: Path | None) -> None:
    if summary.waiting and out is not None:
        _say_what_waits(summary, out)
    if control.stop_requested:
        _say_why_it_stopped(control.reason, out)


def _say_why_it_stopped(reason: str, out: Path | None) -> None:
    way = "Repeat the command to resume where this one stopped."
    if out is None:
        way = "Rows under way are lost: a batch to standard output cannot be resumed."
    say(f"Stopped: {reason}. {way}" if reason else way)


def _status(summary: Summary, control: GroupControl) -> int:
    statuses = {FAILED} if summary.failed else set()
    if summary.ends[ROW_WAITS]:
        statuses.add(WAITING)
    if summary.ends.keys() - set(GOOD_ENDS):
        statuses.add(NOT_CONVERGED)
    return status_of_all(control, statuses)


def _run(running: Batch, forecast: Forecast, shown: _Progress) -> None:
    most = running.settings.confirm_above_cost
    if most is None or not forecast.rows or _is_confirmed(most, running, forecast, shown):
        shown.take(running.lines())


def _is_confirmed(most: float, running: Batch, forecast: Forecast, shown: _Progress) -> bool:
    """Check whether the batch may cost its forecast: before its first row, and again after its
    first rows."""
    summary = running.results.summary
    control = running.control
    if not _is_affordable(most, forecast.least_cost, "at least", control, shown.display):
        return False
    while _needs_first_rows(most, summary) and shown.left and not control.stop_requested:
        shown.take(running.lines(FIRST_ROWS - summary.ran))
    if control.stop_requested or not shown.left:
        return True
    cost = None
    if summary.cost is not None:
        cost = summary.cost / max(summary.ran, 1) * forecast.rows
    if cost is None and forecast.least_cost is None:
        return True  # the person was asked before the first row
    return _is_affordable(most, cost, "by its first rows about", control, shown.display)


def _needs_first_rows(most: float, summary: Summary) -> bool:
    # Rows of earlier starts count, too.
    return summary.ran < FIRST_ROWS and (summary.cost or 0) <= most


def _is_affordable(
    most: float, cost: float | None, about: str, control: RunControl, display: Display
) -> bool:
    """Check whether the forecast cost is allowed, or a person allows it; else stop the batch."""
    if cost is not None and cost <= most:
        return True
    if cost is None:
        problem = (
            "without prices the cost of the batch is unknown; "
            "provider.prices={MODEL: {input: 0.25, output: 2}} gives one"
        )
    else:
        limit = f"batch.confirm_above_cost={most:g}"
        problem = f"the batch will cost {about} {cost:.4f}: more than {limit}"
    if not at_terminal():
        hint = (
            "Run it at a terminal to be asked, or raise batch.confirm_above_cost; null never asks."
        )
        raise ConfigError(problem, hint=hint)
    with suppress(StopRequested), display.pause():
        if confirm(f"{problem[0].upper()}{problem[1:]}. Go on?", lambda: control.stop_requested):
            return True
    control.request_stop()
    return False


def show_rows(summary: Summary, out: Path | None) -> None:
    """Print the summary of a batch, and write its page."""
    say(str(summary))
    if out is not None and summary.count:
        try:
            say(f"Page: {relative_to_here(write_page(summary, out))}")
        except ArtefactError as error:  # the results, which count, are written
            warn(error.message)


class _Progress:
    """The progress of a batch: on a terminal a picture of the rows under way, else a line every 10
    seconds."""

    display: Display

    def __init__(
        self, running: Batch, settings: Settings, forecast: Forecast, endpoints: SharedEndpoints
    ) -> None:
        summary = running.results.summary
        self._running = running
        self._settings = settings
        self._meter = endpoints.meter
        self._problems = 0
        self._ran = 0
        self._total = summary.count + forecast.rows + forecast.invalid
        self._valid = forecast.rows
        self._noun = forecast.noun
        self._began = time.monotonic()
        self._shown = -inf
        self._enough = summary.ran + FIRST_ROWS if forecast.is_even else inf
        self.group = GroupAttendance(
            forecast.noun, settings, running.control, lambda _: self._words(), forgets=True
        )

    @contextmanager
    def attend_row(self, row: Row) -> Iterator[Attendance]:
        """Yield the attendance of one row, which is shown if there is room for it on the screen."""
        view = self.group.view
        is_seen = view.live and len(view.rows) < _MOST_FOLLOWED
        words = one_line(row.id, 80) if is_seen else None
        try:
            yield self.group.attend_row(row.number, self._settings, words)
        finally:
            if is_seen:
                view.end(row.number, "ended")

    @property
    def left(self) -> int:
        """The number of rows that have not ended."""
        return self._total - self._running.results.summary.count

    def take(self, lines: Iterable[Line]) -> None:
        """Show rows as they end, and how far the batch is while none does."""
        self._show()
        ran = self._ran
        summary = self._running.results.summary
        with self._show_regularly():
            for line in lines:
                if line.get("error"):
                    self._tell_problem(line)
                self._ran += line["ended"] != "invalid"
                if summary.ran == self._enough and line["ended"] not in REPEATED_ENDS and self.left:
                    self.group.view.say(
                        project(
                            summary,
                            min(self.left, self._valid - self._ran),
                            (time.monotonic() - self._began) / self._ran,
                            self._noun,
                        )
                    )
                self._show()
        if self._ran > ran and not self.left:
            self._print()

    @contextmanager
    def _show_regularly(self) -> Iterator[None]:
        """Show the progress every 10 seconds while the block lasts: a row may take minutes."""
        over = threading.Event()

        def show() -> None:
            while not over.wait(_SECONDS_BETWEEN):
                self._show()

        ticker = threading.Thread(target=show, name="aeon-batch-progress", daemon=True)
        ticker.start()
        try:
            yield
        finally:
            over.set()
            ticker.join()

    def _show(self) -> None:
        now = time.monotonic()
        if self.left and (self.display.live or now - self._shown >= _SECONDS_BETWEEN):
            self._print()
            self._shown = now

    def _print(self) -> None:
        self.display.print([] if self.display.live else [self._words()])

    def _words(self) -> str:
        summary = self._running.results.summary
        seconds = max(time.monotonic() - self._began, 1e-9)
        text = f"{summary.count:,}/{self._total:,} {self._noun}s"
        left = self.left
        ran = self._ran
        settings = self._running.settings
        # On a cluster only the nodes know.
        if settings.backend == "local":
            calls = count_noun(self._meter.spent.calls, "call")
            under_way = f", {min(settings.parallel, left)} under way" if left else ""
            text += f"{under_way}, {calls}"
        if ran:
            cost = "" if summary.cost is None else f", cost {summary.cost:.4f}"
            clock = format_clock(timedelta(seconds=seconds / ran * left))
            rest = f", {clock} left" if left else ""
            text += (
                f", {summary.failed} failed, {ran / seconds * 60:,.0f} {self._noun}s a minute"
                f"{cost}{rest}"
            )
        return text

    def _tell_problem(self, line: Line) -> None:
        self._problems += 1
        if self._problems <= _MOST_PROBLEMS:
            problem = f"{line['ended']}: {line['error']['message']}"
            self.group.view.say(
                one_line(f"{self._noun} {line['row']} ({line['id']}), {problem}", 400)
            )
        elif self._problems == _MOST_PROBLEMS + 1:
            self.group.view.say(f"More {self._noun}s failed; the results say why.")
