"""Registers resolvers with OmegaConf, whichever of its versions is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import omegaconf
from omegaconf import OmegaConf

# OmegaConf 2.4 deprecates the one, and 2.3 the other.
_is_new = not omegaconf.__version__.startswith("2.3.")
_register: Any = OmegaConf.register_resolver if _is_new else OmegaConf.register_new_resolver


def register_resolver(name: str, resolve: Callable[..., Any]) -> None:
    """Make `${name:...}` in a configuration return the result of `resolve`, replacing an earlier
    one."""
    _register(name, resolve, replace=True)
