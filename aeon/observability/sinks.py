"""What receives a run's events: journals and sinks of one's own, wrapped so that a slow or failing one ends no run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.domain.events import Recorded, Subscriber
from aeon.files.reference import load_object
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.llm.protocols import close
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.settings import ObservabilitySettings, SinkSettings

JOURNALS: dict[str, type[EventLog | CycleLog]] = {"events": EventLog, "cycles": CycleLog}
"""The journals of a run: `observability.NAME` says whether `NAME.jsonl` is written."""


class QueuedObserver:
    """A subscriber that is called in a thread of its own, through a queue of at most `maxsize` events, and never
    raises. `dropped` counts the events that found the queue full, `failed` the calls that raised `error` or another."""

    def __init__(self, subscriber: Subscriber, maxsize: int = 10_000) -> None:
        self.dropped = self.failed = 0
        self.error: Exception | None = None
        self._subscriber, self._maxsize = subscriber, maxsize
        self._waiting: SimpleQueue[Recorded | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="aeon-observer", daemon=True)
        self._thread.start()

    def __call__(self, recorded: Recorded) -> None:
        """Queue an event, or count it as dropped."""
        if self._waiting.qsize() >= self._maxsize:
            self.dropped += 1
        else:
            self._waiting.put(recorded)

    def close(self, timeout: float = 2.0) -> None:
        """Give the observer `timeout` seconds for the events that wait; those that are left count as dropped."""
        self._waiting.put(None)
        self._thread.join(timeout)
        self.dropped += max(0, self._waiting.qsize() - 1)

    def _serve(self) -> None:
        while (recorded := self._waiting.get()) is not None:
            try:
                self._subscriber(recorded)
            except Exception as error:
                self.error = self.error or error
                self.failed += 1


@contextmanager
def open_sinks(
    settings: ObservabilitySettings, directory: Path | None, warn: Callable[[str], None]
) -> Iterator[tuple[Subscriber, ...]]:
    """The sinks that the settings name, open until the block ends; journals only where there is a directory. No sink
    fails or delays the run: problems are passed to `warn`. Raises ConfigError and ArtefactError for one that cannot be
    opened."""
    with ExitStack() as opened:
        sinks: list[Subscriber] = []
        for name, journal in JOURNALS.items():
            if directory is not None and getattr(settings, name):
                written = journal(directory / f"{name}.jsonl", warn)
                opened.callback(written.close)
                sinks.append(written)
        for name, sink in settings.sinks.items():
            sinks.append(opened.enter_context(_open_sink(f"observability.sinks.{name}", sink, warn)))
        yield tuple(sinks)


@contextmanager
def _open_sink(key: str, settings: SinkSettings, warn: Callable[[str], None]) -> Iterator[QueuedObserver]:
    """A person's own sink behind a queue; closed, if it has a `close`, when all events were passed to it."""
    make: Any = load_object(key, settings.sink, "object")
    try:
        with redirect_prints_to_stderr():
            sink = make(**settings.options)
        if not callable(sink):
            raise TypeError(f"made a {type(sink).__name__}, which cannot be called with an event")
    except Exception as error:  # a sink of any make may fail in any way
        raise ConfigError(f"{key}={settings.sink}: cannot be made: {type(error).__name__}: {error}") from error
    queue = QueuedObserver(sink)
    try:
        yield queue
    finally:
        queue.close()
        try:
            close(sink)
        except Exception as error:
            warn(f"{key}: cannot be closed: {type(error).__name__}: {error}")
        if queue.failed or queue.dropped:
            first = f"; the first error: {type(queue.error).__name__}: {queue.error}" if queue.error else ""
            warn(f"{key}: {queue.failed} events failed, {queue.dropped} were dropped{first}")
