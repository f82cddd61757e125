"""Memory in this process: of one run, guarded against failures, and in the form for prompts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.memory.interface import STEPS, Memory

MAX_CHARACTERS = 8000
_HANDOFF = "/handoff"


class InMemory:
    """A dictionary behind a lock. Values are stored as JSON, so that writers and readers never
    share an object; writing a value that JSON does not have raises TypeError or ValueError."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}
        self._lock = threading.Lock()

    def write(self, key: str, value: object) -> None:
        """Store a value under a key."""
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        with self._lock:
            self._values[key] = text

    def read(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none."""
        with self._lock:
            return json.loads(self._values.get(key, "null"))

    def search(self, prefix: str) -> JsonObject:
        """Return every key that starts with `prefix`, with its value, sorted by key."""
        return self._read_where(lambda key: key.startswith(prefix))

    def _read_where(self, is_meant: Callable[[str], bool]) -> JsonObject:
        with self._lock:
            found = [(key, text) for key, text in self._values.items() if is_meant(key)]
        return {key: json.loads(text) for key, text in sorted(found)}

    def close(self) -> None:
        """Do nothing: no resource is held open."""


class RunMemory(InMemory):
    """A memory as one run sees it: its content at the start of the run (`held`) without results of
    steps, and what the run writes. Writes also go to `memory`; its errors are raised after the run
    has the value."""

    def __init__(self, memory: Memory | None = None, held: JsonMapping | None = None) -> None:
        super().__init__()
        for key, value in _without_steps(held or {}).items():
            super().write(key, value)
        self._memory = memory

    def write(self, key: str, value: object) -> None:
        """Store a value under a key."""
        super().write(key, value)
        if self._memory is not None:
            self._memory.write(key, value)

    def notes(self) -> JsonObject:
        """Return everything except the results of steps, sorted by key."""
        return self._read_where(lambda key: not key.startswith(STEPS))

    def handoffs(self) -> dict[str, str]:
        """Return the hand-offs of steps to later ones, by step id."""
        found = self._read_where(lambda key: key.startswith(STEPS) and key.endswith(_HANDOFF))
        return {
            key.removeprefix(STEPS).removesuffix(_HANDOFF): handoff
            for key, handoff in found.items()
            if handoff
        }


class GuardedMemory:
    """A memory whose failures are passed to `report`, each text once, instead of raised: they must
    not fail a run."""

    def __init__(self, memory: Memory, report: Callable[[str], None]) -> None:
        self._memory = memory
        self._report = report
        self._reported: set[str] = set()

    def write(self, key: str, value: object) -> None:
        """Store a value; None is not stored."""
        if value is not None:
            self._guard(lambda: self._memory.write(key, value), f"{key} could not be stored")

    def read(self, key: str) -> Any | None:
        """Return the value of a key; None if there is none, or it cannot be read."""
        return self._guard(lambda: self._memory.read(key), f"{key} could not be read")

    def search(self, prefix: str) -> JsonObject:
        """Return every key with that prefix and its value; empty if the memory fails."""
        problem = f"{prefix or 'memory'} could not be searched"
        return self._guard(lambda: _require_entries(self._memory.search(prefix)), problem) or {}

    def _guard(self, work: Callable[[], Any], problem: str) -> Any:
        try:
            return work()
        except Exception as error:  # a custom memory may fail in any way
            if str(error) not in self._reported:
                self._reported.add(str(error))
                self._report(f"{problem}: {error}")


class ShownMemory:
    """The entries of a memory for prompts, at most `max_characters` of keys and values as JSON,
    without the results of steps, which prompts contain as outputs and context. `read` returns all
    entries, `handoffs` the hand-offs of steps to later ones, by step id."""

    def __init__(
        self,
        read: Callable[[], JsonMapping] = dict,
        max_characters: int = MAX_CHARACTERS,
        handoffs: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._read = read
        self.handoffs = handoffs
        self._max_characters = max_characters

    def entries(self) -> JsonObject:
        """Return the entries that could be shown now."""
        return _without_steps(self._read())

    def variables(self, entries: JsonMapping | None = None) -> JsonObject:
        """Return the prompt variables `memory` and `memory_left_out`, from the given or the present
        entries."""
        shown = _without_steps(self._read() if entries is None else entries)
        fitting, left_out = cut_entries(shown, self._max_characters)
        return {"memory": fitting, "memory_left_out": left_out}


def cut_entries(entries: JsonMapping, max_characters: int) -> tuple[list[JsonObject], int]:
    """Return the entries, sorted by key, that fit into the characters, and the number left out. The
    first that does not fit is cut, its value as text, with the number of missing characters."""
    fitting: list[JsonObject] = []
    left = max_characters
    for key, value in sorted(entries.items()):
        text = (
            value
            if isinstance(value, str)
            else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        )
        left -= len(key)
        if left <= 0:
            break
        if len(text) > left:
            fitting.append(
                {"key": key, "value": text[:left], "characters_left_out": len(text) - left}
            )
            break
        fitting.append({"key": key, "value": value})
        left -= len(text)
    return fitting, len(entries) - len(fitting)


def _require_entries(found: object) -> JsonObject:
    """Return the result of a search. Raises TypeError unless it is a mapping by keys."""
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise TypeError(f"search returned {type(found).__name__}, not a mapping of keys to values")
    return dict(found)


def _without_steps(entries: JsonMapping) -> JsonObject:
    return {key: value for key, value in entries.items() if not key.startswith(STEPS)}
