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
    values = LocatedYaml(path).value
    values = {} if values is None else values
    if not isinstance(values, dict):
        raise _unusable(path, f"must be a mapping of {' and '.join(KEYS)}")
    if unknown := [str(name) for name in values if name not in KEYS]:
        raise _unusable(path, f"{unknown[0]}: there is no such key (there are: {', '.join(KEYS)})")
    named, overrides = values.get("config_dir"), values.get("overrides") or {}
    folder = (path.parent / str(named)).resolve() if named is not None else None
    if folder is not None and not (folder.is_dir() and folder.is_relative_to(path.parent.resolve())):
        raise _unusable(path, f"config_dir={named}: there is no such folder within the project")
    if not isinstance(overrides, dict) or not all(isinstance(name, str) for name in overrides):
        raise _unusable(path, "overrides must map keys to values, as in `ttl.base: 20`")
    return Project(path, folder, overrides)


def _unusable(path: Path, problem: str) -> ConfigError:
    hint = "`aeon docs project` describes it; --no-project leaves the file out."
    return ConfigError(f"{path}: {problem}", hint=hint)
