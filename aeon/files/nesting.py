"""How deep a JSON value may be nested. A leaf.

What writes results stops at 255 levels, and a value stands some levels deep in a result.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 200
"""The most levels of objects and arrays in a value that a model, a tool, a server or a file gave."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def is_too_deep(value: Any) -> bool:
    """Whether a value that JSON has is nested more than MAX_DEPTH levels deep; one within itself is."""
    level, depth = [value], 0
    while level := [inner for outer in level if isinstance(outer, dict | list) for inner in _inner(outer)]:
        depth += 1
        if depth > MAX_DEPTH:
            return True
    return False


def _inner(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value
