"""The files and folders that a project's configuration names in its folder: folders of prompts,
schemas and configuration, Python modules with their imports, programs, files. Found in the texts
alone; nothing is composed or imported."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import yaml

from aeon.domain.errors import ConfigError
from aeon.files.fast_yaml import FastLoader
from aeon.files.located_yaml import LocatedYaml
from aeon.files.pinned import words_as_files

Text = tuple[tuple[str, ...], str]
"""The keys under which a text stands, outermost first, and the text."""

_OF_FOLDERS = frozenset({"dir", "searchpath", "config_dir"})
_OF_COMMANDS = frozenset({"command", "args", "servers"})
# Inputs, and files that runs write: they start nothing, and change from run to run.
_OF_DATA = frozenset(
    {"task", "task_file", "inputs", "input_files", "path", "model_path", "batch_journal", "resume"}
)
_OBJECT = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):[A-Za-z_][\w.]*", re.ASCII)
_SCHEME = "file://"


def read_texts(path: Path, data: bytes) -> list[Text]:
    """Return the texts of a YAML file. Raises ConfigError for one that cannot be read."""
    try:
        root = yaml.compose(data, Loader=FastLoader)
    except (ValueError, RecursionError, yaml.YAMLError):
        LocatedYaml(path, data)  # raises ConfigError with the line
        raise ConfigError(f"{path}: this YAML cannot be read") from None
    found: list[Text] = []
    seen: set[tuple[int, tuple[str, ...]]] = set()
    open_nodes: list[tuple[tuple[str, ...], yaml.Node]] = [((), root)] if root else []
    while open_nodes:
        keys, node = open_nodes.pop()
        # An alias is read once for each key above it, and the key above that.
        place = (id(node), keys[-2:])
        if place in seen:
            continue
        seen.add(place)
        if isinstance(node, yaml.ScalarNode):
            found.append((keys, node.value))
        else:
            open_nodes += _list_children(keys, node)
    return found


def _list_children(
    keys: tuple[str, ...], node: yaml.Node
) -> Iterator[tuple[tuple[str, ...], yaml.Node]]:
    """Yield the nodes below a list or a mapping, each with the keys above it."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield keys, item
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            named = re.split(r"[./@]", key.value) if isinstance(key.value, str) else []
            yield (*keys, *named), value
            yield keys, key


def find_named_folders(texts: Iterable[Text], folder: Path) -> Iterator[Path]:
    """Yield the folders below a folder that texts name as folders of prompts, of schemas or of
    configuration."""
    for keys, text in texts:
        if not _OF_FOLDERS.intersection(keys[-1:]) or set(keys[-2:-1]) & {"run", "sweep"}:
            continue
        place = _below(folder, text.removeprefix(_SCHEME))
        if place is not None and place != folder and place.is_dir():
            yield place


def find_named_files(texts: Iterable[Text], folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that texts name: by their path, as a Python module in
    `module:object`, or as words of a command; for Python files also their imports from the folder.
    """
    texts = list(texts)
    found = list(_find_named_directly(texts, folder))
    # The list grows in the loop: an imported file has imports of its own.
    for path in found:
        yield path
        if path.suffix == ".py":
            found += [each for each in _find_imported_files(path, folder) if each not in found]


def _find_named_directly(texts: Sequence[Text], folder: Path) -> Iterator[Path]:
    of_programs = [_below(folder, text) for keys, text in texts if keys[-1:] == ("cwd",)]
    starts = [folder, *(place for place in of_programs if place is not None)]
    for keys, text in texts:
        # Wherever it stands: only too much is hashed then, not too little.
        if _OBJECT.fullmatch(text):
            yield from module_files(text.partition(":")[0], folder)
        if not _OF_DATA.intersection(keys):
            is_of_command = bool(_OF_COMMANDS.intersection(keys))
            yield from _find_in_text(text, folder, starts if is_of_command else ())


def _find_in_text(text: str, folder: Path, starts: Sequence[Path]) -> Iterator[Path]:
    """Yield the files below a folder that a text names by path, or as words of a command that
    begins in one of the folders `starts`."""
    if starts:
        places = words_as_files([text], starts)
        yield from (path for path in places if path.is_relative_to(folder))
    path = _below(folder, text)
    if path is not None and path.is_file():
        yield path


def module_files(module: str, folder: Path) -> Iterator[Path]:
    """Yield the files of a Python module below a folder, those of its parent packages first."""
    parts = module.split(".")
    for length in range(1, len(parts) + 1):
        stem = folder.joinpath(*parts[:length])
        names = (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))
        yield from (path for path in names if path.is_file())


def _find_imported_files(path: Path, folder: Path) -> Iterator[Path]:
    """Yield the files below a folder that a Python file imports, as far as its text shows."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return  # such a file cannot run
    for level, name in _list_imports(tree):
        # A program imports from its own folder, a module from the project's.
        starts = [path.parents[level - 1]] if level else [folder, path.parent]
        for start in starts:
            if name and start.is_relative_to(folder):
                yield from module_files(name, start)
        yield from _packages_around(path, folder)


def _list_imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the modules that may be imported, each with the number of folders above in which it is
    searched for, 0 for the usual places."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield node.level, module
            for alias in node.names:
                yield node.level, f"{module}.{alias.name}".strip(".")


def _packages_around(path: Path, folder: Path) -> Iterator[Path]:
    for above in path.parents:
        if above == folder:
            return
        if (above / "__init__.py").is_file():
            yield above / "__init__.py"


def _below(folder: Path, text: str) -> Path | None:
    """Return the path that a text names below a folder, if it is one."""
    # A prompt or a task in the configuration names no file.
    if not text or len(text) > 1_000 or "\0" in text or "\n" in text:
        return None
    try:
        place = (folder / text).resolve()
    except (OSError, RuntimeError):  # a cycle of links
        return None
    return place if place.is_relative_to(folder) else None
