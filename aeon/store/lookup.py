"""How a stored answer is found, and for which requests it may be used again."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Literal, Protocol

from aeon.domain.errors import StoreFailed
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry, StoreRequest

ReuseScope = Literal["anywhere", "here", "replay"]
"""Where an answer may be used again: for every equal request; at its own place, when the run is resumed or replayed; or
only in a replay, since a call that failed then may succeed now."""
ReusePolicy = Callable[[dict[str, Any]], ReuseScope]
"""Says the scope of an answer."""
Place = tuple[object, ...]


class Lookup(Protocol):
    """A way to find the answer to a request; thread-safe."""

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """The stored answer; None when there is none. Raises StoreFailed."""
        ...


class ByKey:
    """The answer to exactly this request from exactly this place; in a `replay` whatever its scope."""

    def __init__(self, source: AnswerSource, *, replay: bool = False) -> None:
        self._source, self._replay = source, replay

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """The stored answer; None when there is none. Raises StoreFailed."""
        entry = self._source.get(request.key)
        if entry is None or self._replay or policy(entry.answer) != "replay":
            return entry
        return None


class Shared:
    """A model's answer to an equal request: from the same place where there is one, else from any place unless
    `same_place`.

    When the store cannot be read, `warn` is called once, and nothing more is found.
    """

    def __init__(self, source: AnswerSource, warn: Callable[[str], None], *, same_place: bool = False) -> None:
        self._source, self._warn, self._same_place = source, warn, same_place
        self._lock = threading.Lock()
        self._failed = False

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """The stored answer; None when there is none."""
        if request.kind != "model" or self._failed:
            return None
        try:
            found = [self._source.get(request.key)]
            if not self._same_place and not _is_reusable(found[0], policy):
                found.append(self._source.by_content(request.content))
        except StoreFailed as error:
            with self._lock:
                is_first, self._failed = not self._failed, True
            if is_first:
                self._warn(f"{error.message}; nothing more is answered from this store, the run goes on")
            return None
        return next((entry for entry in found if _is_reusable(entry, policy)), None)


def _is_reusable(entry: Entry | None, policy: ReusePolicy) -> bool:
    return entry is not None and policy(entry.answer) == "anywhere"


class InOrder:
    """The next unused answer recorded at the same place, whatever the request; else the next of the same call.

    Equal requests of the same place come first. `differing` counts the requests that got the answer to another one.
    """

    def __init__(self, source: AnswerSource) -> None:
        self._lock = threading.Lock()
        self._by_key: dict[str, Entry] = {}
        self._by_place: defaultdict[Place, list[Entry]] = defaultdict(list)
        self._used: set[str] = set()
        self._differing = 0
        for entry in source.entries():
            self._by_key[entry.request.key] = entry
            self._by_place[place_of(entry.request)].append(entry)
            self._by_place[_call_of(entry.request)].append(entry)

    @property
    def differing(self) -> int:
        """How many requests got the answer to another one."""
        with self._lock:
            return self._differing

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:  # noqa: ARG002
        """The stored answer; None when no more are left."""
        with self._lock:
            same = [self._by_key[request.key]] if request.key in self._by_key else []
            candidates = (*same, *self._by_place[place_of(request)], *self._by_place[_call_of(request)])
            entry = next((entry for entry in candidates if entry.request.key not in self._used), None)
            if entry is not None:
                self._used.add(entry.request.key)
                self._differing += entry.request.content != request.content
            return entry


def place_of(request: StoreRequest) -> Place:
    """Where a request comes from, without its content."""
    path = request.path
    return request.kind, path.pass_number, path.phase, path.call, path.step_id, path.attempt


def _call_of(request: StoreRequest) -> Place:
    return request.kind, request.path.call
