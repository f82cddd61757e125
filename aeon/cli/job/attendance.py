"""The user at the terminal while a run or the making of a plan goes on: progress, questions and Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from logging import INFO, WARNING
from pathlib import Path
from typing import TypeVar

from aeon.app.wiring import Surroundings
from aeon.cli.progress.display import progress_for
from aeon.cli.progress.plain import Display, Silence
from aeon.cli.progress.view import RunView
from aeon.cli.terminal import streams
from aeon.cli.terminal.questions import approve, ask, at_terminal
from aeon.cli.terminal.status import handle_interrupts
from aeon.config.settings import Settings
from aeon.domain.errors import StoreFailed
from aeon.domain.events import Recorded
from aeon.kernel.control import RunControl
from aeon.kernel.orchestrator import Orchestrator
from aeon.llm.prices import price_book
from aeon.llm.watching import Watcher
from aeon.observability.ledger import Ledger
from aeon.store.cassette import CassetteSource, Provenance
from aeon.store.cassette_export import find_provenance
from aeon.store.opening import open_source
from aeon.store.settings import StoreSettings

_Question = TypeVar("_Question")
_Answer = TypeVar("_Answer")


@contextmanager
def attend(
    settings: Settings,
    directory: Path | None = None,
    resuming: str = "",
    *,
    warn: Callable[[str], None] = streams.warn,
    of_multirun: Path | None = None,
) -> Iterator[tuple[Surroundings, Display]]:
    """Show progress, ask the user and handle Ctrl-C while the block lasts; `resuming` is the command that
    goes on with the run in `directory`. Gives what the run has around it, and the progress."""
    control, asks = RunControl(), settings.interaction.kind == "ask"

    def end_now() -> str:
        on = (
            f"\nTo go on from what was answered: {resuming}"
            if settings.store.mode in ("record", "cache")
            else ""
        )
        return f"Ended at once. What was written is in {directory}{on}"

    def put(
        to_person: Callable[[_Question, Callable[[], bool]], _Answer], question: _Question
    ) -> _Answer:
        with progress.pause():
            return to_person(question, lambda: control.stop_requested)

    shown = progress_for(settings.progress.kind, streams.stderr(), os.environ, view_of(settings))
    left: list[str] = []
    with (
        shown as progress,
        handle_interrupts(control, progress.stopping, end_now),
        _telling(settings, progress, left),
    ):
        around = Surroundings(
            directory=directory,
            of_multirun=of_multirun,
            observers=[] if isinstance(progress, Silence) else [progress],
            control=control,
            ask=partial(put, ask) if asks else None,
            approve=partial(put, approve) if asks or at_terminal() else None,
            on_start=partial(_subscribe, progress) if isinstance(progress, Silence) else None,
            warn=warn,
            watcher=Watcher(progress.watch, stream=settings.progress.stream)
            if progress.live
            else None,
        )
        yield around, progress
    for line in left:  # a live display would draw over it
        streams.say(line)


def _subscribe(progress: Silence, kernel: Orchestrator) -> None:
    if kernel.stream is not None:
        kernel.stream.subscribers.append(progress)


def _telling(
    settings: Settings, progress: Display, left: list[str]
) -> AbstractContextManager[None]:
    """Tell what batches are waited for; what must outlast a live display is `left` to be told after it."""
    if not getattr(settings.provider, "batch", False):
        return nullcontext()
    from aeon.batch.half_price import telling

    is_plain = settings.progress.kind != "none" and not progress.live
    return telling(streams.say, INFO) if is_plain else telling(left.append, WARNING)


def view_of(settings: Settings) -> RunView:
    """The state of a run of these settings, for display."""
    ledger = Ledger(price_book(settings.provider))

    def cost_at(recorded: Recorded) -> float | None:
        ledger(recorded)
        return ledger.cost()

    return RunView(
        thresholds=None if settings.mode.kind == "core" else settings.convergence,
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
