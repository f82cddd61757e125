"""Live progress on standard error: a picture on a terminal, plain lines elsewhere. Nothing in it can fail a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from aeon.cli.progress_lines import banner, lines, summary
from aeon.cli.progress_live import ending, glyphs, is_utf, picture
from aeon.cli.progress_view import RunView
from aeon.events import Recorded, RunFinished, RunStarted, Subscriber
from aeon.observability.observers import detached
from aeon.store.cassette import Provenance

_DUMB = ("", "dumb", "unknown")


@contextmanager
def progress_for(
    kind: str, stream: TextIO, environ: Mapping[str, str], recording: Provenance | None = None
) -> Iterator[Progress]:
    """Show a run on `stream` while the block lasts; gives the subscriber to hand its events to.

    `kind` is that of `progress`: `auto` is a live picture on a terminal and plain lines elsewhere or with NO_COLOR;
    `live` a picture on any terminal, without colour under NO_COLOR; `plain` lines; `none` nothing but the banner of a
    run that calls no model, which every kind begins with. `recording` is what a replay replays. A stream that cannot
    be written to, or is slow, fails and delays nothing.
    """
    safe = Forgiving(stream)
    if kind == "none":
        yield Progress(_Banner(safe, recording))
    elif _is_live(kind, safe, environ):
        with closing(_Live(safe, environ, recording)) as live:
            yield Progress(live, live.pause)
    else:
        lines_of = _Plain(safe, recording)
        with detached(lines_of) as plain:
            yield Progress(plain, lines_of.pause)


def _is_live(kind: str, stream: Forgiving, environ: Mapping[str, str]) -> bool:
    terminal = stream.isatty() and environ.get("TERM", "").lower() not in _DUMB
    return terminal and (kind == "live" or (kind == "auto" and not environ.get("NO_COLOR")))


class Forgiving:
    """A text stream that swallows what it cannot write, and writes `?` for a character that it cannot encode."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """The stream's encoding, ASCII when it does not say."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Write what can be written."""
        written = text
        if not is_utf(self.encoding):
            written = text.replace("…", "~").encode(self.encoding, "replace").decode(self.encoding)
        with suppress(OSError, ValueError):
            self._stream.write(written)
        return len(text)

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


class Progress:
    """The subscriber that shows a run. Its errors are nobody's."""

    def __init__(self, subscriber: Subscriber, pause: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        self._subscriber = subscriber
        self._pause = pause

    def __call__(self, recorded: Recorded) -> None:
        """Show one event."""
        with suppress(Exception):
            self._subscriber(recorded)

    def pause(self) -> AbstractContextManager[None]:
        """Leave the terminal alone while the block lasts, so that a person can be asked something."""
        return self._pause()


class _Banner:
    """Says that no model is called, and nothing else."""

    def __init__(self, stream: Forgiving, recording: Provenance | None) -> None:
        self._stream = stream
        self._recording = recording

    def __call__(self, recorded: Recorded) -> None:
        if isinstance(recorded.event, RunStarted):
            _print(self._stream, banner(recorded.event.synthetic, self._recording))


class _Plain:
    """A line for each thing worth knowing, without a control code."""

    def __init__(self, stream: Forgiving, recording: Provenance | None) -> None:
        self._stream = stream
        self._view = RunView(recording=recording)
        self._writing = threading.Lock()

    def pause(self) -> AbstractContextManager[Any]:
        return self._writing

    def __call__(self, recorded: Recorded) -> None:
        self._view(recorded)
        event = recorded.event
        head = banner(event.synthetic, self._view.recording) if isinstance(event, RunStarted) else []
        tail = summary(self._view) if isinstance(event, RunFinished) else []
        with self._writing:
            _print(self._stream, [*head, *lines(event, self._view), *tail])


class _Picture:
    """The view of a run, and its picture at any moment; events and drawing come from different threads."""

    def __init__(self, console: Console, recording: Provenance | None) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._view = RunView(recording=recording)
        self._signs = glyphs(console.encoding)

    def __call__(self, recorded: Recorded) -> None:
        with self._lock:
            self._view(recorded)

    def draw(self) -> RenderableType:
        """The picture now; nothing when it cannot be drawn, for the drawing thread has no one to tell."""
        try:
            with self._lock:
                return picture(self._view, datetime.now(UTC), self._console.width, self._console.height, self._signs)
        except Exception:
            return Text("")

    def last(self) -> RenderableType:
        """What stays."""
        with self._lock:
            return ending(self._view, self._console.width, self._signs)


class _Live:
    """A picture on a terminal from the first event on, and a summary in its place at the end."""

    def __init__(self, stream: Forgiving, environ: Mapping[str, str], recording: Provenance | None) -> None:
        file: Any = stream
        self._console = Console(file=file, force_terminal=True, no_color=bool(environ.get("NO_COLOR")), highlight=False)
        self._picture = _Picture(self._console, recording)
        self._begun = False
        self._live = Live(
            get_renderable=self._picture.draw,
            console=self._console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def __call__(self, recorded: Recorded) -> None:
        self._picture(recorded)
        if not self._begun:
            self._begun = True
            self._live.start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        with suppress(Exception):
            self._live.stop()
        try:
            yield
        finally:
            with suppress(Exception):
                if self._begun:
                    self._live.start()

    def close(self) -> None:
        with suppress(Exception):
            self._live.stop()
            if self._begun:
                self._console.print(self._picture.last())


def _print(stream: Forgiving, said: list[str]) -> None:
    if said:
        stream.write("\n".join(said) + "\n")
        stream.flush()
