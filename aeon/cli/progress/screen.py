"""A run's picture on a terminal: redrawn several times a second, and removed when the run is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import TextIO, cast

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from aeon.cli.progress.display import Display, Forgiving
from aeon.cli.progress.picture import picture, trace
from aeon.cli.progress.view import RunView
from aeon.cli.terminal.echo import echo_off
from aeon.domain.events import Recorded

_REFRESHES_PER_SECOND = 8


class Screen(Display):
    """Draws from the first event on; `close` leaves the outputs of the steps instead of the picture.

    Events and drawing come from different threads.
    """

    live = True

    def __init__(self, stream: Forgiving, environ: Mapping[str, str], view: RunView) -> None:
        super().__init__(stream, view)
        self._console = Console(
            file=cast(TextIO, stream), force_terminal=True, no_color=bool(environ.get("NO_COLOR")), highlight=False
        )
        self._viewing, self._asking = threading.Lock(), threading.Lock()
        self._begun, self._quiet = False, ExitStack()
        self._live = Live(
            get_renderable=self._draw,
            console=self._console,
            transient=True,
            refresh_per_second=_REFRESHES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _show(self, recorded: Recorded) -> None:
        with self._viewing:
            self._view(recorded)
        if not self._begun:
            self._begun = True
            self._start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Leave the terminal to somebody else, one at a time, while the block lasts."""
        with self._asking:
            self._stop()
            try:
                yield
            finally:
                if self._begun:
                    self._start()

    def stopping(self) -> str:
        """Empty while the picture shows it."""
        return "" if self._live.is_started else super().stopping()

    def close(self) -> None:
        """Print what stays instead of the picture."""
        self._stop()
        with suppress(Exception):
            if self._begun:
                self._console.print(trace(self._view, self._console.width))

    def _start(self) -> None:
        with suppress(Exception):
            self._quiet.enter_context(echo_off(self._stream))
            self._live.start()

    def _stop(self) -> None:
        with suppress(Exception):
            self._live.stop()
        with suppress(Exception):
            self._quiet.close()

    def _draw(self) -> RenderableType:
        """The picture now; empty when it cannot be drawn, since the drawing thread has nobody to report to."""
        try:
            with self._viewing:
                view, now = self._view, datetime.now(UTC)
                if view.stopped is None and view.conditions.stopping():
                    view.stopped = now
                return picture(view, now, self._console.width, self._console.height)
        except Exception:
            return Text("")
