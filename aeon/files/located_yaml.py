"""Reads YAML and JSON files with the position of each value, so that messages can name its line."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from aeon.domain.errors import ConfigError
from aeon.files.fast_yaml import FastLoader
from aeon.files.pinned import read_named
from aeon.files.text import MAX_DEPTH, MAX_VALUES, TOO_DEEP, Place

MAX_CHARACTERS = 2_000_000
"""Most characters of a file."""

_TAG = "tag:yaml.org,2002:"
_TOO_MANY = f"more than {MAX_VALUES} values, once aliases and merge keys are followed: write less"
_HINT = (
    "Check the indentation, quotes and brackets near "
    'this line. Indent with blanks, quote a star: "*".'
)
_CORE = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", r"<<", "<"),
)


class Position(NamedTuple):
    """A position in a file; line and column count from 1."""

    line: int
    column: int


class LongestList(NamedTuple):
    """The most entries of a top-level list in a file, and the hint in a message about it."""

    key: str
    most: int
    hint: str = ""


class UnreadableFile(ConfigError):
    """A file that is not UTF-8 text, or neither YAML nor JSON: `problem` at `position`."""

    def __init__(
        self, path: Path, problem: str, position: Position | None = None, *, hint: str = ""
    ) -> None:
        self.position = position or Position(1, 1)
        self.problem = problem
        super().__init__(f"{path}:{self.position.line}: {problem}", hint=hint)


def add_core_schema(resolver: Any) -> None:
    """Teach a PyYAML loader or dumper which plain scalars are not text in YAML 1.2."""
    for name, pattern, first in _CORE:
        resolver.add_implicit_resolver(_TAG + name, re.compile(f"^(?:{pattern})$"), list(first))


class _TooMuch(yaml.MarkedYAMLError):
    def __init__(self, problem: str, mark: Any = None, hint: str = "") -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.hint = hint


class _CoreSchema:
    """YAML 1.2's core schema, as editors read it: dates, `yes` and `12:30` are text, `.nan` and
    `.inf` numbers. Excess is refused as soon as it is read, because reading on takes long."""

    longest: LongestList | None = None
    _top_key = ""
    _level = 0
    _read = 0

    def descend_resolver(self, parent: yaml.Node | None, index: Any) -> None:
        """Count the next key or value. Raises YAMLError if there are too many, or it is nested too
        deeply."""
        super().descend_resolver(parent, index)  # type: ignore[misc]
        self._level += 1
        self._read += 1
        if self._level > MAX_DEPTH + 1:
            raise _TooMuch(TOO_DEEP, self._mark())
        if self._read > 2 * MAX_VALUES:
            raise _TooMuch(_TOO_MANY, self._mark())
        if self._level == 2 and isinstance(index, yaml.ScalarNode):
            self._top_key = index.value
        if self._level == 3 and isinstance(index, int):
            self._check_length(index)

    def ascend_resolver(self) -> None:
        """Note that a key or value is complete."""
        super().ascend_resolver()  # type: ignore[misc]
        self._level -= 1

    def _check_length(self, before: int) -> None:
        longest = self.longest
        if longest and longest.key == self._top_key and before >= longest.most:
            problem = f"`{longest.key}` has more than {longest.most:,} entries"
            raise _TooMuch(problem, self._mark(), longest.hint)

    def _mark(self) -> Any:
        return self.peek_event().start_mark  # type: ignore[attr-defined]

    def construct_whole_number(self, node: yaml.ScalarNode) -> int:
        """Read a whole number: 010 is ten, 0o10 is eight."""
        return int(node.value, {"0o": 8, "0x": 16}.get(node.value[:2], 10))


class _PositionLoader(_CoreSchema, yaml.SafeLoader):
    """The loader with short error messages and positions."""


class _FastPositionLoader(_CoreSchema, FastLoader):
    """The loader on libyaml's parser, ten times as fast."""


_KNOWN = ("bool", "float", "null", "str", "seq", "map")
_CONSTRUCTORS: dict[str | None, Any] = {
    **{f"{_TAG}{name}": getattr(yaml.SafeLoader, f"construct_yaml_{name}") for name in _KNOWN},
    f"{_TAG}int": _CoreSchema.construct_whole_number,
    None: yaml.SafeLoader.construct_undefined,
}
for _loader in (_PositionLoader, _FastPositionLoader):
    _loader.yaml_implicit_resolvers = {}
    add_core_schema(_loader)
    _loader.yaml_constructors = _CONSTRUCTORS


