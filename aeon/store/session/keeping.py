"""Keeping answers without risking the run that pays for them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from aeon.domain.errors import StoreFailed
from aeon.store.interface import AnswerStore
from aeon.store.models import Entry
from aeon.store.session.lookup import Judge


class Keeper:
    """Puts answers into a store; one that cannot be written costs neither the answer nor the run.

    `warn` is told so, once; every later answer is tried again, so that a disk that has room again is used. A `shared`
    store is given what models have said and other runs may use.
    """

    def __init__(self, store: AnswerStore, warn: Callable[[str], None], *, shared: bool = False) -> None:
        self._store, self._warn, self.shared = store, warn, shared
        self._lock = threading.Lock()
        self._warned = False

    def keep(self, entry: Entry, reach: Judge) -> None:
        """Keep an answer. Never raises."""
        if self.shared and not (entry.asked.kind == "model" and reach(entry.answer) == "anywhere"):
            return
        try:
            self._store.put(entry)
        except StoreFailed as error:
            with self._lock:
                first, self._warned = not self._warned, True
            if first:
                self._warn(f"{error.message}; answers may be paid for again, the run goes on")
