"""The person at the terminal during a run, a sweep or a batch: progress, questions, approvals and
Ctrl-C."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from logging import INFO, WARNING
from pathlib import Path
from typing import TypeVar

from aeon.app.attendance import Attendance
from aeon.cli.job.garbage import resume_at_first_answer
from aeon.cli.progress.display import progress_for
from aeon.cli.progress.plain import Display, Silence
from aeon.cli.progress.view import RunView
from aeon.cli.terminal import streams
from aeon.cli.terminal.questions import approve, ask, at_terminal, do_step
from aeon.cli.terminal.status import handle_interrupts
from aeon.config.settings import Settings
from aeon.domain.errors import StoreFailed
from aeon.domain.events import Recorded
from aeon.execution.settings import UNJUDGED_MODES
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.prices import price_book
from aeon.llm.watching import WAITS, Watcher
from aeon.observability.ledger import Ledger
from aeon.report.words import one_line
from aeon.store.cassette import CassetteSource, Provenance
from aeon.store.cassette_export import find_provenance
from aeon.store.opening import open_source
from aeon.store.settings import StoreSettings

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


@contextmanager
def attend(
    view: RunView,
    progress: str,
    *,
    stopping: Callable[[Display], str] = Display.describe_stop,
    ended_at_once: Callable[[], str],
    control: RunControl | None = None,
    interaction: str = "none",
    warn: Callable[[str], None] = streams.warn,
) -> Iterator[tuple[Attendance, Display]]:
    """Attend at the terminal while the block lasts: show `view` as the kind `progress` says, and
    ask questions as the kind `interaction` says. The first Ctrl-C stops `control` and shows
    `stopping`, the second ends the program with `ended_at_once`."""
    switch = control or RunControl()
    asks = interaction == "ask"
    approves = at_terminal() and interaction != "defer"

    def put(
        to_person: Callable[[_Question, Callable[[], bool]], _Answer], question: _Question
    ) -> _Answer:
        with display.pause():
            return to_person(question, lambda: switch.stop_requested)

    with (
        progress_for(progress, streams.stderr(), os.environ, view) as display,
        handle_interrupts(switch, lambda: stopping(display), ended_at_once),
    ):
        attendance = Attendance(
            control=switch,
            observers=[display],
            ask=partial(put, ask) if asks else None,
            approve=partial(put, approve) if asks or approves else None,
            do_step=partial(put, do_step) if asks else None,
            warn=warn,
        )
        yield attendance, display


@contextmanager
def attend_run(
    settings: Settings,
    directory: Path | None = None,
    resuming: str = "",
    *,
    warn: Callable[[str], None] = streams.warn,
) -> Iterator[tuple[Attendance, Display]]:
    """Attend one run, or the making of a plan, at the terminal; `resuming` is the command that
    resumes the run in `directory`."""

    def end_now() -> str:
        written = f"Ended at once. What was written is in {directory}"
        if settings.store.mode not in ("record", "cache"):
            return written
        return f"{written}\nTo resume from the stored answers: {resuming}"

    attending = attend(
        view_of(settings),
        settings.progress.kind,
        ended_at_once=end_now,
        interaction=settings.interaction.kind,
        warn=warn,
    )
    with attending as (attendance, display):
        if display.live:
            watcher = Watcher(display.watch, stream=settings.progress.stream)
            attendance = replace(attendance, watcher=watcher)
        attendance = replace(attendance, on_start=partial(_subscribe, display))
        # `_subscribe` connects it to the run itself.
        if isinstance(display, Silence):
            attendance = replace(attendance, observers=[])
        with show_waits(display, _least_level(settings, display)):
            yield attendance, display


def _subscribe(display: Display, kernel: Orchestrator) -> None:
    if kernel.stream is None:
        return
    resume_at_first_answer(kernel.stream)
    if isinstance(display, Silence):
        # It takes no time, so it needs no thread of its own.
        kernel.stream.subscribers.append(display)


def _least_level(settings: Settings, display: Display) -> int:
    # A picture shows the waits of its run itself, and so does progress without batches.
    is_shown = settings.progress.kind != "none" and not display.live
    return INFO if is_shown and getattr(settings.provider, "batch", False) else WARNING


@contextmanager
def show_waits(display: Display, at_least: int = INFO) -> Iterator[None]:
    """While the block lasts, show waits for the provider as they change, from the level `at_least`
    on."""
    waits = logging.getLogger(WAITS)
    handler = logging.Handler()
    handler.emit = lambda record: display.print([one_line(record.getMessage())])  # type: ignore[method-assign]
    level = waits.level
    propagates = waits.propagate
    waits.addHandler(handler)
    waits.setLevel(at_least)
    # The handlers of the root logger would show each wait again.
    waits.propagate = False
    try:
        yield
    finally:
        waits.removeHandler(handler)
        waits.setLevel(level)
        waits.propagate = propagates


def view_of(settings: Settings) -> RunView:
    """Return the display state of a run with these settings."""
    ledger = Ledger(price_book(settings.provider))

    def cost_at(recorded: Recorded) -> float | None:
        ledger(recorded)
        return ledger.cost()

    return RunView(
        thresholds=None if settings.mode.kind in UNJUDGED_MODES else settings.convergence,
        grace_seconds=settings.execution.grace_seconds,
        parallel=settings.execution.max_parallel,
        limits=settings.limits,
        cost_at=cost_at,
        recording=_find_recording(settings.store),
    )


def _find_recording(store: StoreSettings) -> Provenance | None:
    if store.mode == "replay" and store.path is not None:
        with suppress(StoreFailed), closing(open_source(store.path, store.backend)) as source:
            if isinstance(source, CassetteSource):
                return source.cassette.provenance
            return find_provenance(source.entries())
    return None
