"""YAML that remembers on which line each value stands, so that a message about a value can say where to look."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from aeon.errors import ConfigError

Place = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Plain values only, those that JSON has too: a date stays text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class LocatedYaml:
    """The value of a YAML file and the lines of its parts. Raises ConfigError, naming file and line.

    Refused are: no such file, text that is not UTF-8 or no YAML, and a key that stands twice in one mapping.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[Place, int] = {(): 1}
        text = _text_of(path)
        try:
            self.value: Any = self._read(text)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise ConfigError(f"{path}:{mark.line + 1 if mark else 1}: {error.problem}", hint=_hint(error)) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise ConfigError(f"{path}:{line}: a character that YAML does not allow: {error.reason}") from error
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ConfigError(f"{path}:1: not YAML: {error}") from error

    def _read(self, text: str) -> Any:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            self._note(node, ())
            return loader.construct_document(node)
        finally:
            loader.dispose()

    def line(self, place: Place) -> int:
        """The line, from 1, on which the value at `place` stands, or the nearest one around it that is known."""
        while place not in self._lines:
            place = place[:-1]
        return self._lines[place]

    def _note(self, node: yaml.Node, place: Place) -> None:
        self._lines.setdefault(place, node.start_mark.line + 1)
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._note(item, (*place, index))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._note_entry(key, value, place)

    def _note_entry(self, key: yaml.Node, value: yaml.Node, place: Place) -> None:
        inner = (*place, str(key.value))
        line = key.start_mark.line + 1
        if inner in self._lines:
            first = self._lines[inner]
            raise ConfigError(f"{self.path}:{line}: `{key.value}` stands here again; it is on line {first} already")
        self._lines[inner] = line
        self._note(value, inner)


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


def _hint(error: yaml.MarkedYAMLError) -> str:
    if "alias" in f"{error.problem} {error.context}":
        return 'Quote a star in YAML: "*".'
    return "Check the indentation, quotes and brackets near this line."


def dotted(place: Place | Mapping[str, Any]) -> str:
    """A place as people write it: `calls.step[2].answer`."""
    text = ""
    for part in place:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
