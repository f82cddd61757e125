"""The displays of a run: their base, which shows a banner alone, and plain lines. None can fail or delay a run."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TextIO

from aeon.cli.progress.lines import lines
from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import banner, stopping
from aeon.cli.terminal.glyphs import is_utf, to_ascii
from aeon.domain.events import PhaseFinished, PhaseStarted, Recorded, RunStarted
from aeon.observability.observers import QueuedObserver


class Forgiving:
    """A text stream that drops what it cannot write, and writes ASCII for characters that it cannot encode."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._muted = False

    @property
    def encoding(self) -> str:
        """The stream's encoding, ASCII when it does not say."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Write what can be written."""
        if not self._muted:
            if not is_utf(self.encoding):
                text = to_ascii(text).encode(self.encoding, "replace").decode(self.encoding)
            with suppress(OSError, ValueError):
                self._stream.write(text)
        return len(text)

    def mute(self) -> None:
        """Write nothing any more."""
        self._muted = True

    def flush(self) -> None:
        """Flush, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is an open terminal."""
        with suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """The stream's descriptor; raises OSError when it has none."""
        return self._stream.fileno()


class Display:
    """A subscriber that shows a run; exceptions in it are suppressed. This one shows the banner alone.

    `live` tells whether a picture is drawn.
    """

    live = False

    def __init__(self, stream: Forgiving, view: RunView) -> None:
        self._stream, self._view = stream, view

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        with suppress(Exception):
            self._show(recorded)

    def _show(self, recorded: Recorded) -> None:
        self._view(recorded)
        if isinstance(recorded.event, RunStarted):
            self._print(banner(recorded.event.synthetic, self._view.recording))

    def _print(self, texts: list[str]) -> None:
        if texts:
            self._stream.write("\n".join(texts) + "\n")
            self._stream.flush()

    def pause(self) -> AbstractContextManager[object]:
        """Write nothing while the block lasts, so that a person can be asked something."""
        return nullcontext()

    def stopping(self) -> str:
        """The message for a person who asked the run to stop; empty where the display shows it."""
        return "\n".join(stopping(self._view, self._view.conditions.grace_seconds))

    def mute(self) -> None:
        """Write nothing any more."""
        self._stream.mute()

    def close(self) -> None:
        """Show what remains to be shown of a run that is over."""


class Lines(Display):
    """A line for each thing worth knowing, without control codes, written by a thread of its own."""

    def __init__(self, stream: Forgiving, view: RunView) -> None:
        super().__init__(stream, view)
        self._writing = threading.Lock()
        self._held: list[str] = []
        self._queue = QueuedObserver(self._show)

    def __call__(self, recorded: Recorded) -> None:
        """Show one event, soon."""
        self._queue(recorded)

    def _show(self, recorded: Recorded) -> None:
        self._view(recorded)
        event = recorded.event
        new = lines(event, self._view)
        if isinstance(event, RunStarted):
            new = [*banner(event.synthetic, self._view.recording), *new]
        # The line that a phase has begun waits: one that is skipped is not shown to have begun.
        if not (isinstance(event, PhaseFinished) and event.outcome == "skipped"):
            new = [*self._held, *new]
        self._held, new = (new[-1:], new[:-1]) if isinstance(event, PhaseStarted) else ([], new)
        with self._writing:
            self._print(new)

    def pause(self) -> AbstractContextManager[object]:
        """Write nothing while the block lasts."""
        return self._writing

    def close(self) -> None:
        """Write the lines that wait."""
        self._queue.close()
        with self._writing:
            self._print(self._held)
