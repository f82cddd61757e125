"""The project file: `aeon.yaml`, here or above, which sets a folder of configuration and overrides.

Reading it has no effect; what it sets is used once the person trusts its folder
(`aeon.config.trusted_folders`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.config.compose.literal import format_value, is_literal, key_of, quote_override
from aeon.domain.errors import ConfigError
from aeon.files.located_yaml import LocatedYaml

if TYPE_CHECKING:
    from pydantic import BaseModel

    from aeon.domain.values import JsonMapping, JsonObject

FILE = "aeon.yaml"
_FOLDERS = ("prompts.dir", "schemas.dir")
_NAMED = (
    "inputs.",
    "input_files.",
    "input_as.",
    "convergence.criteria.",
    "convergence.checks.",
    "tools.functions.",
    "tools.mcp.servers.",
)
_HINT = "`aeon docs project` describes it; --no-project ignores it."


@dataclass(frozen=True, slots=True)
class Project:
    """A project file as written: its path, the configuration folder that it names, absolute, its
    overrides, and all folders that it names, absolute, by the key that names them."""

    path: Path
    config_dir: Path | None
    overrides: JsonMapping
    folders: Mapping[str, Path]


def find_project(start: Path) -> Path | None:
    """Find the nearest project file, from a folder up to its repository's root (the folder that has
    `.git`). Outside a repository only the folder itself is searched: folders above it may be other
    people's."""
    above = [start, *start.parents]
    root = next((folder for folder in above if (folder / ".git").exists()), start)
    searched = above[: above.index(root) + 1]
    return next((folder / FILE for folder in searched if (folder / FILE).is_file()), None)


def _find_problem(overrides: object) -> str:
    """Return the problem with the overrides of a project file; empty for none."""
    if not isinstance(overrides, dict) or not all(isinstance(name, str) for name in overrides):
        return "overrides must map keys to values, as in `ttl.base: 20`"
    if "trust" in map(key_of, overrides):
        return "trust: only the command line can trust somebody's run"
    return ""


def parse_project(path: Path, data: bytes) -> Project:
    """Parse a project file with the content `data`. Raises ConfigError for one that cannot be read
    or has other keys."""
    values = LocatedYaml(path, data).value or {}
    if not isinstance(values, dict) or not values.keys() <= {"config_dir", "overrides"}:
        raise ConfigError(f"{path}: must be a mapping of config_dir and overrides", hint=_HINT)
    overrides = values.get("overrides") or {}
    if problem := _find_problem(overrides):
        raise ConfigError(f"{path}: {problem}", hint=_HINT)
    named = {"config_dir": values.get("config_dir"), **_find_folders(overrides)}
    folders = {
        key: _folder(path, key, str(name)) for key, name in named.items() if name is not None
    }
    return Project(path, folders.get("config_dir"), overrides, folders)


def _find_folders(overrides: JsonMapping) -> JsonObject:
    """Return the folders that overrides name, by their keys, written `prompts.dir: x` or `prompts:
    {dir: x}`."""
    found: JsonObject = {}
    for key, value in overrides.items():
        for name in _FOLDERS:
            group, _, part = name.partition(".")
            if key_of(key) == name:
                found[name] = value
            elif key_of(key) == group and isinstance(value, dict) and part in value:
                found[name] = value[part]
    return found


def _folder(path: Path, key: str, named: str) -> Path:
    project = path.parent.resolve()
    folder = (project / named).resolve()
    if not folder.is_dir() or project == folder or not folder.is_relative_to(project):
        raise ConfigError(
            f"{path}: {key}: {named}: there is no such folder within the project", hint=_HINT
        )
    return folder


def list_overrides(project: Project, given: Sequence[str]) -> list[str]:
    """Return the overrides of a project in Hydra's grammar, paths made absolute, without those of
    the groups that `given` chooses."""
    chosen = {key_of(text) for text in given if "." not in key_of(text)}
    return [
        _override(project, key, value)
        for key, value in project.overrides.items()
        if key_of(key).partition(".")[0] not in chosen
    ]


def describe_project(project: Project) -> str:
    """Describe the settings of the project, on one line."""
    parts = [f"config_dir={project.config_dir.name}"] if project.config_dir else []
    parts += [f"{key}={_show_value(value)}" for key, value in project.overrides.items()]
    return (
        f"Project {project.path}: {', '.join(parts) or 'nothing is set'} "
        "(--no-project leaves it out)"
    )


def _show_value(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    return "".join(ch if ch.isprintable() else "?" for ch in text)


@cache
def path_names() -> frozenset[str]:
    """Return the names of the settings that hold a file or a folder, in any group."""
    from aeon.config.settings import Settings  # takes time, and only a project file needs it
    from aeon.files.explain import models_in

    found: set[str] = set()
    models: list[type[BaseModel]] = [Settings]
    for model in models:
        for name, info in model.model_fields.items():
            if "Path" in str(info.annotation):
                found |= {name, info.alias or name}
            models += [inner for inner, _ in models_in(info.annotation)]
    return frozenset(found)


def _override(project: Project, key: str, value: object) -> str:
    """Return an override in Hydra's grammar; an entry with a user-chosen name is added whether or
    not it exists."""
    if key.startswith("tools.approval."):
        return quote_override(f"{key}={value}")
    if isinstance(value, str) and path_names().intersection(key.split(".")):
        value = _make_absolute(project, value)
    if key.startswith("convergence.checks"):
        value = _make_files_absolute(project, value, is_files=key.endswith(".files"))
    added = "++" if key.startswith(_NAMED) else ""
    return f"{added}{key}={format_value(value, interpolated=not is_literal(key))}"


def _make_absolute(project: Project, named: str) -> str:
    if named.startswith("${") or "://" in named:
        return named
    return str(project.path.parent.resolve() / Path(named).expanduser())


def _make_files_absolute(project: Project, value: object, *, is_files: bool) -> object:
    """Return the settings of checks, or a part of them, with their files as absolute paths."""
    if isinstance(value, dict):
        return {
            name: _make_files_absolute(project, part, is_files=name == "files")
            for name, part in value.items()
        }
    if is_files and isinstance(value, list):
        return [_make_absolute(project, str(part)) for part in value]
    return value


def is_of_recorded_run(given: Sequence[str]) -> bool:
    """Check whether overrides resume or replay a run or a multirun, which brings its own
    settings."""
    values = {key_of(text): text.partition("=")[2] for text in given}
    if "resume" in values or "sweep.resume" in values:
        return True
    return "replay" in values.get("store.mode", values.get("store", ""))
