"""How a kept answer is found: by the whole request, by what is asked alone, or by call and order."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal, Protocol

from aeon.domain.errors import StoreFailed
from aeon.store.interface import AnswerSource
from aeon.store.models import Asked, CallPath, Entry

Reach = Literal["anywhere", "here", "replay"]
"""Whom an answer may be given to: whoever asks the same; its own place, when the run is resumed or replayed; or only a
replay, since what failed then may succeed now."""
Judge = Callable[[dict[str, Any]], Reach]
Place = tuple[object, ...]


class Lookup(Protocol):
    """A way to find the answer to a request; thread-safe."""

    def find(self, asked: Asked, reach: Judge) -> Entry | None:
        """The kept answer; None when there is none. Raises StoreFailed."""
        ...


class ByKey:
    """The answer to exactly this request from exactly this place; in a `replay` whatever it was."""

    def __init__(self, source: AnswerSource, *, replay: bool = False) -> None:
        self._source, self._replay = source, replay

    def find(self, asked: Asked, reach: Judge) -> Entry | None:
        """The kept answer; None when there is none. Raises StoreFailed."""
        entry = self._source.get(asked.key)
        passed_over = entry is not None and not self._replay and reach(entry.answer) == "replay"
        return None if passed_over else entry


class Shared:
    """A model's answer to the same request, if anybody may have it: from the same place where there is one, else any
    unless `same_place`.

    A store that cannot be read has no answer: `warn` is told so, once, and the model is called.
    """

    def __init__(self, source: AnswerSource, warn: Callable[[str], None], *, same_place: bool = False) -> None:
        self._source, self._warn, self._same_place = source, warn, same_place
        self._lock = threading.Lock()
        self._failed = False

    def find(self, asked: Asked, reach: Judge) -> Entry | None:
        """The kept answer; None when there is none."""
        if asked.kind != "model" or self._failed:
            return None
        try:
            return self._usable(asked, reach)
        except StoreFailed as error:
            with self._lock:
                first, self._failed = not self._failed, True
            if first:
                self._warn(f"{error.message}; nothing more is answered from this store, the run goes on")
            return None

    def _usable(self, asked: Asked, reach: Judge) -> Entry | None:
        ways = [(self._source.get, asked.key), (self._source.by_content, asked.content)]
        for find, name in ways[: 1 if self._same_place else 2]:
            entry = find(name)
            if entry is not None and reach(entry.answer) == "anywhere":
                return entry
        return None


class InOrder:
    """The next answer that was recorded at the same place, whatever was asked; else the next of the same call.

    An answer is given once. What was asked in the same words at the same place is found first. `differing` counts the
    requests that were not what had been recorded.
    """

    def __init__(self, source: AnswerSource) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[str, Entry] = {}
        self._by_place: defaultdict[Place, list[Entry]] = defaultdict(list)
        self._by_call: defaultdict[Place, list[Entry]] = defaultdict(list)
        self._used: set[str] = set()
        self._differing = 0
        for entry in source.entries():
            self._by_key[entry.asked.key] = entry
            self._by_place[place(entry.asked)].append(entry)
            self._by_call[_call(entry.asked)].append(entry)

    @property
    def differing(self) -> int:
        """How many requests were answered with the answer to another."""
        with self._lock:
            return self._differing

    def find(self, asked: Asked, reach: Judge) -> Entry | None:  # noqa: ARG002
        """The kept answer; None when there are no more."""
        with self._lock:
            same = [self._by_key[asked.key]] if asked.key in self._by_key else []
            entry = (
                self._next(same) or self._next(self._by_place[place(asked)]) or self._next(self._by_call[_call(asked)])
            )
            if entry is not None:
                self._used.add(entry.asked.key)
                self._differing += entry.asked.content != asked.content
            return entry

    def _next(self, entries: list[Entry]) -> Entry | None:
        return next((entry for entry in entries if entry.asked.key not in self._used), None)


def place(asked: Asked) -> Place:
    """Where a request comes from, without what it asks."""
    path: CallPath = asked.path
    return asked.kind, path.pass_number, path.phase, path.call, path.step_id, path.attempt


def _call(asked: Asked) -> Place:
    return asked.kind, asked.path.call
