"""Progress on standard error: a picture on a terminal, plain lines elsewhere. Nothing in it can fail a run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import Any, Protocol, TextIO

from aeon.cli.progress.lines import lines
from aeon.cli.progress.screen import Screen
from aeon.cli.progress.view import Conditions, RunView
from aeon.cli.progress.words import banner, stopping
from aeon.cli.terminal.glyphs import is_utf
from aeon.domain.events import PhaseFinished, PhaseStarted, Recorded, RunStarted, Subscriber
from aeon.observability.observers import detached
from aeon.store.cassette import Provenance

_DUMB = ("", "dumb", "unknown")


@contextmanager
def progress_for(
    kind: str,
    stream: TextIO,
    environ: Mapping[str, str],
    recording: Provenance | None = None,
    conditions: Conditions | None = None,
) -> Iterator[Progress]:
    """Show a run on `stream` while the block lasts; gives the subscriber to hand its events to.

    `kind` is that of `progress`: `auto` and `live` are a live picture on a terminal, without colour under NO_COLOR, and
    plain lines elsewhere; `plain` lines; `none` nothing but the banner of a run that calls no model, which every kind
    begins with. `recording` is what a replay replays, `conditions` what the run is shown against. A stream that cannot
    be written to, or is slow, fails and delays nothing.
    """
    safe, view = Forgiving(stream), RunView(conditions or Conditions(), recording=recording)
    if kind == "none":
        yield Progress(_Banner(safe, view))
    elif kind != "plain" and safe.isatty() and environ.get("TERM", "").lower() not in _DUMB:
        with closing(Screen(safe, environ, view)) as screen:
            yield Progress(screen)
    else:
        lines_of = _Plain(safe, view)
        with closing(lines_of), detached(lines_of) as plain:
            yield Progress(lines_of, plain)


class Forgiving:
    """A text stream that swallows what it cannot write, and writes `?` for a character that it cannot encode."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._muted = False

    @property
    def encoding(self) -> str:
        """The stream's encoding, ASCII when it does not say."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Write what can be written."""
        if self._muted:
            return len(text)
        written = text
        if not is_utf(self.encoding):
            written = text.replace("…", "~").encode(self.encoding, "replace").decode(self.encoding)
        with suppress(OSError, ValueError):
            self._stream.write(written)
        return len(text)

    def mute(self) -> None:
        """Write nothing any more."""
        self._muted = True

    def flush(self) -> None:
        """Flush, if that is possible."""
        with suppress(OSError, ValueError):
            self._stream.flush()

    def isatty(self) -> bool:
        """Whether a person looks at it; a closed stream has no one."""
        with suppress(OSError, ValueError):
            return self._stream.isatty()
        return False

    def fileno(self) -> int:
        """The stream's descriptor; raises OSError when it has none."""
        return self._stream.fileno()


class Display(Protocol):
    """What shows a run, in one of the ways that there are."""

    live: bool

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""

    def pause(self) -> AbstractContextManager[None]:
        """Write nothing while the block lasts."""

    def stopping(self) -> str:
        """What is to be said when the run was asked to stop; nothing where that is shown already."""

    def mute(self) -> None:
        """Write nothing any more."""


class Progress:
    """The subscriber that shows a run; exceptions in it are suppressed. `live` says that a picture is drawn."""

    def __init__(self, display: Display, subscriber: Subscriber | None = None) -> None:
        self._display = display
        self._subscriber = subscriber or display
        self.live = display.live
        self.stopping, self.mute = display.stopping, display.mute

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        with suppress(Exception):
            self._subscriber(recorded)

    def pause(self) -> AbstractContextManager[None]:
        """Leave the terminal alone while the block lasts, so that a person can be asked something."""
        return self._display.pause()


class _Banner:
    """Says that no model is called, and nothing else."""

    live = False

    def __init__(self, stream: Forgiving, view: RunView) -> None:
        self._stream, self._view = stream, view
        self.mute = stream.mute

    def __call__(self, recorded: Recorded) -> None:
        self._view(recorded)
        if isinstance(recorded.event, RunStarted):
            _print(self._stream, banner(recorded.event.synthetic, self._view.recording))

    def pause(self) -> AbstractContextManager[None]:
        return nullcontext()

    def stopping(self) -> str:
        return _stopping(self._view)


class _Plain:
    """A line for each thing worth knowing, without a control code."""

    live = False

    def __init__(self, stream: Forgiving, view: RunView) -> None:
        self._stream, self._view = stream, view
        self._writing = threading.Lock()
        self._held: list[str] = []
        self.mute = stream.mute

    def __call__(self, recorded: Recorded) -> None:
        self._view(recorded)
        event = recorded.event
        said = lines(event, self._view)
        if isinstance(event, RunStarted):
            said = [*banner(event.synthetic, self._view.recording), *said]
        # A phase that is skipped has not begun, as far as a person is concerned.
        if not (isinstance(event, PhaseFinished) and event.outcome == "skipped"):
            said = [*self._held, *said]
        self._held, said = (said[-1:], said[:-1]) if isinstance(event, PhaseStarted) else ([], said)
        with self._writing:
            _print(self._stream, said)

    def pause(self) -> AbstractContextManager[Any]:
        return self._writing

    def stopping(self) -> str:
        return _stopping(self._view)

    def close(self) -> None:
        with self._writing:
            _print(self._stream, self._held)


def _stopping(view: RunView) -> str:
    return "\n".join(stopping(view, view.conditions.grace_seconds))


def _print(stream: Forgiving, said: list[str]) -> None:
    if said:
        stream.write("\n".join(said) + "\n")
        stream.flush()
