"""A batch at the terminal: its forecast, a question about money, how far it is, and what it came to."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from aeon.batch.batch import Batch
from aeon.batch.forecast import FIRST_ROWS, Forecast, project
from aeon.batch.half_price import telling
from aeon.batch.summary import GOOD, Line, Summary, write_page
from aeon.cli.terminal.questions import at_terminal, confirm
from aeon.cli.terminal.status import DONE, FAILED, INTERRUPTED, NOT_CONVERGED, handle_interrupts
from aeon.cli.terminal.streams import say, stderr, warn
from aeon.domain.errors import ArtefactError, ConfigError, StopRequested
from aeon.kernel.control import RunControl
from aeon.report.words import count_noun, format_clock, one_line, relative_to_here

_EVERY_SECONDS = {True: 0.2, False: 10.0}
_MOST_PROBLEMS = 20
_STOPPING = "Stopping: each row under way ends after the calls that it has sent. Ctrl-C once more ends at once."


def attend(running: Batch, forecast: Forecast) -> int:
    """Run a batch to its end, with a person at the terminal or without. The exit status. Raises ConfigError when it
    would cost more than may be spent without a question, and nobody can be asked."""
    summary, control, out = running.results.summary, running.control, running.results.path
    if summary.count:
        say(f"{count_noun(summary.count, 'row')} done before.")
    if forecast.rows:
        say(forecast.words)
    shown = _Progress(summary, forecast.rows)
    with telling(shown.tell), handle_interrupts(control, lambda: _STOPPING, lambda: "Ended at once."):
        try:
            _run(running, forecast, shown)
        finally:
            shown.clear()
            show_end(summary, out)
    if control.stop_requested:
        on = "The same command goes on where this one stopped."
        say("Rows under way are lost: standard output cannot be gone on with." if out is None else on)
        return INTERRUPTED
    if summary.failed:
        return FAILED
    return NOT_CONVERGED if summary.ends.keys() - set(GOOD) else DONE


def _run(running: Batch, forecast: Forecast, shown: _Progress) -> None:
    most, summary = running.settings.confirm_above_cost, running.results.summary
    if most is not None and shown.left:
        if not _is_affordable(most, forecast.least_cost, "at least", running.control):
            return
        if summary.count < FIRST_ROWS:  # else those of earlier starts tell
            for line in running.lines(FIRST_ROWS):
                shown.take(line)
        if shown.left and not running.control.stop_requested:
            cost = None if summary.cost is None else summary.cost / summary.count * forecast.rows
            if not _is_affordable(most, cost, "by its first rows about", running.control):
                return
    for line in running.lines():
        shown.take(line)


def _is_affordable(most: float, cost: float | None, about: str, control: RunControl) -> bool:
    """Whether the batch may cost what is foreseen, or a person says that it may; else it is to stop."""
    if cost is not None and cost <= most:
        return True
    whole = "a sum that no price tells" if cost is None else f"{about} {cost:.4f}"
    if not at_terminal():
        hint = "Run it at a terminal to be asked, or raise batch.confirm_above_cost; null is no question."
        raise ConfigError(f"the batch will cost {whole}: more than batch.confirm_above_cost={most:g}", hint=hint)
    with suppress(StopRequested):
        if confirm(f"The batch will cost {whole}. Go on?", lambda: control.stop_requested):
            return True
    control.request_stop()
    return False


def show_end(summary: Summary, out: Path | None) -> None:
    """Say what a batch came to, and write its page."""
    say(str(summary))
    if out is not None and summary.count:
        try:
            say(f"Page: {relative_to_here(write_page(summary, out))}")
        except ArtefactError as error:  # the results are there: they are what counts
            warn(error.message)


class _Progress:
    """A line that tells how far a batch is: on a terminal drawn over itself, else a new one now and then."""

    def __init__(self, summary: Summary, total: int) -> None:
        self._summary, self._began, self.left, self._ended = summary, time.monotonic(), total, 0
        self._live, self._shown, self._problems = stderr().isatty(), self._began, 0

    def take(self, line: Line) -> None:
        """Show that a row has ended."""
        self._ended, self.left = self._ended + 1, self.left - 1
        if line.get("error"):
            self._tell_problem(line)
        now = time.monotonic()
        seconds = max(now - self._began, 1e-9)
        if self._ended == FIRST_ROWS and self.left:
            self.tell(project(self._summary, self.left, seconds))
        if now - self._shown < _EVERY_SECONDS[self._live] and self.left:
            return
        self._shown = now
        clock = format_clock(timedelta(seconds=seconds / self._ended * self.left))
        cost = "" if self._summary.cost is None else f", cost {self._summary.cost:.4f}"
        rate, count = f"{self._ended / seconds * 60:,.0f} a minute", self._summary.count
        self._draw(f"{count:,}/{count + self.left:,} rows, {self._summary.failed} failed, {rate}{cost}, {clock} left")

    def _draw(self, text: str) -> None:
        if self._live:
            stderr().write(f"\r\x1b[K{text}")
            stderr().flush()
        elif text:
            say(text)

    def _tell_problem(self, line: Line) -> None:
        self._problems += 1
        if self._problems <= _MOST_PROBLEMS:
            self.tell(one_line(f"row {line['row']} ({line['id']}), {line['ended']}: {line['error']['message']}", 400))
        elif self._problems == _MOST_PROBLEMS + 1:
            self.tell("More rows failed; the results say why.")

    def tell(self, text: str) -> None:
        """Show a line above that of the progress."""
        self.clear()
        say(text)

    def clear(self) -> None:
        """Make room for other lines."""
        self._draw("")
