"""How deep a JSON value may be nested. A leaf.

What writes results stops at 255 levels, and a value stands some levels deep in a result.
"""

from __future__ import annotations

from typing import Any

MAX_DEPTH = 200
"""The most levels of objects and arrays in a value that a model, a tool, a server or a file gave."""

TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep"


def is_too_deep(value: Any) -> bool:
    """Whether a value that JSON has is nested more than MAX_DEPTH levels deep; one within itself is."""
    level, depth = [value], -1
    while level and depth < MAX_DEPTH:
        outer = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level, depth = [inner for each in outer for inner in each], depth + 1
    return bool(level)
