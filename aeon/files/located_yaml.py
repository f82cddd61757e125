"""YAML and JSON files that remember where each value stands, so that a message about a value can say where to look."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from aeon.domain.errors import ConfigError
from aeon.files.nesting import MAX_DEPTH, TOO_DEEP, is_too_deep

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


class _Loader(yaml.SafeLoader):
    """YAML 1.2's core schema, as editors read it: dates, `yes`, `12:30` are text, `.nan` and `.inf` numbers.

    Nesting and merge keys (`<<`) have an end, where PyYAML's have none.
    """

    _depth = 0
    _merged = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """A node begins."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.composer.ComposerError(None, None, TOO_DEEP, self._mark())

    def ascend_resolver(self) -> None:
        """A node ends."""
        self._depth -= 1

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Exchange the merge keys of a mapping for the entries that they bring in; those of its own go first."""
        own = [entry for entry in node.value if entry[0].tag != _MERGE]
        if len(own) == len(node.value):
            return
        taken = {_key(key) for key, _ in own}
        brought: dict[Any, tuple[yaml.Node, yaml.Node]] = {}
        for other in (other for key, value in node.value if key.tag == _MERGE for other in _mergeable(value)):
            self.flatten_mapping(other)
            self._merged += 1 + len(other.value)
            if self._merged > MAX_VALUES:
                raise yaml.constructor.ConstructorError(None, None, _TOO_MANY, node.start_mark)
            for key, value in other.value:
                if _key(key) not in taken:
                    brought.setdefault(_key(key), (key, value))
        node.value = [*brought.values(), *own]

    def _mark(self) -> Any:
        return self.peek_event().start_mark  # type: ignore[no-untyped-call]


def _key(node: yaml.Node) -> Any:
    """What makes two keys the same one; a key that is a collection, which no mapping can have, is like no other."""
    return (node.tag, node.value) if isinstance(node, yaml.ScalarNode) else id(node)


def _mergeable(node: yaml.Node) -> list[yaml.MappingNode]:
    listed = node.value if isinstance(node, yaml.SequenceNode) else [node]
    for each in listed:
        if not isinstance(each, yaml.MappingNode):
            problem = "`<<` takes a mapping, or a list of mappings"
            raise yaml.constructor.ConstructorError(None, None, problem, each.start_mark)
    return list(listed)


def add_core_schema(resolver: Any) -> None:
    """Teach a PyYAML loader or dumper which plain scalars are not text in YAML 1.2."""
    for name, pattern, first in _CORE:
        resolver.add_implicit_resolver(_TAG + name, re.compile(f"^(?:{pattern})$"), list(first))


def _integer(loader: _Loader, node: Any) -> int:
    text = str(loader.construct_scalar(node))
    base = {"0o": 8, "0x": 16}.get(text[:2], 10)
    return int(text, base)


def _number(loader: _Loader, node: Any) -> float:
    text = str(loader.construct_scalar(node))
    return float(text.replace(".", "") if text[-1].isalpha() else text)


_Loader.yaml_implicit_resolvers = {}
add_core_schema(_Loader)
_Loader.add_constructor(f"{_TAG}int", _integer)
_Loader.add_constructor(f"{_TAG}float", _number)


class LocatedYaml:
    """The value of a YAML or `.json` file and the places of its parts. Raises ConfigError, naming file and line.

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
        text = _text_of(path)
        is_json = path.suffix.lower() == ".json"
        self.value: Any = self._json(text) if is_json else self._yaml(text)
        if self.repeated and not allow_repeated:
            again = self.repeated[0]
            raise ConfigError(
                f"{path}:{again.position.line}: `{again.place[-1]}` stands here again; "
                f"it is on line {again.first_line} already"
            )

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
            value = json.loads(text, parse_constant=_no_constant)
        except json.JSONDecodeError as error:
            where = Position(error.lineno, error.colno)
            raise UnreadableFile(self.path, f"not JSON: {error.msg}", where) from error
        except RecursionError:
            raise UnreadableFile(self.path, "nested too deeply") from None
        except ValueError as error:
            raise UnreadableFile(self.path, f"not JSON: {error}") from error
        if is_too_deep(value):
            raise UnreadableFile(self.path, TOO_DEEP)
        try:
            # JSON has tabs only between its tokens, where YAML wants blanks.
            self._read(text.replace("\t", " "))
        except RecursionError:
            raise UnreadableFile(self.path, "nested too deeply") from None
        except yaml.YAMLError:
            self._keys, self._values = {}, {(): Position(1, 1)}
        return value

    def _yaml(self, text: str) -> Any:
        try:
            return self._read(text)
        except yaml.MarkedYAMLError as error:
            raise UnreadableFile(self.path, str(error.problem), _marked(error), hint=_hint(error)) from error
        except yaml.reader.ReaderError as error:
            before = text[: error.position]
            where = Position(before.count("\n") + 1, len(before) - before.rfind("\n"))
            raise UnreadableFile(self.path, f"a character that YAML does not allow: {error.reason}", where) from error
        except RecursionError:
            raise UnreadableFile(self.path, "nested too deeply, or an alias refers to what it is a part of") from None
        except (yaml.YAMLError, ValueError, LookupError) as error:
            raise UnreadableFile(self.path, f"not YAML: {error}") from error

    def _read(self, text: str) -> Any:
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            self._note(node, (), loader)
            return loader.construct_document(node)
        finally:
            loader.dispose()

    def _note(self, node: yaml.Node, place: Place, loader: _Loader) -> None:
        self._count_value(node)
        self._values.setdefault(place, _position(node))
        if isinstance(node, yaml.SequenceNode):
            for index, item in enumerate(node.value):
                self._note(item, (*place, index), loader)
        elif isinstance(node, yaml.MappingNode):
            loader.flatten_mapping(node)
            self._note_entries(node, place, loader)

    def _note_entries(self, node: yaml.MappingNode, place: Place, loader: _Loader) -> None:
        for key, value in node.value:
            inner = (*place, str(key.value))
            if inner in self._keys:
                self.repeated += (Repeated(inner, _position(key), self._keys[inner].line),)
                self._count_values(value, loader)
            else:
                self._keys[inner] = _position(key)
                self._note(value, inner, loader)

    def _count_values(self, node: yaml.Node, loader: _Loader) -> None:
        """Count a value whose places are not noted, as its key has one already."""
        self._count_value(node)
        if isinstance(node, yaml.MappingNode):
            loader.flatten_mapping(node)
            inner = [value for _, value in node.value]
        else:
            inner = node.value if isinstance(node, yaml.SequenceNode) else []
        for each in inner:
            self._count_values(each, loader)

    def _count_value(self, node: yaml.Node) -> None:
        self._count += 1
        if self._count > MAX_VALUES:
            raise UnreadableFile(self.path, _TOO_MANY, _position(node))


def _position(node: yaml.Node) -> Position:
    return Position(node.start_mark.line + 1, node.start_mark.column + 1)


def _marked(error: yaml.MarkedYAMLError) -> Position | None:
    mark = error.problem_mark or error.context_mark
    return Position(mark.line + 1, mark.column + 1) if mark else None


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        before = path.read_bytes()[: error.start]
        where = Position(before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        raise UnreadableFile(
            path, f"not UTF-8 text (byte {error.start})", where, hint="Convert it to UTF-8."
        ) from error
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from error


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _hint(error: yaml.MarkedYAMLError) -> str:
    said = f"{error.problem} {error.context}"
    if TOO_DEEP in said:
        return ""
    if "alias" in said:
        return 'Quote a star in YAML: "*".'
    if "\\t" in said:
        return "Indent with blanks: YAML does not allow tabs there."
    return "Check the indentation, quotes and brackets near this line."


def dotted(place: Place | Mapping[str, Any]) -> str:
    """A place as people write it: `calls.step[2].answer`."""
    text = ""
    for part in place:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
