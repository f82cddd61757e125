"""A run's journals: what they note is worth having, and never worth the run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol

from aeon.domain.errors import ArtefactError
from aeon.domain.events import Recorded


class Journal(Protocol):
    """A subscriber that keeps a file open. Both methods raise ArtefactError when the file cannot be written."""

    def __call__(self, recorded: Recorded) -> None:
        """Note one event."""

    def close(self) -> None:
        """Close the file."""


class Expendable:
    """A journal that is given up once it cannot be written, so that a full disk does not end a run that is paid for.

    What it holds by then stays, and `warn` is told once. Never raises.
    """

    def __init__(self, journal: Journal, warn: Callable[[str], None]) -> None:
        self._journal = journal
        self._warn = warn
        self._lock = threading.Lock()
        self._given_up = False

    def __call__(self, recorded: Recorded) -> None:
        """Note one event, unless the journal is given up."""
        if not self._given_up:
            self._attempt(lambda: self._journal(recorded))

    def close(self) -> None:
        """Close the file."""
        self._attempt(self._journal.close)

    def _attempt(self, write: Callable[[], None]) -> None:
        try:
            write()
        except ArtefactError as error:
            with self._lock:
                first, self._given_up = not self._given_up, True
            if first:
                self._warn(f"{error.message}; this journal ends here, the run does not")
