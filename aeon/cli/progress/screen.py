"""A run's picture on a terminal: drawn again several times a second, and gone when the run is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Protocol

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from aeon.cli.progress.live import picture, trace
from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import stopping
from aeon.cli.terminal.echo import quiet
from aeon.cli.terminal.glyphs import glyphs
from aeon.domain.events import Recorded

_REFRESHES_PER_SECOND = 8


class Stream(Protocol):
    """A terminal to draw on."""

    def write(self, text: str) -> int:
        """Write what can be written."""

    def flush(self) -> None:
        """Flush, if that is possible."""

    def fileno(self) -> int:
        """The descriptor; raises OSError when there is none."""

    def mute(self) -> None:
        """Write nothing any more."""


class Screen:
    """Draws from the first event on; when it is closed, what the steps gave stays in the picture's place.

    Events and drawing come from different threads.
    """

    live = True

    def __init__(self, stream: Stream, environ: Mapping[str, str], view: RunView) -> None:
        file: Any = stream
        self._stream, self._view = stream, view
        self._console = Console(file=file, force_terminal=True, no_color=bool(environ.get("NO_COLOR")), highlight=False)
        self._signs = glyphs(self._console.encoding)
        self._viewing, self._asking = threading.Lock(), threading.Lock()
        self._begun, self._quiet = False, ExitStack()
        self.mute = stream.mute
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            transient=True,
            refresh_per_second=_REFRESHES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        with self._viewing:
            self._view(recorded)
        if not self._begun:
            self._begun = True
            self._start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Give the terminal to somebody else, one at a time, while the block lasts."""
        with self._asking:
            self._stop()
            try:
                yield
            finally:
                if self._begun:
                    self._start()

    def stopping(self) -> str:
        """What is to be said when the run was asked to stop: nothing while the picture shows it."""
        view = self._view
        return "" if self._live.is_started else "\n".join(stopping(view, view.conditions.grace_seconds))

    def close(self) -> None:
        """Put what stays in the place of the picture."""
        self._stop()
        with suppress(Exception):
            if self._begun:
                self._console.print(trace(self._view, self._console.width))

    def _start(self) -> None:
        with suppress(Exception):
            self._quiet.enter_context(quiet(self._stream))
            self._live.start()

    def _stop(self) -> None:
        with suppress(Exception):
            self._live.stop()
        with suppress(Exception):
            self._quiet.close()

    def _draw(self) -> RenderableType:
        """The picture now; nothing when it cannot be drawn, for the drawing thread has no one to tell."""
        try:
            with self._viewing:
                view, now = self._view, datetime.now(UTC)
                if view.stopped is None and view.conditions.stopping():
                    view.stopped = now
                return picture(view, now, self._console.width, self._console.height, self._signs)
        except Exception:
            return Text("")
