"""YAML read fast, by libyaml's parser, nested within bounds: on what is nested too deeply it ends the process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from aeon.files.text import MAX_DEPTH, TOO_DEEP

_Fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FastLoader(_Fast):  # type: ignore[misc]
    """libyaml's loader, ten times as fast as PyYAML's own. Raises YAMLError for more than MAX_DEPTH levels."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """Count the levels; PyYAML calls this before it goes down to the next one."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError(TOO_DEEP)

    def ascend_resolver(self) -> None:
        """Count the levels; PyYAML calls this when it comes up again."""
        self._depth -= 1


def read_yaml(path: Path) -> Any:
    """The values of a YAML file, without positions. Raises OSError, and ValueError for what is no YAML."""
    try:
        return yaml.load(path.read_bytes(), Loader=FastLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from error
