"""The project file: `aeon.yaml`, here or above, which sets a folder of configuration and overrides.

It may come with a repository of strangers: it may not name a secret or where one is sent, read files outside the
project, or change how the program is started. Help and completion read it too, without the settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from aeon.config.compose.literal import format_value, key_of, quote_override
from aeon.domain.errors import ConfigError
from aeon.files.located_yaml import LocatedYaml
from aeon.files.resources import resource_root

FILE = "aeon.yaml"
_PLAIN = re.compile(
    r"[\w./*?+%|-]+( [\w./*?+%|-]+)*"
)  # it stays one name where Hydra's grammar reads it
_PACKAGE = re.compile(r"#\s*@package\s+(?!_global_|_group_)(\S+)")
_NAMED = (
    "inputs.",
    "input_files.",
    "convergence.criteria.",
    "tools.functions.",
    "tools.mcp.servers.",
)


@dataclass(frozen=True, slots=True)
class Project:
    """A project file as written: its path, the folder of configuration that it names, absolute, and its overrides."""

    path: Path
    config_dir: Path | None
    overrides: Mapping[str, Any]


def find_project(start: Path) -> Path | None:
    """The nearest project file, from a folder up to its repository's root (the folder that has `.git`).
    Outside of a repository only the folder itself is looked in: above it are folders of other people."""
    above = [start, *start.parents]
    root = next((folder for folder in above if (folder / ".git").exists()), start)
    searched = above[: above.index(root) + 1]
    return next((folder / FILE for folder in searched if (folder / FILE).is_file()), None)


def read_project(path: Path) -> Project:
    """The project that a file describes. Raises ConfigError for one that cannot be read or says something else."""
    values, problem = LocatedYaml(path).value or {}, ""
    is_mapping = isinstance(values, dict) and values.keys() <= {"config_dir", "overrides"}
    named, overrides = (
        (values.get("config_dir"), values.get("overrides") or {}) if is_mapping else (None, {})
    )
    folder = (path.parent / str(named)).resolve() if named is not None else None
    if not is_mapping:
        problem = "must be a mapping of config_dir and overrides"
    elif not isinstance(overrides, dict) or not all(isinstance(name, str) for name in overrides):
        problem = "overrides must map keys to values, as in `ttl.base: 20`"
    elif folder is not None and not (
        folder.is_dir() and folder.is_relative_to(path.parent.resolve())
    ):
        problem = f"config_dir={named}: there is no such folder within the project"
    if problem:
        raise ConfigError(
            f"{path}: {problem}",
            hint="`aeon docs project` describes it; --no-project leaves it out.",
        )
    return Project(path, folder, overrides)


def check_overrides(project: Project, given: Sequence[str]) -> list[str]:
    """The overrides of a project as Hydra takes them, paths made absolute, but for the groups that `given` chooses.
    Raises ConfigError for the first thing that a project may not say, in the file or in its folder of configuration."""
    for file, path, value in _list_values(project):
        is_plain = file != project.path or all(map(_PLAIN.fullmatch, path))
        if why := _refusal(project, path, value) or (
            "" if is_plain else "is no plain name, and could say anything"
        ):
            key = _show_value(".".join(path))
            raise ConfigError(
                f"{file}: {key}: {_show_value(why)}; a project file may not do that",
                hint=f"Say it on the command line ({key}=..., or --config-dir DIR), or use --no-project.",
            )
    chosen = {key_of(text) for text in given if "." not in key_of(text)}
    said = project.overrides.items()
    return [
        _override(project, key, value)
        for key, value in said
        if key_of(key).partition(".")[0] not in chosen
    ]


def describe_project(project: Project) -> Iterator[str]:
    """What the project sets, and what of its folder may start programs (tools, an own adapter): a line each."""
    said = [f"config_dir={project.config_dir.name}"] if project.config_dir else []
    said += [f"{key}={_show_value(value)}" for key, value in project.overrides.items()]
    yield f"Project {project.path}: {', '.join(said) or 'nothing is set'} (--no-project leaves it out)"
    for file, path, value in _list_values(project):
        if file != project.path and {
            "tools",
            "adapter",
            "client",
            "token_provider",
            "backend",
            "options",
        } & {
            file.parent.name,
            *path,
        }:
            yield f"  {file.relative_to(project.path.parent.resolve())}: {'.'.join(path)}={_show_value(value)}"


def _show_value(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=True, default=str)
    return "".join(ch if ch.isprintable() else "?" for ch in text)


def _refusal(project: Project, path: tuple[str, ...], value: Any) -> str:
    """Why a project may not say a value; empty if it may."""
    from aeon.domain.values import is_loopback  # takes time, and only a project file needs it

    defaults = path[0] == "defaults" and re.search("@|hydra", f"{path} {value}")
    if (
        defaults
        or set("~@=") & set(path[0])
        or path[0].partition("/")[0] in ("", "hydra", "resume")
    ):
        return "says how the program is started"
    if any(part.endswith("_env") for part in path) or ("servers" in path and "env" in path):
        return "names a secret, or where one is found"
    if isinstance(value, str) and "${" in value:
        return "an interpolation could name a secret"
    if path[-1] == "base_url" and value is not None and not is_loopback(str(value)):
        return f"{value} would be sent your key"
    if isinstance(value, str) and path_names().intersection(path):
        place = (project.path.parent / value).resolve()
        secret = any(part.startswith(".env") for part in (*Path(value).parts, place.name))
        if (
            secret
            or value.startswith("~")
            or not place.is_relative_to(project.path.parent.resolve())
        ):
            return f"{value} is not within the project's folder, or holds secrets"
    return ""


@cache
def path_names() -> frozenset[str]:
    """The names of the settings that hold a file or a folder, whatever group they are in."""
    from aeon.config.settings import Settings  # takes time, and only a project file needs it
    from aeon.files.explain import models_in

    found: set[str] = set()
    models: list[Any] = [Settings]
    for model in models:
        for name, info in model.model_fields.items():
            if "Path" in str(info.annotation):
                found |= {name, info.alias or name}
            models += [inner for inner, _ in models_in(info.annotation)]
    return frozenset(found)


def _override(project: Project, key: str, value: Any) -> str:
    """An override in Hydra's grammar; an entry that a person names is added whether or not it is there."""
    if key.startswith("tools.approval."):
        return quote_override(f"{key}={value}")
    if isinstance(value, str) and path_names().intersection(key.split(".")):
        value = str((project.path.parent / value).resolve())
    return f"{'++' if key.startswith(_NAMED) else ''}{key}={format_value(value)}"