class LocatedYaml:
    """The value of a YAML or `.json` file and the positions of its parts. Raises ConfigError with
    file and line, also for a repeated key, more than `MAX_CHARACTERS`, `MAX_VALUES` values or
    `MAX_DEPTH` levels, and a list longer than `longest` allows. `data` is the content of the file
    if it has been read already."""

    def __init__(
        self, path: Path, data: bytes | None = None, longest: LongestList | None = None
    ) -> None:
        self.path = path
        self._longest = longest
        self._keys: dict[Place, Position] = {}
        self._values: dict[Place, Position] = {}
        text = _read_text(path, data)
        try:
            self.value: Any = (
                self._json(text) if path.suffix.lower() == ".json" else self._yaml(text)
            )
        except RecursionError:
            raise UnreadableFile(path, TOO_DEEP) from None

    def key_position(self, place: Place) -> Position:
        """Return the position of the key of the entry at `place`; of its value if it has no key."""
        return self._keys.get(place) or self.position(place)

    def position(self, place: Place) -> Position:
        """Return the start of the value at `place`, or of the nearest enclosing value that is
        known."""
        while place and place not in self._values:
            place = place[:-1]
        return self._values.get(place, Position(1, 1))

    def _json(self, text: str) -> Any:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except ValueError as error:
            position = Position(getattr(error, "lineno", 1), getattr(error, "colno", 1))
            raise UnreadableFile(
                self.path, f"not JSON: {getattr(error, 'msg', error)}", position
            ) from error
        with suppress(yaml.YAMLError):  # JSON that YAML cannot read has no positions
            # JSON has tabs only between tokens, where YAML needs blanks.
            self._compose(text.replace("\t", " "))
        return value

    def _yaml(self, text: str) -> Any:
        try:
            loader, node = self._compose(text)
            return None if node is None else loader.construct_document(node)
        except (yaml.YAMLError, ValueError, KeyError) as error:
            mark = getattr(error, "problem_mark", None)
            position = _position_of(mark) if mark else None
            problem = getattr(error, "problem", None) or f"not YAML: {' '.join(str(error).split())}"
            raise UnreadableFile(self.path, problem, position, hint=_HINT) from error

    def _compose(self, text: str) -> tuple[Any, yaml.Node | None]:
        """Return a loader and the node of the whole text; if the fast loader refuses it, read it
        again for a precise error."""
        loader: Any = _FastPositionLoader(text)
        loader.longest = self._longest
        try:
            node = loader.get_single_node()
        except (yaml.YAMLError, ValueError):
            loader = _PositionLoader(text)
            loader.longest = self._longest
            node = self._compose_exactly(loader)
        if node is not None:
            self._locate(node, ())
        return loader, node

    def _compose_exactly(self, loader: Any) -> yaml.Node | None:
        try:
            node: yaml.Node | None = loader.get_single_node()
        except _TooMuch as error:
            position = _position_of(error.problem_mark) if error.problem_mark else None
            raise UnreadableFile(self.path, str(error.problem), position, hint=error.hint) from None
        return node

    def _locate(self, node: yaml.Node, place: Place) -> None:
        """Record the positions of a node and its parts, following aliases; an alias of an enclosing
        node is too deep."""
        position = _position(node)
        if len(place) > MAX_DEPTH:
            raise UnreadableFile(self.path, TOO_DEEP, position)
        if len(self._values) >= MAX_VALUES:
            raise UnreadableFile(self.path, _TOO_MANY, position)
        self._values[place] = position
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._locate(item, (*place, index))
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                inner = (*place, str(key.value))
                if first := self._keys.get(inner):
                    problem = f"`{key.value}` is repeated here; it is already on line {first.line}"
                    raise UnreadableFile(self.path, problem, _position(key))
                self._keys[inner] = _position(key)
                self._locate(value, inner)


def _position(node: Any) -> Position:
    return _position_of(node.start_mark)


def _position_of(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1)


def _read_text(path: Path, data: bytes | None) -> str:
    try:
        content = read_named(path) if data is None else data
        text = content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        position = Position(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        raise UnreadableFile(
            path, "not UTF-8 text", position, hint="Convert it to UTF-8."
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(text) > MAX_CHARACTERS:
        problem = f"more than {MAX_CHARACTERS:,} characters ({len(text):,}): write less"
        raise UnreadableFile(path, problem)
    return text


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")
