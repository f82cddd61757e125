"""`provider.fallbacks`: the names of provider files, replaced by the endpoints that the files configure.

An element is the name of a file of the group `provider`, packaged or a person's own, or a mapping whose `provider` is
that name and whose other keys override the file's. Each is composed once, with Hydra initialised by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import MissingConfigException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from aeon.domain.errors import ConfigError

GROUP = "provider"
KEY = "provider.fallbacks"
_NO_FALLBACK = {
    "auto": ("a fallback must call a model, and this provider may call none", "Name one that does, such as openai."),
    "simulated": ("a fallback must call a model, and this provider calls none", "Name one that does, such as openai."),
    "custom": (
        "an adapter of your own cannot be a fallback, nor have any",
        "Let your adapter call the other one itself: provider=custom provider.adapter=module:Class.",
    ),
}


def expand(cfg: DictConfig, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration with the endpoints of its fallbacks instead of their names.

    `overrides` are those of Hydra's search path. An element that is expanded already is left as it is. Raises
    ConfigError for a name without a file, a provider that cannot be a fallback, and an element that is neither a name
    nor a mapping with one.
    """
    provider = cfg.get(GROUP)
    named = provider.get("fallbacks") if isinstance(provider, DictConfig) else None
    if not isinstance(named, ListConfig) or all(_is_expanded(item) for item in named):
        return cfg
    cfg = cfg.copy()
    with open_dict(cfg):
        cfg[GROUP].fallbacks = [_expand_one(item, f"{KEY}.{index}", overrides) for index, item in enumerate(named)]
    return cfg


def _is_expanded(item: Any) -> bool:
    return isinstance(item, Mapping) and "kind" in item


def _expand_one(item: Any, place: str, overrides: Sequence[str]) -> Any:
    if _is_expanded(item):
        return item
    given = dict(OmegaConf.to_container(item)) if isinstance(item, DictConfig) else {GROUP: item}  # type: ignore[arg-type]
    name = given.pop(GROUP, None)
    if not isinstance(name, str):
        raise ConfigError(
            f"{place}={item}: no provider is named",
            hint="A fallback is a name, as in [groq], or has one, as in [{provider: ollama, model: llama3.1}].",
        )
    if name in _NO_FALLBACK:
        problem, hint = _NO_FALLBACK[name]
        raise ConfigError(f"{place}={name}: {problem}", hint=hint)
    if "fallbacks" in given:
        raise ConfigError(f"{place}.fallbacks: a fallback has none of its own", hint=f"Put it into {KEY} itself.")
    made = _compose_provider(name, place, overrides)
    made.pop("fallbacks", None)
    return OmegaConf.merge(OmegaConf.create(made), OmegaConf.create(given))


def _compose_provider(name: str, place: str, overrides: Sequence[str]) -> dict[str, Any]:
    try:
        made = hydra.compose(f"{GROUP}/{name}", list(overrides))
    except MissingConfigException:
        options = GlobalHydra.instance().config_loader().get_group_options(GROUP)
        known = ", ".join(sorted(set(options) - set(_NO_FALLBACK)))
        raise ConfigError(f"{place}={name}: there is no such provider", hint=f"There are: {known}.") from None
    return dict(OmegaConf.to_container(made[GROUP]))  # type: ignore[arg-type]
