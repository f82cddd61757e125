"""Makes the files that checks name absolute, by the folder of the configuration file that names
them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from aeon.config.compose.hydra_private import load_parts
from aeon.config.compose.literal import Composition
from aeon.config.compose.recorded import Key, leaves
from aeon.config.compose.take_over import list_keys

_CHECKS = ("convergence", "checks")


def locate_check_files(cfg: DictConfig, of: Composition, loader: ConfigLoader) -> DictConfig:
    """Return the composed configuration with each relative file of a check absolute that a file of
    configuration names; those of overrides stay relative to the working directory. Raises
    ConfigError."""
    found = {key: files for key, files in _find_files(cfg) if any(map(_is_relative, files))}
    if not found:
        return cfg
    cfg = cfg.copy()
    for key, folder in _find_folders(of, loader).items():
        for place, path in enumerate(found.get(key, ())):
            if _is_relative(path):
                cfg.convergence.checks[key[2]].files[place] = str(folder / path)
    return cfg


def _find_folders(of: Composition, loader: ConfigLoader) -> dict[Key, Path]:
    """Return the folder of the file that names the files of each check, without those that an
    override names."""
    overrides = OverridesParser.create().parse_overrides(list(of.overrides))
    single = [one.input_line or "" for one in overrides if not one.is_sweep_override()]
    folders = {
        key: part.path.absolute().parent
        for part in load_parts(of.with_overrides(single), loader)
        for key, _ in _find_files(part.values)
    }
    for override in overrides:
        for key in list_keys(override):
            folders.pop(key, None)
    return folders


def _find_files(values: Any) -> Iterator[tuple[Key, list[Any]]]:
    """Yield the files of each check, as written, with their key."""
    plain: Any = OmegaConf.to_container(values, resolve=False)
    convergence = plain.get("convergence")
    checks = convergence.get("checks") if isinstance(convergence, dict) else None
    for key, files in leaves(checks if isinstance(checks, dict) else {}, _CHECKS):
        if len(key) == 4 and key[3] == "files" and isinstance(files, list):
            yield key, files


def _is_relative(name: object) -> bool:
    return isinstance(name, str) and not (name.startswith(("${", "~")) or Path(name).is_absolute())
