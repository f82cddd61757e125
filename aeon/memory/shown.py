"""What prompts show of a memory (Sprint 1, FR-057)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aeon.memory.interface import STEPS

MAX_CHARACTERS = 8000


class ShownMemory:
    """The entries of a memory as prompts show them, at most `max_characters` of keys and values as JSON.

    `read` gives all entries. The results of steps are left out: they reach prompts as outputs and context.
    """

    def __init__(self, read: Callable[[], Mapping[str, Any]] = dict, max_characters: int = MAX_CHARACTERS) -> None:
        self._read = read
        self._max_characters = max_characters

    def entries(self) -> dict[str, Any]:
        """What could be shown now."""
        return {key: value for key, value in self._read().items() if not key.startswith(STEPS)}

    def variables(self, entries: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The prompt variables `memory` and `memory_left_out`, of the entries given or else of those there are now."""
        shown = self.entries() if entries is None else {k: v for k, v in entries.items() if not k.startswith(STEPS)}
        kept, left_out = cut(shown, self._max_characters)
        return {"memory": kept, "memory_left_out": left_out}


def cut(entries: Mapping[str, Any], max_characters: int) -> tuple[list[dict[str, Any]], int]:
    """The entries, sorted by key, as far as the characters allow, and how many are left out.

    The first that does not fit is cut, its value as text, with the number of characters that are missing.
    """
    kept: list[dict[str, Any]] = []
    left = max_characters
    for key in sorted(entries):
        value = entries[key]
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        left -= len(key)
        if left <= 0:
            break
        if len(text) > left:
            kept.append({"key": key, "value": text[:left], "characters_left_out": len(text) - left})
            break
        kept.append({"key": key, "value": value})
        left -= len(text)
    return kept, len(entries) - len(kept)
