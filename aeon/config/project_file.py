"""The project file: `aeon.yaml`, here or above, which sets a folder of configuration and overrides.

Imports little, since help and completion look for it too. What a project may not say is in `project_check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.files.located_yaml import LocatedYaml

FILE = "aeon.yaml"
KEYS = ("config_dir", "overrides")
_ADVICE = "`aeon docs project` describes it; --no-project leaves the file out."


@dataclass(frozen=True, slots=True)
class Project:
    """A project file as written: its path, the folder of configuration that it names, absolute, and its overrides."""

    path: Path
    config_dir: Path | None = None
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """The folder that the file is in, and that its paths are relative to."""
        return self.path.parent


def find_project(start: Path) -> Path | None:
    """The nearest project file, from a folder up to its repository's root (the folder that has `.git`).

    Outside of a repository only the folder itself is looked in: above it are folders of other people.
    """
    above = [start, *start.parents]
    root = next((folder for folder in above if (folder / ".git").exists()), start)
    searched = above[: above.index(root) + 1]
    return next((folder / FILE for folder in searched if (folder / FILE).is_file()), None)


def read_project(path: Path) -> Project:
    """The project that a file describes. Raises ConfigError for one that cannot be read or says something else."""
    try:
        values = LocatedYaml(path).value
    except ConfigError as error:
        raise ConfigError(error.message, hint=_ADVICE) from None
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: must be a mapping of {' and '.join(KEYS)}", hint=_ADVICE)
    if unknown := [str(name) for name in values if name not in KEYS]:
        raise ConfigError(f"{path}: {unknown[0]}: there is no such key (there are: {', '.join(KEYS)})", hint=_ADVICE)
    folder, overrides = values.get("config_dir"), values.get("overrides") or {}
    if folder is not None and not isinstance(folder, str):
        raise ConfigError(f"{path}: config_dir must be the name of a folder", hint=_ADVICE)
    if not isinstance(overrides, dict) or not all(isinstance(name, str) for name in overrides):
        raise ConfigError(f"{path}: overrides must map keys to values, as in `ttl.base: 20`", hint=_ADVICE)
    return Project(path, _inside(path, folder) if folder is not None else None, overrides)


def _inside(path: Path, folder: str) -> Path:
    place = (path.parent / folder).resolve()
    if not place.is_relative_to(path.parent.resolve()):
        raise ConfigError(f"{path}: config_dir={folder}: is not within the project's folder", hint=_ADVICE)
    if not place.is_dir():
        raise ConfigError(f"{path}: config_dir={folder}: there is no such folder", hint=_ADVICE)
    return place
