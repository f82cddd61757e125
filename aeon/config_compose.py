"""Composing the configuration with Hydra, without leaving a trace in Hydra's global state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import hydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from hydra.version import VersionBase
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from aeon.config_problems import composition_error
from aeon.errors import ConfigError
from aeon.resources import resource_root

CONFIG_NAME = "config"
_NOT_A_KEY = re.compile(r"Could not override '([^']+)'")


def packaged_config_dir() -> Path:
    """The folder of the packaged configuration."""
    return resource_root() / "conf"


def compose(
    overrides: Sequence[str] = (),
    config_dir: str | Path | None = None,
    *,
    config_name: str = CONFIG_NAME,
    with_hydra: bool = False,
) -> DictConfig:
    """Compose the configuration; files in `config_dir` come before the packaged ones of the same name.

    A key that does not exist is composed nevertheless, so that validation can report it together with every other
    problem. Raises ConfigError for everything Hydra refuses.
    """
    given = list(overrides)
    for _ in range(len(given) + 1):
        try:
            return _compose(given, config_dir, config_name, with_hydra)
        except (HydraException, OmegaConfBaseException) as error:
            index = _position_of_unknown_key(str(error), given)
            if index is None:
                raise composition_error(error) from None
            given[index] = f"++{given[index]}"
    raise ConfigError("the overrides cannot be composed")


def _compose(overrides: list[str], config_dir: str | Path | None, config_name: str, with_hydra: bool) -> DictConfig:
    main = Path(config_dir).resolve() if config_dir is not None else packaged_config_dir()
    if not main.is_dir():
        raise ConfigError(f"{config_dir}: there is no such configuration folder")
    if config_dir is not None:
        overrides = _with_packaged(overrides)
    with _version_restored(), hydra.initialize_config_dir(str(main), job_name="aeon", version_base="1.3"):
        return hydra.compose(config_name, overrides, return_hydra_config=with_hydra)


def _with_packaged(overrides: list[str]) -> list[str]:
    """The overrides with the packaged configuration at the end of Hydra's search path, after a person's own entries."""
    own = [override for override in overrides if override.lstrip("+").startswith("hydra.searchpath=")]
    paths = [path for override in own for path in (OverridesParser.create().parse_override(override).value() or ())]
    rest = [override for override in overrides if override not in own]
    listed = ",".join(f"'{path}'" for path in (*paths, f"file://{packaged_config_dir()}"))
    return [*rest, f"hydra.searchpath=[{listed}]"]


def _position_of_unknown_key(message: str, overrides: Sequence[str]) -> int | None:
    match = _NOT_A_KEY.search(message)
    if match is None:
        return None
    return next((i for i, text in enumerate(overrides) if text.startswith(f"{match[1]}=")), None)


@contextmanager
def _version_restored() -> Iterator[None]:
    version = VersionBase.instance()
    before = version.getbase()
    try:
        yield
    finally:
        version.version_base = before
