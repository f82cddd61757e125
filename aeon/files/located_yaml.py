"""YAML and JSON files with the position of each value, so that a message about a value can name its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from aeon.domain.errors import ConfigError
from aeon.files.nesting import MAX_DEPTH, TOO_DEEP

Place = tuple[str | int, ...]
MAX_VALUES = 100_000
"""How many values a file may hold once its aliases and merge keys are followed."""

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_TOO_MANY = f"more than {MAX_VALUES} values, once aliases and merge keys are followed: write less"
_CORE = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", "-+."),
    ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
    ("merge", r"<<", "<"),
)


class Position(NamedTuple):
    """Where something stands in a file; line and column from 1."""

    line: int
    column: int


class Repeated(NamedTuple):
    """A key that stands again in a mapping that has it already, and the line of its first place."""

    place: Place
    position: Position
    first_line: int


class UnreadableFile(ConfigError):
    """A file that is not UTF-8 text, or neither YAML nor JSON.

    The message names file and line, `position` is where, `problem` what.
    """

    def __init__(self, path: Path, problem: str, position: Position | None = None, *, hint: str = "") -> None:
        self.position = position or Position(1, 1)
        self.problem = problem
        super().__init__(f"{path}:{self.position.line}: {problem}", hint=hint)


def add_core_schema(resolver: Any) -> None:
    """Teach a PyYAML loader or dumper which plain scalars are not text in YAML 1.2."""
    for name, pattern, first in _CORE:
        resolver.add_implicit_resolver(_TAG + name, re.compile(f"^(?:{pattern})$"), list(first))


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors read it: dates, `yes`, `12:30` are text, `.nan` and `.inf` numbers."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """A node begins; PyYAML itself has no limit and would end in a RecursionError."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, TOO_DEEP, mark)

    def ascend_resolver(self) -> None:
        """A node ends."""
        self._depth -= 1


_Loader.yaml_implicit_resolvers = {}
add_core_schema(_Loader)


def _number(text: str) -> float:
    return float(text.replace(".", "") if text[-1].isalpha() else text)


_SCALARS: Mapping[str, Callable[[str], Any]] = {
    f"{_TAG}bool": lambda text: {"true": True, "false": False}[text.lower()],
    f"{_TAG}int": lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)),
    f"{_TAG}float": _number,
    f"{_TAG}null": lambda _: None,
    f"{_TAG}str": str,
    _MERGE: str,
}


