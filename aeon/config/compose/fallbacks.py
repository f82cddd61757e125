"""`provider.fallbacks`: the names of provider files, replaced by the endpoints that the files configure.

An element is the name of a file of the group `provider`, packaged or a person's own, or a mapping whose `provider` is
that name and whose other keys override the file's. Each is composed once, with Hydra initialised by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hydra
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from aeon.domain.errors import ConfigError

_PLACE = "provider.fallbacks"
_HINT = "A fallback is the name of a provider that calls a model, as in [groq], or has one, as in "
_HINT += "[{provider: ollama, model: llama3.1}]; an adapter of your own calls another one itself."
_NO_FALLBACKS = ("auto", "simulated", "custom")


def expand(cfg: DictConfig, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration with the endpoints of its fallbacks instead of their names.

    `overrides` are those of Hydra's search path. An element that is expanded already is left as it is. Raises
    ConfigError for a name without a file, a provider that cannot be a fallback, and an element that is neither a name
    nor a mapping with one.
    """
    provider = cfg.get("provider")
    named = provider.get("fallbacks") if isinstance(provider, DictConfig) else None
    if not isinstance(named, ListConfig) or all(_is_expanded(item) for item in named):
        return cfg
    cfg = cfg.copy()
    with open_dict(cfg):
        cfg.provider.fallbacks = [_expand_one(item, f"{_PLACE}.{i}", overrides) for i, item in enumerate(named)]
    return cfg


def _is_expanded(item: Any) -> bool:
    return isinstance(item, Mapping) and "kind" in item


def _expand_one(item: Any, place: str, overrides: Sequence[str]) -> Any:
    if _is_expanded(item):
        return item
    given: Any = OmegaConf.to_container(item) if isinstance(item, DictConfig) else {"provider": item}
    name = given.pop("provider", None)
    if not isinstance(name, str):
        raise ConfigError(f"{place}={item}: no provider is named", hint=_HINT)
    if name in _NO_FALLBACKS or "fallbacks" in given:
        problem = "a fallback must call a model" if name in _NO_FALLBACKS else "a fallback has none of its own"
        raise ConfigError(f"{place}={name}: {problem}", hint=_HINT)
    try:
        made: Any = OmegaConf.to_container(hydra.compose(f"provider/{name}", list(overrides)).provider)
    except HydraException as error:
        raise ConfigError(f"{place}={name}: there is no such provider: {error}", hint=_HINT) from None
    made.pop("fallbacks", None)
    return OmegaConf.merge(made, given)
