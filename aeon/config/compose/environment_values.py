"""`${oc.env:NAME}` in a configuration: its values are masked in all files of a run."""

from __future__ import annotations

import os
from typing import Any

from omegaconf import Node
from omegaconf.resolvers import oc

from aeon.config.compose.resolvers import register_resolver
from aeon.files.secret_forms import mask_value

# The names of models and of stores are shown everywhere, and are not secrets.
_SHOWN = frozenset({"model", "name"})


def mask_environment_values() -> None:
    """Make OmegaConf's `oc.env` mask each value that it takes from the environment."""
    register_resolver("oc.env", _read_variable)


def _read_variable(name: str, *default: Any, _node_: Node) -> str | None:
    key = str(_node_._get_full_key(None)).split(".")
    if name in os.environ and key[0] != "hydra" and key[-1] not in _SHOWN:
        mask_value(name, os.environ[name])
    return oc.env(name, *default)
