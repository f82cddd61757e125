"""Progress in plain lines: one for each thing worth knowing, and the banner of a run that calls no model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TextIO

from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import banner, lines, stopping
from aeon.domain.events import PhaseFinished, PhaseStarted, Recorded, RunStarted
from aeon.llm.watching import Piece, Waiting


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
            new = [] if self._quiet else lines(event, self._view, brief=self.live)
        if isinstance(event, RunStarted):
            new = [*banner(event.synthetic, self._view.recording), *new]
        # The line that a phase has begun waits: one that is skipped is not shown to have begun.
        if not (isinstance(event, PhaseFinished) and event.outcome == "skipped"):
            new = [*self._held, *new]
        self._held, new = (new[-1:], new[:-1]) if isinstance(event, PhaseStarted) else ([], new)
        self.print(new)

    def watch(self, seen: Waiting | Piece) -> None:
        """Show what is seen of a call under way."""
        with self._viewing:
            self._view.watch(seen, datetime.now(UTC))

    def print(self, new: list[str]) -> None:
        """Write lines."""
        with self._writing:
            self._stream.write("".join(f"{line}\n" for line in new))
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
