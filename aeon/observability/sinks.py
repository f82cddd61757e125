"""The registry of sinks: everything that receives a run's events because the configuration says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.domain.events import Subscriber
from aeon.files.reference import load_object
from aeon.files.stdout import redirect_prints_to_stderr
from aeon.llm.protocols import close
from aeon.observability.cycle_log import CycleLog
from aeon.observability.event_log import EventLog
from aeon.observability.observers import BestEffortJournal, QueuedObserver
from aeon.observability.settings import ObservabilitySettings, SinkSettings

JOURNALS: dict[str, type[EventLog | CycleLog]] = {"events": EventLog, "cycles": CycleLog}
"""The journals of a run: `observability.NAME` says whether `NAME.jsonl` is written."""


@contextmanager
def open_sinks(
    settings: ObservabilitySettings, directory: Path | None, warn: Callable[[str], None]
) -> Iterator[tuple[Subscriber, ...]]:
    """The sinks that the settings name, open until the block ends; journals only where there is a directory.

    No sink fails or delays the run: problems are passed to `warn`. Raises ConfigError for a sink that cannot be made,
    ArtefactError for a journal that cannot be opened.
    """
    with ExitStack() as opened:
        sinks: list[Subscriber] = []
        for name, journal in JOURNALS.items():
            if directory is not None and getattr(settings, name):
                written = BestEffortJournal(journal(directory / f"{name}.jsonl"), warn)
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
    except Exception as error:  # a sink of any make may fail in any way
        raise ConfigError(f"{key}={settings.sink}: cannot be made: {type(error).__name__}: {error}") from error
    if not callable(sink):
        made = type(sink).__name__
        raise ConfigError(f"{key}={settings.sink}: made a {made}, which cannot be called with an event")
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
