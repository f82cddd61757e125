"""Composing in the process of the tests: the packaged files of one choice of options are merged once.

Hydra takes 0.1 s of CPU to merge the packaged files, and thousands of tests compose the same ones. Everything else stays
Hydra's: the overrides are read and applied by it, and what has a folder of its own is read each time.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hydra
import pytest
from hydra._internal import defaults_list
from hydra._internal.config_loader_impl import ConfigLoaderImpl

from aeon.config.compose.hydra_private import packaged_config_dir

PACKAGED = str(packaged_config_dir())
OWN_OVERRIDES = "config_overrides"
"""What `Overrides` has of the values that are given, which are no part of a choice of options."""


@contextmanager
def packaged_files_merged_once() -> Iterator[None]:
    """While the block lasts, Hydra remembers what it has made of the packaged files."""
    if not hydra.__version__.startswith("1.3."):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            defaults_list,
            "_create_defaults_list",
            _remember_defaults(defaults_list._create_defaults_list),
        )
        patch.setattr(
            ConfigLoaderImpl,
            "_compose_config_from_defaults_list",
            _remember_merged(ConfigLoaderImpl._compose_config_from_defaults_list),
        )
        yield


def _is_packaged(repo: Any) -> bool:
    """Whether all files come from packages, which do not change."""
    files = [source.path for source in repo.get_sources() if source.scheme() == "file"]
    return all(path == PACKAGED for path in files)


def _name_sources(repo: Any) -> list[str]:
    return [f"{source.provider} {source.full_path()}" for source in repo.get_sources()]


def _remember_defaults(usual: Callable[..., Any]) -> Callable[..., Any]:
    remembered: dict[str, tuple[Any, dict[str, Any]]] = {}

    def create_defaults_list(
        repo: Any, config_name: str | None, overrides: Any, **options: bool
    ) -> Any:
        chosen = {name: each for name, each in vars(overrides).items() if name != OWN_OVERRIDES}
        added = [vars(each) for each in overrides.append_group_defaults]
        key = repr((_name_sources(repo), config_name, options, chosen, added))
        if not _is_packaged(repo):
            return usual(repo, config_name, overrides, **options)
        if key not in remembered:
            made = usual(repo, config_name, overrides, **options)
            state = {name: vars(overrides)[name] for name in chosen}
            remembered[key] = (made, copy.deepcopy(state))
            return made
        made, state = remembered[key]
        vars(overrides).update(copy.deepcopy(state))
        return made

    return create_defaults_list


def _remember_merged(usual: Callable[..., Any]) -> Callable[..., Any]:
    remembered: dict[str, bytes] = {}

    def compose_config(self: ConfigLoaderImpl, defaults: list[Any], repo: Any) -> Any:
        if not _is_packaged(repo):
            return usual(self, defaults, repo)
        key = repr((_name_sources(repo), [vars(each) for each in defaults]))
        if key not in remembered:
            remembered[key] = pickle.dumps(usual(self, defaults, repo))
        return pickle.loads(remembered[key])

    return compose_config
