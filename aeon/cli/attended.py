"""The person at the terminal while a run or the making of a plan goes on: shown its progress, heard when they
interrupt it, and asked what only they can say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from aeon.cli.ask import approve, ask, at_terminal
from aeon.cli.interrupt import interruptible
from aeon.cli.progress import Progress, progress_for
from aeon.cli.replayed import recording
from aeon.config import Settings
from aeon.errors import ConfigError
from aeon.kernel.control import RunControl
from aeon.plan.models import FollowUpQuestion
from aeon.refinement.refiner import Ask
from aeon.surroundings import Surroundings
from aeon.tools.approval import ApprovalRequest, Approve


@dataclass(frozen=True, slots=True)
class Attendance:
    """What a run has of the person: `ask` and `approve` are None where nobody is to be, or can be, asked.

    `shown` is the kind of progress in force.
    """

    control: RunControl
    progress: Progress
    ask: Ask | None
    approve: Approve | None
    shown: str

    def surroundings(self, directory: Path, warn: Callable[[str], None]) -> Surroundings:
        """What a run in `directory` has around it."""
        return Surroundings(
            directory=directory,
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
def attended(settings: Settings, stderr: TextIO) -> Iterator[Attendance]:
    """The person, as the settings have them take part, with progress shown on `stderr` while the block lasts.

    Progress waits while something is asked.
    """
    asks = settings.interaction.kind == "ask"
    # A live picture would paint over the question.
    may_ask = asks or "ask" in settings.tools.approval.values()
    shown = "plain" if may_ask and settings.progress.kind != "none" else settings.progress.kind
    replayed = recording(settings.store)
    with interruptible() as control, progress_for(shown, stderr, os.environ, replayed) as progress:

        def stopping() -> bool:
            return control.stop_requested

        def asked(question: FollowUpQuestion) -> str | None:
            with progress.pause():
                return ask(question, stopping)

        def approved(request: ApprovalRequest) -> bool:
            with progress.pause():
                return approve(request, stopping)

        there = asks or at_terminal()
        yield Attendance(control, progress, asked if asks else None, approved if there else None, shown)
