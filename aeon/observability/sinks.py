"""The only registry of receivers of a run's events: the journals, traces and your own sinks. None
of them ends or delays a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, Protocol, runtime_checkable

from aeon.domain.errors import ConfigError
from aeon.domain.events import Recorded, Subscriber
from aeon.domain.request import LLMAdapter
from aeon.files.reference import call_factory, load_object
from aeon.llm.protocols import close
from aeon.llm.settings import ProviderSettings
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.settings import ObservabilitySettings, SinkSettings

GROUP = "aeon.sinks"
"""The entry points by which a package registers sinks."""
Warn = Callable[[str], None]


class Opening(NamedTuple):
    """The arguments for opening a sink: the settings, the run's directory if it has one, and the
    function that reports problems."""

    settings: ObservabilitySettings
    directory: Path | None
    warn: Warn


Open = Callable[[Opening], AbstractContextManager[tuple[Subscriber, ...]]]


@runtime_checkable
class CallTracer(Protocol):
    """A sink that also follows each call to the model, from start to end, in the calling thread."""

    def trace_calls(self, llm: LLMAdapter, provider: ProviderSettings) -> LLMAdapter:
        """Return the adapter with its calls followed. It must answer and raise as `llm` does,
        whatever happens to the sink."""


class QueuedObserver:
    """A subscriber that is called in its own thread, through a queue of at most `maxsize` events,
    and never raises. `dropped` counts the events that found the queue full, `failed` the calls that
    raised; `error` is the first of their errors."""

    def __init__(self, subscriber: Subscriber, maxsize: int = 10_000) -> None:
        self.dropped = self.failed = 0
        self.error: BaseException | None = None
        self._subscriber = subscriber
        self._maxsize = maxsize
        # Putting into it never waits: the run is not held up by its observer.
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
        """Give the observer `timeout` seconds for the waiting events; the rest count as dropped."""
        self._waiting.put(None)
        self._thread.join(timeout)
        self.dropped += max(0, self._waiting.qsize() - 1)  # but for the mark of the end

    def _serve(self) -> None:
        while (recorded := self._waiting.get()) is not None:
            try:
                self._subscriber(recorded)
            # Whatever a person's own observer raises, the run goes on.
            except (Exception, SystemExit) as error:
                self.error = self.error or error
                self.failed += 1


@contextmanager
def open_sinks(
    settings: ObservabilitySettings, directory: Path | None, warn: Warn
) -> Iterator[tuple[Subscriber, ...]]:
    """Open the sinks that the settings name until the block ends; journals only if there is a
    directory. No sink fails or delays the run: problems are passed to `warn`. Raises ConfigError
    and ArtefactError for a sink that cannot be opened."""
    with ExitStack() as opened:
        sinks: list[Subscriber] = []
        for name, open_sink in SINKS.items():
            if getattr(settings, name):
                sinks += opened.enter_context(open_sink(Opening(settings, directory, warn)))
        yield tuple(sinks)


@contextmanager
def _open_journal(
    name: str, open_file: Callable[[Path, Opening], EventLog | CycleLog], opening: Opening
) -> Iterator[tuple[Subscriber, ...]]:
    if opening.directory is None:
        yield ()
        return
    with closing(open_file(opening.directory / f"{name}.jsonl", opening)) as journal:
        yield (journal,)


def _open_events(path: Path, opening: Opening) -> EventLog:
    return EventLog(path, opening.warn)


def _open_cycles(path: Path, opening: Opening) -> CycleLog:
    return CycleLog(path, opening.warn, opening.settings.plan_state)


@contextmanager
def _open_otel(opening: Opening) -> Iterator[tuple[Subscriber, ...]]:
    try:
        from aeon.observability.otel import open_tracing
    except ImportError as error:
        hint = "pip install 'aeon-engine[otel]'"
        raise ConfigError(
            f"observability.otel=true needs the extra `otel`: {error}", hint=hint
        ) from error
    with open_tracing(opening.warn) as tracing:
        yield tracing


@contextmanager
def _open_own(opening: Opening) -> Iterator[tuple[Subscriber, ...]]:
    with ExitStack() as opened:
        own = opening.settings.sinks.items()
        yield tuple(
            opened.enter_context(_open_own_sink(f"observability.sinks.{name}", sink, opening.warn))
            for name, sink in own
        )


@contextmanager
def _open_own_sink(key: str, settings: SinkSettings, warn: Warn) -> Iterator[QueuedObserver]:
    named = f"{key}={settings.sink}"
    factory = load_object(key, settings.sink, "object", GROUP)
    sink = call_factory(named, factory, options=settings.options)
    if not callable(sink):
        made = f"it returned a {type(sink).__name__}, which cannot be called with an event"
        raise ConfigError(f"{named}: {made}")
    queue = QueuedObserver(sink)
    try:
        yield queue
    finally:
        queue.close()
        try:
            close(sink)
        except (Exception, SystemExit) as error:
            warn(f"{key}: cannot be closed: {type(error).__name__}: {error}")
        if queue.failed or queue.dropped:
            why = queue.error
            first = f"; the first error: {type(why).__name__}: {why}" if why else ""
            warn(f"{key}: {queue.failed} events failed, {queue.dropped} were dropped{first}")


SINKS: Mapping[str, Open] = {
    "events": partial(_open_journal, "events", _open_events),
    "cycles": partial(_open_journal, "cycles", _open_cycles),
    "otel": _open_otel,
    "sinks": _open_own,
}
"""Every kind of sink, by the field of `ObservabilitySettings` that enables it. Events reach them in
this order."""
