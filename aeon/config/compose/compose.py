"""Composes the configuration with Hydra, without leaving a trace in Hydra's global state.

An element of `provider.fallbacks` is the name of a provider file, or a mapping whose `provider` is
that name and whose other keys override the file's; it is replaced by the endpoint that the file
configures.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import hydra
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

from aeon.config.compose.check_files import locate_check_files
from aeon.config.compose.composed import Composed
from aeon.config.compose.environment_values import mask_environment_values
from aeon.config.compose.hydra_private import compose_values, hydra_in
from aeon.config.compose.literal import Composition, key_of
from aeon.config.compose.problems import HYDRA_ERRORS, NOT_A_KEY, composition_error
from aeon.config.compose.reference import check_config_dir
from aeon.config.compose.take_over import take_over
from aeon.domain.errors import ConfigError

mask_environment_values()
_OF_ALL_ENDPOINTS = ("fallbacks", "patience_seconds")
_FALLBACK = (
    "A fallback is a provider of a model: a name, as in "
    "[groq], or [{provider: ollama, model: llama3.1}]."
)


def compose(of: Composition, *, with_hydra: bool = False) -> Composed:
    """Compose the configuration, with Hydra's own part if `with_hydra`. Raises ConfigError."""
    check_config_dir(of.config_dir, of.config_name)
    added: frozenset[str] = frozenset()
    with hydra_in(of.config_dir) as initialised:
        # Hydra stops at the first unknown key. Each round adds it, so that all are reported.
        while True:
            given = add_unknown_keys(of.overrides, added)
            try:
                made = (
                    hydra.compose(of.config_name, given, return_hydra_config=True)
                    if with_hydra
                    else compose_values(of, given, initialised.config_loader)
                )
                given_all = of.with_overrides(given)
                values = _add_recorded(made, given_all, initialised.config_loader)
                return Composed(values, of, added)
            except HYDRA_ERRORS as error:
                unknown = NOT_A_KEY.match(str(error))
                keys = {text.partition("=")[0] for text in given}
                if unknown is None or unknown[1] not in keys or unknown[1].startswith("hydra."):
                    raise composition_error(error, given) from None
                added |= {unknown[1]}


def complete(cfg: DictConfig, of: Composition) -> DictConfig:
    """Complete a configuration that Hydra itself has composed with its fallbacks, on top of the
    recorded settings. Raises ConfigError."""
    with hydra_in(of.config_dir) as initialised:
        return _add_recorded(cfg, of, initialised.config_loader)


def _add_recorded(cfg: DictConfig, of: Composition, loader: ConfigLoader) -> DictConfig:
    cfg = _fill_in(cfg, of, loader)
    if of.recorded is None:
        return cfg

    def compose_without(overrides: Sequence[str]) -> DictConfig:
        made = compose_values(of, overrides, loader)
        return _fill_in(made, of.with_overrides(overrides), loader)

    overrides = OverridesParser.create().parse_overrides(list(of.overrides))
    groups = set(loader.list_groups(""))
    return take_over(cfg, of.recorded, overrides, groups, compose_without)


def _fill_in(cfg: DictConfig, of: Composition, loader: ConfigLoader) -> DictConfig:
    return locate_check_files(_with_endpoints(cfg, of.overrides), of, loader)


def add_unknown_keys(overrides: Sequence[str], keys: Collection[str]) -> list[str]:
    """Return the overrides, those of `keys` in the form (`++`) in which Hydra accepts an unknown
    key."""
    return [f"++{text}" if text.partition("=")[0] in keys else text for text in overrides]


def parse(override: str) -> Override:
    """Parse an override as Hydra does. Raises ConfigError for one that cannot be read."""
    try:
        return OverridesParser.create().parse_overrides([override])[0]
    except HYDRA_ERRORS as error:
        raise composition_error(error) from None


def without_sweeps(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that give one value each. Raises ConfigError for one that cannot be
    read."""
    return [text for text in overrides if not parse(text).is_sweep_override()]


def _with_endpoints(cfg: DictConfig, overrides: Sequence[str]) -> DictConfig:
    provider = cfg.get("provider")
    named = provider.get("fallbacks") if isinstance(provider, DictConfig) else None
    if not isinstance(named, ListConfig) or all(map(_is_endpoint, named)):
        return cfg
    # A fallback may be a file in a folder that only the search path names.
    search = [text for text in overrides if key_of(text) == "hydra.searchpath"]
    cfg = cfg.copy()
    with open_dict(cfg):
        cfg.provider.fallbacks = [
            item if _is_endpoint(item) else _endpoint(item, f"provider.fallbacks.{index}", search)
            for index, item in enumerate(named)
        ]
    return cfg


def _is_endpoint(item: object) -> bool:
    return isinstance(item, Mapping) and "kind" in item


def _endpoint(item: object, place: str, search: list[str]) -> Any:
    given: Any = (
        OmegaConf.to_container(item) if isinstance(item, DictConfig) else {"provider": item}
    )
    name = given.pop("provider", None)
    try:
        if not isinstance(name, str):
            raise ValueError("no provider is named")
        if name in ("auto", "simulated", "custom"):
            raise ValueError("a fallback must call a model")
        if "fallbacks" in given:
            raise ValueError("a fallback has none of its own")
        made: Any = OmegaConf.to_container(hydra.compose(f"provider/{name}", search).provider)
    except (ValueError, HydraException) as error:
        raise ConfigError(
            f"{place}={item if name is None else name}: {error}", hint=_FALLBACK
        ) from None
    for name in _OF_ALL_ENDPOINTS:
        made.pop(name, None)
    return OmegaConf.merge(made, given)
