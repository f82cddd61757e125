"""Live progress on standard error: a picture on a terminal, plain lines elsewhere. Nothing in it can fail a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from aeon.cli.progress_lines import banner, lines, summary
from aeon.cli.progress_live import closing, glyphs, picture
from aeon.cli.progress_view import RunView
from aeon.events import Recorded, RunFinished, RunStarted, Subscriber
from aeon.observability.observers import detached

_DUMB = ("", "dumb", "unknown")


@contextmanager
def progress_for(kind: str, stream: TextIO, environ: Mapping[str, str]) -> Iterator[Subscriber]:
    """Show a run on `stream` while the block lasts; gives the subscriber to hand its events to.

    `kind` is that of `progress`: `auto` is a live picture on a terminal and plain lines elsewhere or with NO_COLOR; `live`
    a picture on any terminal, without colour under NO_COLOR; `plain` lines; `none` nothing but the banner of a run that
    calls no model, which every kind begins with. A stream that cannot be written to, or is slow, fails and delays nothing.
    """
    safe = Forgiving(stream)
    if kind == "none":
        yield _quietly(_Banner(safe))
    elif _is_live(kind, safe, environ):
        with _live(safe, environ) as subscriber:
            yield subscriber
    else:
        with detached(_Plain(safe)) as subscriber:
            yield subscriber


def _is_live(kind: str, stream: Forgiving, environ: Mapping[str, str]) -> bool:
    terminal = stream.isatty() and environ.get("TERM", "").lower() not in _DUMB
    return terminal and (kind == "live" or (kind == "auto" and not environ.get("NO_COLOR")))


class Forgiving:
    """A text stream that swallows what it cannot write; characters it cannot encode become escapes."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @property
    def encoding(self) -> str:
        """The stream's encoding, ASCII when it does not say."""
        return getattr(self._stream, "encoding", None) or "ascii"

    def write(self, text: str) -> int:
        """Write what can be written."""
        with suppress(OSError, ValueError):
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                self._stream.write(text.encode(self.encoding, "backslashreplace").decode(self.encoding))
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


class _Banner:
    """Says that no model is called, and nothing else."""

    def __init__(self, stream: Forgiving) -> None:
        self._stream = stream

    def __call__(self, recorded: Recorded) -> None:
        if isinstance(recorded.event, RunStarted) and recorded.event.synthetic:
            _print(self._stream, banner())


class _Plain:
    """A line for each thing worth knowing, without a control code."""

    def __init__(self, stream: Forgiving) -> None:
        self._stream = stream
        self._view = RunView()

    def __call__(self, recorded: Recorded) -> None:
        self._view(recorded)
        event = recorded.event
        head = banner() if isinstance(event, RunStarted) and event.synthetic else []
        tail = summary(self._view) if isinstance(event, RunFinished) else []
        _print(self._stream, [*head, *lines(event, self._view), *tail])


class _Picture:
    """The view of a run, and its picture at any moment; events and drawing come from different threads."""

    def __init__(self, console: Console, now: Callable[[], datetime]) -> None:
        self._console = console
        self._now = now
        self._lock = threading.Lock()
        self._view = RunView()
        self._signs = glyphs(console.encoding)

    def __call__(self, recorded: Recorded) -> None:
        with self._lock:
            self._view(recorded)

    def draw(self) -> RenderableType:
        """The picture now; nothing when it cannot be drawn, for the drawing thread has no one to tell."""
        try:
            with self._lock:
                return picture(self._view, self._now(), self._console.width, self._console.height, self._signs)
        except Exception:
            return Text("")

    def last(self) -> RenderableType:
        """What stays."""
        with self._lock:
            return closing(self._view, self._console.width, self._signs)


@contextmanager
def _live(
    stream: Forgiving, environ: Mapping[str, str], now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> Iterator[Subscriber]:
    file: Any = stream
    console = Console(file=file, force_terminal=True, no_color=bool(environ.get("NO_COLOR")), highlight=False)
    drawn = _Picture(console, now)
    live = Live(
        get_renderable=drawn.draw, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    )
    begun = False

    def watch(recorded: Recorded) -> None:
        nonlocal begun
        drawn(recorded)
        if not begun:
            begun = True
            live.start()

    try:
        yield _quietly(watch)
    finally:
        with suppress(Exception):
            live.stop()
            if begun:
                console.print(drawn.last(), soft_wrap=True)


def _quietly(subscriber: Subscriber) -> Subscriber:
    """A subscriber whose errors are nobody's."""

    def quiet(recorded: Recorded) -> None:
        with suppress(Exception):
            subscriber(recorded)

    return quiet


def _print(stream: Forgiving, said: list[str]) -> None:
    if said:
        stream.write("\n".join(said) + "\n")
        stream.flush()
