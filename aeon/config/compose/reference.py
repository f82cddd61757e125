"""What the configuration files offer: groups, options and keys with their comments, read without composing anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aeon.domain.errors import ConfigError
from aeon.files.resources import find_meant, resource_root

_GLOBAL = "@package _global_"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NOT_OFFERED = frozenset({"hydra"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A key of a configuration file: its dotted path, its default as written there, and the comment on it."""

    path: str
    default: Any
    comment: str
    file: Path


def groups(own: Sequence[Path] = ()) -> dict[str, tuple[str, ...]]:
    """Every group with its options, by name, in the packaged configuration and in folders of a person's own."""
    found: dict[str, set[str]] = {}
    for folder in _folders(own):
        for path in folder.glob("*/*.yaml"):
            found.setdefault(path.parent.name, set()).add(path.stem)
    return {name: tuple(sorted(found[name])) for name in sorted(found.keys() - _NOT_OFFERED)}


def entries_of(group: str, own: Sequence[Path] = ()) -> list[Entry]:
    """The keys of a group, from each of its options: the one that is chosen by default first, then what that one is
    based on, then the others by name."""
    first = list(_chosen(group))
    files = [path for folder in _folders(own) for path in (folder / group).glob("*.yaml")]
    ordered = sorted(files, key=lambda path: (first.index(path.stem) if path.stem in first else len(first), path.stem))
    return [entry for path in ordered for entry in _entries(path, group)]


def top_entries(own: Sequence[Path] = ()) -> list[Entry]:
    """The keys that belong to no group."""
    found = [entry for folder in _folders(own) for entry in _entries(folder / "config.yaml", "")]
    return [entry for entry in found if entry.path.partition(".")[0] not in _NOT_OFFERED]


def check_config_dir(config_dir: str | Path | None, config_name: str) -> None:
    """ConfigError when a person's own folder of configuration holds nothing that is looked for there.

    That is the primary file, or an option of a group, of Aeon or of their own.
    """
    folder = Path(config_dir).expanduser() if config_dir is not None else None
    if folder is None or not folder.is_dir():
        return  # one that does not exist is refused where it is searched
    packaged = set(groups()) | {"hydra"}

    def holds(place: Path) -> bool:
        options = place.glob("*/*.yaml")
        return (place / f"{config_name}.yaml").is_file() or any(option.parent.name in packaged for option in options)

    if holds(folder):
        return
    meant = find_meant(folder, "conf", holds)
    if meant is not None or not any(folder.rglob("*.yaml")):
        raise ConfigError(
            f"--config-dir {config_dir}: it holds no configuration (config.yaml, or GROUP/OPTION.yaml)",
            hint=f"Did you mean --config-dir {meant}?"
            if meant
            else "`aeon init DIR` copies the packaged one to DIR/conf.",
        )


def _chosen(group: str) -> Iterator[str]:
    """The option of a group that is chosen by default, and those that it is based on."""
    conf = resource_root() / "conf"
    lists = [part[group] for part in _defaults(conf / "config.yaml") if isinstance(part, dict) and group in part]
    for option in lists[0] if lists and isinstance(lists[0], list) else lists:
        yield str(option)
        yield from (part for part in _defaults(conf / group / f"{option}.yaml") if isinstance(part, str))


def _defaults(path: Path) -> list[Any]:
    values = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER) if path.is_file() else None
    return list(values.get("defaults") or ()) if isinstance(values, dict) else []


def _folders(own: Sequence[Path]) -> tuple[Path, ...]:
    return (*own, resource_root() / "conf")


def _entries(path: Path, group: str) -> Iterator[Entry]:
    """The keys of a file; none of a file that is missing or cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=_LOADER)
    except (OSError, ValueError, yaml.YAMLError):
        return
    if isinstance(root, yaml.MappingNode):
        prefix = "" if text.startswith(f"# {_GLOBAL}") else group
        yield from _of_mapping(root, prefix, text.splitlines(), path)


def _of_mapping(node: yaml.MappingNode, prefix: str, lines: Sequence[str], file: Path) -> Iterator[Entry]:
    for key, value in node.value:
        name = str(key.value)
        if not prefix and name in ("defaults", "hydra"):
            continue
        if name == "defaults" and isinstance(value, yaml.SequenceNode):
            continue
        path = f"{prefix}.{name}" if prefix else name
        comment = _comment(lines, key.start_mark.line)
        yield Entry(path, _value(value), comment, file)
        if isinstance(value, yaml.MappingNode):
            yield from _of_mapping(value, path, lines, file)


def _value(node: yaml.Node) -> Any:
    return _LOADER("").construct_object(node, deep=True)


def _comment(lines: Sequence[str], line: int) -> str:
    """The comment lines straight above a line, and the comment at its end, as one text."""
    above: list[str] = []
    for text in reversed(lines[:line]):
        if not text.lstrip().startswith("#"):
            break
        above.append(text.strip().lstrip("#").strip())
    trailing = re.search(r"\s#\s(.*)$", lines[line])
    return " ".join(_filled([*reversed(above), *([trailing[1]] if trailing else [])]))


def _filled(parts: Iterable[str]) -> list[str]:
    return [part for part in parts if part and part != _GLOBAL]
