"""The user at the terminal while a run or the making of a plan goes on: progress, questions and Ctrl-C."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from aeon.app.surroundings import Surroundings
from aeon.cli.progress.display import Display, progress_for
from aeon.cli.progress.view import RunView
from aeon.cli.terminal.interrupt import handle_interrupts
from aeon.cli.terminal.questions import approve, ask, at_terminal
from aeon.cli.terminal.stderr import clear_passing
from aeon.config import origin
from aeon.config.settings import Settings
from aeon.domain.errors import AeonError, ConfigError, StoreFailed
from aeon.domain.events import Recorded
from aeon.domain.plan import FollowUpQuestion
from aeon.kernel.control import RunControl
from aeon.llm.prices import price_book
from aeon.observability.ledger import Ledger
from aeon.refinement.models import Ask
from aeon.store.cassette import CassetteSource, Provenance
from aeon.store.cassette_export import find_provenance
from aeon.store.opening import open_source
from aeon.store.settings import StoreSettings
from aeon.tools.approval import ApprovalRequest, Approve


@dataclass(frozen=True, slots=True)
class Attendance:
    """The user's part in a run: `ask` and `approve` are None where nobody is to be, or can be, asked."""

    control: RunControl
    progress: Display
    ask: Ask | None
    approve: Approve | None

    def surroundings(
        self, directory: Path, warn: Callable[[str], None], of_multirun: Path | None = None
    ) -> Surroundings:
        """The surroundings of a run in `directory`."""
        return Surroundings(
            directory=directory,
            of_multirun=of_multirun,
            observers=[self.progress],
            control=self.control,
            ask=self.ask,
            approve=self.approve,
            warn=warn,
        )


def check(settings: Settings) -> None:
    """ConfigError when a person is to be asked and there is no terminal to ask at."""
    if settings.interaction.kind == "ask" and settings.store.mode != "replay" and not at_terminal():
        raise ConfigError("interaction=ask: there is no terminal to ask at", hint="Use interaction=none.")


@contextmanager
def attend(
    settings: Settings, stderr: TextIO, directory: Path | None = None, resuming: str = ""
) -> Iterator[Attendance]:
    """Show progress on `stderr`, ask the user and handle Ctrl-C while the block lasts, as the settings say; progress
    pauses for questions.

    `directory` is the run's, if it has one, and `resuming` the command that goes on with it.
    """
    asks = settings.interaction.kind == "ask"
    clear_passing()
    with handle_interrupts() as interruption:
        control = interruption.control
        with progress_for(settings.progress.kind, stderr, os.environ, _view(settings)) as progress:

            def stopping() -> bool:
                return control.stop_requested

            def end_now() -> str:
                progress.mute()
                return _farewell(settings, directory, resuming)

            def ask_person(question: FollowUpQuestion) -> str | None:
                with progress.pause():
                    return ask(question, stopping)

            def approve_by_person(request: ApprovalRequest) -> bool:
                with progress.pause():
                    return approve(request, stopping)

            interruption.first, interruption.last = progress.stopping, end_now
            there = asks or at_terminal()
            yield Attendance(control, progress, ask_person if asks else None, approve_by_person if there else None)


def _view(settings: Settings) -> RunView:
    ledger = Ledger(price_book(settings.provider))

    def cost_at(recorded: Recorded) -> float | None:
        ledger(recorded)
        return ledger.cost()

    return RunView(
        thresholds=None if settings.mode.kind == "core" else settings.convergence,
        grace_seconds=settings.execution.grace_seconds,
        cost_at=cost_at,
        recording=recording(settings.store),
    )


def _farewell(settings: Settings, directory: Path | None, resuming: str) -> str:
    """The message at a second Ctrl-C: where the run was, and how it goes on."""
    if directory is None:
        return "Ended at once."
    ended = f"Ended at once. What was written is in {directory}"
    stored = resuming and settings.store.mode in ("record", "cache")
    return f"{ended}\nTo go on from what was answered: {resuming}" if stored else ended


def recording(store: StoreSettings) -> Provenance | None:
    """Who answered what a replay replays, and when; None without a replay, or when the recording cannot be read, which
    the run itself reports."""
    if store.mode != "replay" or store.path is None:
        return None
    try:
        with closing(open_source(store.path, store.backend)) as source:
            if isinstance(source, CassetteSource):
                return source.cassette.provenance
            return find_provenance(source.entries(), provider=_provider(store.path))
    except StoreFailed:
        return None


def _provider(path: Path) -> str:
    """The kind of the provider that a run's directory names; empty where nothing is named."""
    try:
        return origin.read(path).provider.kind if path.is_dir() else ""
    except AeonError:
        return ""
