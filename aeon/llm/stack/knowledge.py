"""What is found out about endpoints, kept with the answers that it came of: a resumed run knows it without asking.

An adapter that finds something out has two methods: `known` gives all of it as JSON values, by endpoint, and `learn`
takes what another process has found out, as far as it is of its own endpoint. Knowledge only grows.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from aeon.domain.request import LLMAdapter

Found = Mapping[str, Any]


class Knowledge:
    """What one run knows of its endpoints, and how much of it has been kept with an answer; thread-safe."""

    def __init__(self, adapters: Sequence[LLMAdapter] = ()) -> None:
        self._adapters = tuple(adapters)
        self._lock = threading.Lock()
        self._kept: dict[str, Any] = {}

    def news(self) -> dict[str, Any]:
        """What is known by now and was not given out here before, as JSON values; empty when that is nothing."""
        with self._lock:
            now: dict[str, Any] = {}
            for adapter in self._adapters:
                now.update(_known(adapter))
            new: dict[str, Any] = _added(now, self._kept)
            self._kept = _merged(self._kept, now)
            return new

    def restore(self, found: Found) -> None:
        """Know what was kept with an answer. Raises TypeError or ValueError for what cannot have been."""
        if not isinstance(found, Mapping):
            raise TypeError("what was found out is no mapping")
        for adapter in self._adapters:
            learn = getattr(adapter, "learn", None)
            if learn is not None:
                learn(found)
        with self._lock:
            self._kept = _merged(self._kept, found)


def _known(adapter: LLMAdapter) -> Found:
    """What an adapter knows; one that finds nothing out has no such method."""
    method = getattr(adapter, "known", None)
    return {} if method is None else dict(method())


def _added(now: Any, before: Any) -> Any:
    """What is in one JSON value and not in an earlier one of its shape."""
    if isinstance(now, Mapping):
        parts = {name: _added(value, before.get(name) if before else None) for name, value in now.items()}
        return {name: value for name, value in parts.items() if value not in (None, {}, [])}
    if isinstance(now, list):
        return [item for item in now if item not in (before or ())]
    return None if now == before else now


def _merged(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return {**one, **{name: _merged(one.get(name), value) for name, value in other.items()}}
    if isinstance(one, list) and isinstance(other, list):
        return [*one, *(item for item in other if item not in one)]
    return other
