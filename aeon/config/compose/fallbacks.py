"""`provider.fallbacks`: the names of provider files, as the endpoints that they stand for.

An element is the name of a file of the group `provider`, packaged or a person's own, or a mapping whose `provider` is
that name and whose other keys stand over the file's. Each is composed once, with Hydra initialised by the caller.
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
_MADE_UP = ("auto", "simulated")


def expanded(cfg: DictConfig, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration with each fallback's own in place of its name; `overrides` are for Hydra's search path.

    What is expanded already stays as it is. Raises ConfigError for a name without a file, one that calls no model, and
    an element that is neither a name nor a mapping with one.
    """
    provider = cfg.get(GROUP)
    named = provider.get("fallbacks") if isinstance(provider, DictConfig) else None
    if not isinstance(named, ListConfig) or not any(_is_named(item) for item in named):
        return cfg
    cfg = cfg.copy()
    with open_dict(cfg):
        cfg[GROUP].fallbacks = [_one(item, f"{KEY}.{index}", overrides) for index, item in enumerate(named)]
    return cfg


def _is_named(item: Any) -> bool:
    return not isinstance(item, Mapping) or "kind" not in item


def _one(item: Any, place: str, overrides: Sequence[str]) -> Any:
    if not _is_named(item):
        return item
    given = dict(OmegaConf.to_container(item)) if isinstance(item, DictConfig) else {GROUP: item}  # type: ignore[arg-type]
    name = given.pop(GROUP, None)
    if not isinstance(name, str):
        raise ConfigError(
            f"{place}={item}: no provider is named",
            hint="A fallback is a name, as in [groq], or has one, as in [{provider: ollama, model: llama3.1}].",
        )
    if name in _MADE_UP:
        raise ConfigError(
            f"{place}={name}: a fallback answers in the place of a model, and this one may call none",
            hint="Name a provider that calls a model, for example openai.",
        )
    if name == "custom":
        raise ConfigError(
            f"{place}={name}: an adapter of your own is no fallback, nor has it any",
            hint="Let your adapter ask the other one itself: provider=custom provider.adapter=module:Class.",
        )
    if "fallbacks" in given:
        raise ConfigError(f"{place}.fallbacks: a fallback has none of its own", hint=f"Put it into {KEY} itself.")
    made = _composed(name, place, overrides)
    made.pop("fallbacks", None)
    return OmegaConf.merge(OmegaConf.create(made), OmegaConf.create(given))


def _composed(name: str, place: str, overrides: Sequence[str]) -> dict[str, Any]:
    options = GlobalHydra.instance().config_loader().get_group_options(GROUP)
    try:
        made = hydra.compose(f"{GROUP}/{name}", list(overrides))
    except MissingConfigException:
        there_are = ", ".join(sorted(set(options) - {*_MADE_UP, "custom"}))
        raise ConfigError(f"{place}={name}: there is no such provider", hint=f"There are: {there_are}.") from None
    return dict(OmegaConf.to_container(made[GROUP]))  # type: ignore[arg-type]