def _list_values(project: Project) -> Iterator[tuple[Path, tuple[str, ...], Any]]:
    """Every single value of the project file, and what its folder says that the packaged files do not, by file."""
    for key, value in project.overrides.items():
        yield from (
            (project.path, *leaf) for leaf in _leaves(value, tuple(key.lstrip("+").split(".")))
        )
    for file in sorted(project.config_dir.rglob("*")) if project.config_dir else ():
        name = file.relative_to(project.config_dir or "")
        packaged = resource_root() / "conf" / name
        text, twin = _text(file), _text(packaged)
        reaches = text != twin and ("hydra" in name.parts or _PACKAGE.search(text))
        if reaches or (file.is_symlink() and file.is_dir()):
            yield file, ("hydra",), "a file of Hydra's, keys out of their group, or a linked folder"
        elif text != twin:
            usual = list(map(repr, _leaves(LocatedYaml(packaged).value))) if twin else []
            yield from (
                (file, *leaf)
                for leaf in _leaves(LocatedYaml(file).value)
                if repr(leaf) not in usual
            )


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.suffix == ".yaml" and path.is_file() else ""


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every single value, with the keys that lead to it; empty mappings and lists are values."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, (*path, *str(name).split(".")))
    elif isinstance(value, list) and value:
        for item in value:
            yield from _leaves(item, path)
    else:
        yield path or ("",), value


def is_of_recorded_run(given: Sequence[str]) -> bool:
    """Whether overrides resume or replay a run, which brings what it was given itself."""
    values = {key_of(text): text.partition("=")[2] for text in given}
    return "resume" in values or "replay" in values.get("store.mode", values.get("store", ""))
