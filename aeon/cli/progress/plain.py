"""Progress in plain lines: one for each notable event, or only the banner of a run that calls no
model."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TextIO

from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import banner, describe_stop, lines
from aeon.domain.events import (
    CycleFinished,
    CycleStarted,
    PhaseFinished,
    PhaseStarted,
    Recorded,
    RunStarted,
    StepFinished,
    StepStarted,
)
from aeon.llm.watching import Piece, Waiting


class Display:
    """A subscriber that writes a line for each notable event, without control codes. `live` tells
    whether a picture is drawn instead."""

    live = False

    def __init__(self, stream: TextIO, view: RunView) -> None:
        self._stream = stream
        self._view = view
        self._viewing = threading.Lock()
        self._writing = threading.Lock()
        self._held: list[str] = []

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        event = recorded.event
        with self._viewing:
            self._view(recorded)
            new = lines(event, self._view, brief=self.live)
        if isinstance(event, RunStarted):
            new = [*banner(event.synthetic, self._view.recording), *new]
        # The line for a phase's start is held back: a skipped phase shows no start.
        if not (isinstance(event, PhaseFinished) and event.outcome == "skipped"):
            new = [*self._held, *new]
        self._held, new = (new[-1:], new[:-1]) if isinstance(event, PhaseStarted) else ([], new)
        self.print(new)

    def watch(self, seen: Waiting | Piece) -> None:
        """Show what has been observed of a call under way."""
        with self._viewing:
            self._view.watch(seen, datetime.now(UTC))

    def print(self, new: list[str]) -> None:
        """Write lines."""
        with self._writing:
            self._stream.write("".join(f"{line}\n" for line in new))
            self._stream.flush()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Write nothing while the block lasts, so that a person can be asked."""
        with self._writing:
            yield

    def describe_stop(self) -> str:
        """Return the message for a person who stopped the run; empty where the display shows it."""
        self._view.stopped = self._view.stopped or datetime.now(UTC)
        return "" if self.live else "\n".join(describe_stop(self._view, self._view.grace_seconds))

    def close(self) -> None:
        """Show the rest of a run that is over."""


class Silence(Display):
    """A subscriber that writes the banner and the message for a person who stops the run, and
    nothing else.

    It takes no time and never raises, so it needs no thread of its own: its view gets only the
    events of the work under way.
    """

    def __call__(self, recorded: Recorded) -> None:
        """Process one event."""
        match recorded.event:
            case RunStarted(synthetic=synthetic):
                with suppress(OSError, ValueError):
                    self.print(banner(synthetic, self._view.recording))
            case CycleStarted() | CycleFinished() | StepStarted() | StepFinished():
                self._view(recorded)
