"""The person at the terminal while a run or the making of a plan goes on: shown its progress, asked what only they can
say; their Ctrl-C ends it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from aeon.app.surroundings import Surroundings
from aeon.cli.job.replayed import recording
from aeon.cli.progress.progress import Progress, progress_for
from aeon.cli.progress.view import Conditions
from aeon.cli.terminal.interrupt import Interruption, interruptible
from aeon.cli.terminal.questions import approve, ask, at_terminal
from aeon.cli.terminal.stderr import clear_passing
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.events import Recorded
from aeon.domain.plan import FollowUpQuestion
from aeon.kernel.control import RunControl
from aeon.llm.prices import price_book
from aeon.observability.ledger import Ledger
from aeon.refinement.models import Ask
from aeon.tools.approval import ApprovalRequest, Approve


@dataclass(frozen=True, slots=True)
class Attendance:
    """What a run has of the person: `ask` and `approve` are None where nobody is to be, or can be, asked."""

    control: RunControl
    progress: Progress
    ask: Ask | None
    approve: Approve | None

    def surroundings(
        self, directory: Path, warn: Callable[[str], None], of_multirun: Path | None = None
    ) -> Surroundings:
        """What a run in `directory` has around it."""
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
def attended(
    settings: Settings, stderr: TextIO, directory: Path | None = None, resuming: str = ""
) -> Iterator[Attendance]:
    """The person, as the settings have them take part, with progress shown on `stderr` while the block lasts.

    `directory` is the run's, if it has one, and `resuming` the command that goes on with it. Progress waits while
    something is asked.
    """
    asks = settings.interaction.kind == "ask"
    clear_passing()
    with interruptible() as interruption:
        control, replayed = interruption.control, recording(settings.store)
        conditions = _conditions(settings, control)
        with progress_for(settings.progress.kind, stderr, os.environ, replayed, conditions) as progress:
            _answer_ctrl_c(interruption, progress, _farewell(settings, directory, resuming))

            def stopping() -> bool:
                return control.stop_requested

            def asked(question: FollowUpQuestion) -> str | None:
                with progress.pause():
                    return ask(question, stopping)

            def approved(request: ApprovalRequest) -> bool:
                with progress.pause():
                    return approve(request, stopping)

            there = asks or at_terminal()
            yield Attendance(control, progress, asked if asks else None, approved if there else None)


def _conditions(settings: Settings, control: RunControl) -> Conditions:
    return Conditions(
        thresholds=None if settings.mode.kind == "core" else settings.convergence,
        grace_seconds=settings.execution.grace_seconds,
        stopping=lambda: control.stop_requested,
        cost=_cost(Ledger(price_book(settings.provider))),
    )


def _cost(ledger: Ledger) -> Callable[[Recorded], float | None]:
    def cost(recorded: Recorded) -> float | None:
        ledger(recorded)
        return ledger.cost()

    return cost


def _answer_ctrl_c(interruption: Interruption, progress: Progress, farewell: str) -> None:
    def last() -> str:
        progress.mute()
        return farewell

    interruption.first, interruption.last = progress.stopping, last


def _farewell(settings: Settings, directory: Path | None, resuming: str) -> str:
    """What is said at a second Ctrl-C: where the run was, and how it goes on."""
    if directory is None:
        return "Ended at once."
    ended = f"Ended at once. What was written is in {directory}"
    kept = resuming and settings.store.mode in ("record", "cache")
    return f"{ended}\nTo go on from what was answered: {resuming}" if kept else ended
