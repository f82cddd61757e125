"""The contents of the configuration files: groups, options and keys with their comments, read
without composing anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aeon.domain.errors import ConfigError
from aeon.files.fast_yaml import read_yaml
from aeon.files.located_yaml import LocatedYaml
from aeon.files.resources import find_meant, resource_root

_GLOBAL = "@package _global_"
_BASIC = "(basic)"


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """A key of a configuration file: its dotted path, its default as written there, its comment,
    and whether it is marked as one of the few that suffice for most work."""

    path: str
    default: Any
    comment: str
    file: Path
    is_basic: bool = False


def groups(own: Sequence[Path] = ()) -> dict[str, tuple[str, ...]]:
    """Return every group with its options, by name, in the packaged configuration and in the user's
    own folders."""
    files = sorted(
        {
            (path.parent.name, path.stem)
            for folder in _folders(own)
            for path in folder.glob("*/*.yaml")
        }
    )
    names = dict.fromkeys(group for group, _ in files if group != "hydra")
    return {name: tuple(option for group, option in files if group == name) for name in names}


def entries_of(group: str, own: Sequence[Path] = ()) -> list[KeyEntry]:
    """Return the keys of a group, from each of its options: the default option first, then the
    options it is based on, then the others by name."""
    first = _list_first_options(group)
    files = [path for folder in _folders(own) for path in (folder / group).glob("*.yaml")]

    def place(path: Path) -> tuple[int, str]:
        number = first.index(path.stem) if path.stem in first else len(first)
        return number, path.stem

    return [entry for path in sorted(files, key=place) for entry in _entries(path, group)]


def _list_first_options(group: str) -> list[str]:
    """Return the default options of a group, then the options that those are based on."""
    conf = resource_root() / "conf"
    chosen: list[str] = []
    for part in _defaults(conf / "config.yaml"):
        if isinstance(part, dict) and group in part:
            option = part[group]
            chosen += option if isinstance(option, list) else [option]
    for option in tuple(chosen):
        based_on = _defaults(conf / group / f"{option}.yaml")
        chosen += [part for part in based_on if isinstance(part, str)]
    return chosen


def top_entries(own: Sequence[Path] = ()) -> list[KeyEntry]:
    """Return the keys that belong to no group."""
    return [entry for folder in _folders(own) for entry in _entries(folder / "config.yaml", "")]


def check_config_dir(config_dir: str | Path | None, config_name: str) -> None:
    """Raise ConfigError when the user's own configuration folder does not exist, or holds no
    configuration; the message names the likely folder, if there is one."""
    if config_dir is None:
        return
    folder = Path(config_dir).expanduser()
    copy_hint = "`aeon init DIR` copies the packaged one to DIR/conf."
    if not folder.is_dir():
        raise ConfigError(f"{folder}: there is no such configuration folder", hint=copy_hint)
    options = (path for path in folder.glob("*/*.yaml") if path.stem != config_name)
    if (folder / f"{config_name}.yaml").is_file() or any(options):
        return
    packaged = {*groups(), "hydra"}

    def is_usable(place: Path) -> bool:
        # Any folder of YAML files looks like a group: the right one has one of Aeon's groups.
        names = {path.parent.name for path in place.glob("*/*.yaml")}
        return (place / f"{config_name}.yaml").is_file() or bool(names & packaged)

    meant = find_meant(folder, "conf", is_usable)
    raise ConfigError(
        f"--config-dir {config_dir}: holds no configuration "
        f"({config_name}.yaml, or GROUP/OPTION.yaml)",
        hint=f"Did you mean --config-dir {meant}?" if meant else copy_hint,
    )


def _defaults(path: Path) -> list[Any]:
    values = read_yaml(path) if path.is_file() else None
    return list(values.get("defaults") or ()) if isinstance(values, dict) else []


def _folders(own: Sequence[Path]) -> tuple[Path, ...]:
    return (*own, resource_root() / "conf")


def _entries(path: Path, group: str) -> Iterator[KeyEntry]:
    try:
        text = path.read_text(encoding="utf-8")
        document = LocatedYaml(path, text.encode())
    except (OSError, ValueError, ConfigError):
        return
    if isinstance(document.value, dict):
        prefix = "" if not group or text.startswith(f"# {_GLOBAL}") else f"{group}."
        lines = text.splitlines()
        for place, value in _places(document.value, ()):
            if place[0] in ("defaults", "hydra"):
                continue
            comment = _comment(lines, document.key_position(place).line - 1)
            explanation = comment.removesuffix(_BASIC).rstrip()
            is_basic = comment != explanation
            yield KeyEntry(prefix + ".".join(place), value, explanation, path, is_basic)


def _places(
    values: Mapping[Any, Any], around: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every key in values, with the keys around it, before those in its own value."""
    for key, value in values.items():
        place = (*around, str(key))
        yield place, value
        if isinstance(value, dict):
            yield from _places(value, place)


def _comment(lines: Sequence[str], line: int) -> str:
    start = line
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    trailing = re.search(r"\s#\s(.*)$", lines[line])
    parts = [text.strip().lstrip("#").strip() for text in lines[start:line]] + (
        [trailing[1]] if trailing else []
    )
    return " ".join(part for part in parts if part and part != _GLOBAL)
