"""Reads YAML fast with libyaml's parser, limiting the nesting: libyaml crashes the process if
nesting is too deep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from aeon.files.text import MAX_DEPTH, MAX_VALUES, TOO_DEEP, read_linked_file

_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FastLoader(_Fast):  # type: ignore[misc]
    """libyaml's loader, ten times as fast as PyYAML's own. Raises YAMLError for more than MAX_DEPTH
    levels."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """Count a level; PyYAML calls this before it descends."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError(TOO_DEEP)

    def ascend_resolver(self) -> None:
        """Count a level; PyYAML calls this when it returns."""
        self._depth -= 1


def refuse_excess(text: str) -> None:
    """Raise YAMLError for text that is not YAML, or has more than MAX_DEPTH levels or, with aliases
    followed, MAX_VALUES values: most readers would run out of memory or never finish."""
    node = yaml.compose(text, Loader=FastLoader)
    if node is not None:
        _count_values(node, {}, MAX_VALUES)


def _count_values(node: yaml.Node, known: dict[int, int], most: int) -> int:
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = most + 1  # until it is counted: a value that contains itself is endless
    total = 1
    for item in node.value if isinstance(node, yaml.CollectionNode) else ():
        for part in item if isinstance(item, tuple) else (item,):
            total += _count_values(part, known, most)
            if total > most:
                raise yaml.YAMLError(f"more than {most:,} values, once aliases are followed")
    known[id(node)] = total
    return total


def read_yaml(path: Path) -> Any:
    """Read the values of a YAML file, without positions. Raises OSError, and ValueError for invalid
    YAML."""
    try:
        return yaml.load(read_linked_file(path), Loader=FastLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error