class LocatedYaml:
    """The value of a YAML or `.json` file and the positions of its parts. Raises ConfigError, naming file and line.

    Refused are: no such file, text that is not UTF-8 or neither YAML nor JSON, aliases and merge keys that unfold to
    more than `MAX_VALUES` values, nesting of more than `MAX_DEPTH` levels, and a key that stands twice in one mapping,
    unless `allow_repeated`: then `repeated` lists them, and the last counts.
    """

    def __init__(self, path: Path, *, allow_repeated: bool = False) -> None:
        self.path = path
        self.repeated: tuple[Repeated, ...] = ()
        self._keys: dict[Place, Position] = {}
        self._values: dict[Place, Position] = {(): Position(1, 1)}
        self._count = 0
        text = _read_text(path)
        self.value: Any = self._json(text) if path.suffix.lower() == ".json" else self._yaml(text)
        if self.repeated and not allow_repeated:
            again = self.repeated[0]
            problem = f"`{again.place[-1]}` stands here again; it is on line {again.first_line} already"
            raise UnreadableFile(path, problem, again.position)

    def line(self, place: Place) -> int:
        """The line of the entry at `place`: its key's if it has one, or the nearest one around it that is known."""
        return self.key_position(place).line

    def key_position(self, place: Place) -> Position:
        """Where the key of the entry at `place` stands; of what has no key, the value."""
        return self._keys.get(place) or self.position(place)

    def position(self, place: Place) -> Position:
        """Where the value at `place` begins, or the nearest one around it that is known."""
        while place not in self._values:
            place = place[:-1]
        return self._values[place]

    def _json(self, text: str) -> Any:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except json.JSONDecodeError as error:
            position = Position(error.lineno, error.colno)
            raise UnreadableFile(self.path, f"not JSON: {error.msg}", position) from error
        except RecursionError:
            raise UnreadableFile(self.path, TOO_DEEP) from None
        except ValueError as error:
            raise UnreadableFile(self.path, f"not JSON: {error}") from error
        try:
            # JSON has tabs only between its tokens, where YAML wants blanks.
            self._parse(text.replace("\t", " "))
        except yaml.composer.ComposerError as error:
            raise UnreadableFile(self.path, TOO_DEEP, _error_position(error)) from None
        except yaml.YAMLError:  # JSON that YAML cannot read, such as a key of 2000 characters
            self._keys, self._values = {}, {(): Position(1, 1)}
        return value

    def _yaml(self, text: str) -> Any:
        try:
            return self._parse(text)
        except yaml.MarkedYAMLError as error:
            raise UnreadableFile(self.path, str(error.problem), _error_position(error), hint=_hint(error)) from error
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            position = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
            problem = f"a character that YAML does not allow: {error.reason}"
            raise UnreadableFile(self.path, problem, position) from error
        except RecursionError:
            raise UnreadableFile(self.path, "nested too deeply, or an alias refers to what it is a part of") from None

    def _parse(self, text: str) -> Any:
        node = yaml.compose(text, Loader=_Loader)
        return None if node is None else self._convert(node, ())

    def _convert(self, node: yaml.Node, place: Place) -> Any:
        """The value of a node, once its position and those of its parts are noted."""
        position = _position(node)
        self._values.setdefault(place, position)
        self._add_to_count(1, node)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
            return [self._convert(item, (*place, index)) for index, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
            return self._convert_mapping(node, place)
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            try:
                return _SCALARS[node.tag](node.value)
            except (ValueError, LookupError) as error:
                raise UnreadableFile(self.path, f"not YAML: {error}", position) from None
        raise UnreadableFile(self.path, f"the tag {node.tag} is unknown here", position)

    def _convert_mapping(self, node: yaml.MappingNode, place: Place) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key, value in self._entries(node):
            if not isinstance(key, yaml.ScalarNode):
                raise UnreadableFile(self.path, "a key must be text, not a list or a mapping", _position(key))
            inner = (*place, str(key.value))
            if inner in self._keys:
                self.repeated += (Repeated(inner, _position(key), self._keys[inner].line),)
                inner = (*inner, "again")  # its parts are counted, and the first one's positions stay
            self._keys.setdefault(inner, _position(key))
            made[_SCALARS.get(key.tag, str)(key.value)] = self._convert(value, inner)
        return made

    def _entries(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        """The entries of a mapping: first those that its merge keys bring in, then its own, which win."""
        own = [entry for entry in node.value if entry[0].tag != _MERGE]
        if len(own) < len(node.value):
            taken = {key.value for key, _ in own if isinstance(key, yaml.ScalarNode)}
            for other in (other for key, value in node.value if key.tag == _MERGE for other in _mergeable(value)):
                for key, value in self._entries(other):
                    self._add_to_count(1, node)
                    if key.value not in taken:
                        taken.add(key.value)
                        yield key, value
        yield from own

    def _add_to_count(self, number: int, node: yaml.Node) -> None:
        self._count += number
        if self._count > MAX_VALUES:
            raise UnreadableFile(self.path, _TOO_MANY, _position(node))


def _mergeable(node: yaml.Node) -> list[yaml.MappingNode]:
    merged = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for each in merged:
        if not isinstance(each, yaml.MappingNode):
            problem = "`<<` takes a mapping, or a list of mappings"
            raise yaml.constructor.ConstructorError(None, None, problem, each.start_mark)
    return list(merged)


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _error_position(error: yaml.MarkedYAMLError) -> Position | None:
    mark = error.problem_mark or error.context_mark
    return Position(mark.line + 1, mark.column + 1) if mark else None


def _read_text(path: Path) -> str:
    try:
        return path.expanduser().read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        position = Position(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        problem = f"not UTF-8 text (byte {error.start})"
        raise UnreadableFile(path, problem, position, hint="Convert it to UTF-8.") from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _hint(error: yaml.MarkedYAMLError) -> str:
    text = f"{error.problem} {error.context}"
    if TOO_DEEP in text:
        return ""
    if "alias" in text:
        return 'Quote a star in YAML: "*".'
    if "\\t" in text:
        return "Indent with blanks: YAML does not allow tabs there."
    return "Check the indentation, quotes and brackets near this line."


def dotted(place: Place | Mapping[str, Any]) -> str:
    """A place as people write it: `calls.step[2].answer`."""
    text = ""
    for part in place:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
