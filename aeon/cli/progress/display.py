"""Progress on standard error: plain lines, a banner alone, or a picture below the lines."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TextIO

from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import banner, lines, stopping
from aeon.cli.terminal.status import echo_off
from aeon.cli.terminal.streams import DUMB
from aeon.domain.events import PhaseFinished, PhaseStarted, Recorded, RunStarted

if TYPE_CHECKING:
    from rich.console import RenderableType


@contextmanager
def progress_for(
    kind: str, stream: TextIO, environ: Mapping[str, str], view: RunView | None = None
) -> Iterator[Display]:
    """Show a run on `stream` while the block lasts; gives the subscriber of its events. `kind` is that of `progress`; a
    picture is drawn on a terminal alone, without colour under NO_COLOR. Every kind, `none` too, begins with the banner
    of a run that calls no model."""
    view, live = view or RunView(), False
    with suppress(ValueError):  # of a closed stream
        live = kind in ("auto", "live") and stream.isatty() and environ.get("TERM", "").lower() not in DUMB
    colour = not environ.get("NO_COLOR")
    with closing(
        Screen(stream, view, colour=colour) if live else Display(stream, view, quiet=kind == "none")
    ) as display:
        yield display


class Display:
    """A subscriber that writes a line for each thing worth knowing, without control codes; the banner alone when
    `quiet`. `live` tells whether a picture is drawn instead."""

    live = False

    def __init__(self, stream: TextIO, view: RunView, *, quiet: bool = False) -> None:
        self._stream, self._view, self._quiet = stream, view, quiet
        self._viewing, self._writing = threading.Lock(), threading.Lock()
        self._held: list[str] = []

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        event = recorded.event
        with self._viewing:
            self._view(recorded)
            new = [] if self._quiet else lines(event, self._view)
        if isinstance(event, RunStarted):
            new = [*banner(event.synthetic, self._view.recording), *new]
        # The line that a phase has begun waits: one that is skipped is not shown to have begun.
        if not (isinstance(event, PhaseFinished) and event.outcome == "skipped"):
            new = [*self._held, *new]
        self._held, new = (new[-1:], new[:-1]) if isinstance(event, PhaseStarted) else ([], new)
        with self._writing:
            self._print("".join(f"{line}\n" for line in new))

    def _print(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Write nothing while the block lasts, so that a person can be asked something."""
        with self._writing:
            yield

    def stopping(self) -> str:
        """The message for a person who asked the run to stop; empty where the display shows it."""
        self._view.stopped = self._view.stopped or datetime.now(UTC)
        return "" if self.live else "\n".join(stopping(self._view, self._view.grace_seconds))

    def close(self) -> None:
        """Show what remains to be shown of a run that is over."""


class Screen(Display):
    """Draws the run several times a second below its lines, from the first event on until it is over."""

    live = True

    def __init__(self, stream: TextIO, view: RunView, *, colour: bool) -> None:
        from rich.console import Console  # slow to load

        super().__init__(stream, view)
        self._console = Console(file=stream, force_terminal=True, no_color=not colour, highlight=False)
        self._drawing = ExitStack()
        self._drawn = False

    def _print(self, text: str) -> None:
        if not self._drawn:
            self._start()
        if text:
            self._console.print(text, end="", markup=False, emoji=False)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the terminal to somebody else, one at a time, while the block lasts."""
        with self._writing:
            self.close()
            try:
                yield
            finally:
                self._start()

    def close(self) -> None:
        """Remove the picture; the lines stay."""
        with suppress(OSError, ValueError):
            self._drawing.close()
        self._drawn = False

    def _start(self) -> None:
        from rich.live import Live

        live = Live(
            get_renderable=self._draw,
            console=self._console,
            transient=True,
            refresh_per_second=8,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._drawn = True
        self._drawing.enter_context(echo_off(self._stream))
        self._drawing.enter_context(live)

    def _draw(self) -> RenderableType:
        from aeon.cli.progress.picture import picture

        with self._viewing:
            return picture(self._view, datetime.now(UTC), self._console.width, self._console.height)
