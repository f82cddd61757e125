"""JSON values as YAML that a person can read, and back, byte for byte.

Texts of several lines are literal block scalars; a text that such a scalar cannot carry (control characters, other line
breaks) is a double-quoted one, still a line for a line. What is beyond YAML (half surrogate pairs, very long keys, very
deep nesting) is JSON text with the tag `!json`. Texts given in `shared` are written once, with an anchor.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from aeon.domain.errors import StoreFailed

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_CHARACTERS = 200_000_000
"""The most that a file may hold once its aliases are followed."""

MAX_DEPTH = 200
"""The deepest nesting of the YAML of a file."""

MAX_VALUE_DEPTH = 400
"""The deepest nesting of its values, with aliases and JSON texts followed."""

_LEAST_SIZE = 16
"""The least that any value counts, in characters."""

_WIDTH, _LONGEST_KEY, _DEEPEST = 100, 120, 40
_PLAIN = re.compile(r"[A-Za-z_/][\w./@+-]*(?: [\w./@+-]+)*", re.ASCII)
_BLOCK = re.compile("[\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BARE = re.compile("[\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _json_text(loader: Any, node: Any) -> Any:
    try:
        return json.loads(loader.construct_scalar(node))
    except ValueError as error:
        raise yaml.constructor.ConstructorError(None, None, f"!json: {error}", node.start_mark) from error


class _Loader(_Base):  # type: ignore[misc]
    """YAML as written here; PyYAML's C parser, where it is there, would crash on unbounded nesting."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """Count a node that begins."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError(f"nested more than {MAX_DEPTH} levels deep")

    def ascend_resolver(self) -> None:
        """Count a node that ends."""
        self._depth -= 1

    def flatten_mapping(self, node: Any) -> None:
        """Merge no mappings into others, which could multiply without an end."""


_Loader.yaml_constructors = {
    None: _Base.construct_undefined,
    "!json": _json_text,
    "tag:yaml.org,2002:null": lambda _loader, _node: None,
    "tag:yaml.org,2002:bool": lambda loader, node: loader.construct_scalar(node) == "true",
    "tag:yaml.org,2002:int": lambda loader, node: int(loader.construct_scalar(node)),
    "tag:yaml.org,2002:float": lambda loader, node: float(
        loader.construct_scalar(node).replace(".inf", "inf").replace(".nan", "nan")
    ),
    "tag:yaml.org,2002:str": lambda loader, node: loader.construct_scalar(node),
    "tag:yaml.org,2002:seq": _Base.construct_yaml_seq,
    "tag:yaml.org,2002:map": _Base.construct_yaml_map,
}
# The plain values of JSON only: YAML's own are also dates, other bases and numbers to the base 60.
_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_Loader.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.inf)\Z|\.nan\Z"),
    list("-.0123456789"),
)


def load(text: str) -> Any:
    """The value of a text. Raises StoreFailed for a text that is no YAML, or is too large or too deep."""
    try:
        value = yaml.load(text, Loader=_Loader)
        measure = _measure(value, {}, set())
    except (yaml.YAMLError, RecursionError, ValueError, TypeError) as error:
        raise StoreFailed(f"this is not YAML: {' '.join(str(error).split())}") from None
    if measure.size > MAX_CHARACTERS:
        raise StoreFailed(f"it holds more than {MAX_CHARACTERS:,} characters once its aliases are followed")
    if measure.depth > MAX_VALUE_DEPTH:
        raise StoreFailed(f"a value in it is nested more than {MAX_VALUE_DEPTH} levels deep")
    return value


class _Measure(NamedTuple):
    """The size in characters and the depth of a value, with every alias followed."""

    size: int
    depth: int


_PLAIN_VALUE = _Measure(_LEAST_SIZE, 0)


def _measure(value: Any, known: dict[int, _Measure], open_: set[int]) -> _Measure:
    """Measure a value, looking at each node once."""
    if not isinstance(value, dict | list):
        return _Measure(_LEAST_SIZE + len(value), 0) if isinstance(value, str) else _PLAIN_VALUE
    if id(value) in open_:
        raise StoreFailed("a value in it holds itself")
    if id(value) not in known:
        open_.add(id(value))
        inner = value if isinstance(value, list) else list(value.values())
        measures = [_measure(item, known, open_) for item in inner]
        size = _LEAST_SIZE + sum(measure.size for measure in measures) + _length_of_keys(value)
        known[id(value)] = _Measure(size, 1 + max((measure.depth for measure in measures), default=0))
        open_.discard(id(value))
    return known[id(value)]


def _length_of_keys(value: dict[Any, Any] | list[Any]) -> int:
    keys = value if isinstance(value, dict) else ()
    for key in keys:
        if not isinstance(key, str):
            raise StoreFailed(f"a key in it is no text: {key!r}")
    return sum(map(len, keys))


class Writer:
    """Writes JSON values; `shared` maps the JSON of values written elsewhere to their anchors."""

    def __init__(self, shared: Mapping[str, str] | None = None) -> None:
        self._shared = shared or {}

    def mapping(self, value: Mapping[str, Any], column: int = 0) -> Iterator[str]:
        """The lines of a mapping that begins in a column, from 0; without line breaks at their ends."""
        for key, item in value.items():
            first, *rest = self.node(item, column)
            yield f"{' ' * column}{_line(key)}:{' ' if first else ''}{first}"
            yield from rest

    def sequence(self, value: list[Any], column: int = 0) -> Iterator[str]:
        """The lines of a sequence whose dashes stand in a column."""
        for item in value:
            whole = isinstance(item, dict | list) and not (self._alias(item) or _flow(item) or beyond_yaml(item))
            if whole and isinstance(item, dict):
                first, *rest = self.mapping(item, column + 2)
                first = first[column + 2 :]
            elif whole:
                first, rest = "", list(self.sequence(item, column + 2))
            else:
                first, *rest = self.node(item, column)
            yield f"{' ' * column}-{' ' if first else ''}{first}"
            yield from rest

    def node(self, value: Any, column: int, anchor: str = "") -> list[str]:
        """A value after a key or a dash of a collection in a column: the rest of that line, and the lines below."""
        alias = "" if anchor else self._alias(value)
        head = f"&{anchor}" if anchor else ""
        if alias:
            return [f"*{alias}"]
        flow = _flow(value)
        if flow:
            return [f"{head} {flow}".lstrip()]
        if isinstance(value, str):
            first, *rest = _block(value, column + 2) if _BLOCK.fullmatch(value) else _quoted_lines(value, column + 2)
            return [f"{head} {first}".lstrip(), *rest]
        if beyond_yaml(value):
            return [f"{head} !json {_line(json.dumps(value))}".lstrip()]
        if isinstance(value, dict):
            return [head, *self.mapping(value, column + 2)]
        return [head, *self.sequence(value, column)]

    def _alias(self, value: Any) -> str:
        return self._shared.get(json.dumps(value), "") if self._shared and isinstance(value, str | dict | list) else ""


def _flow(value: Any) -> str:
    """A value on one line, where that is short and exact; else nothing."""
    if isinstance(value, str):
        return _json_tag(value) if _SURROGATE.search(value) else _line(value) if _short(value) else ""
    if isinstance(value, dict | list):
        if beyond_yaml(value):
            return ""
        items = [_flow(item) for item in (value.values() if isinstance(value, dict) else value)]
        if not all(items) or sum(map(len, items)) > _WIDTH or any(item[0] in "{[!" for item in items):
            return ""
        if isinstance(value, list):
            return f"[{', '.join(items)}]"
        line = ", ".join(f"{_line(key)}: {item}" for key, item in zip(value, items, strict=True))
        return f"{{{line}}}" if len(line) <= _WIDTH else ""
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value)


def _short(text: str) -> bool:
    return "\n" not in text and len(text) <= _WIDTH and (len(text) <= 20 or '"' not in text)


def _number(value: float) -> str:
    """A float as YAML 1.1 knows it: with a point, and a sign in its exponent."""
    digits, _, exponent = repr(value).partition("e")
    if digits.lstrip("-") in ("inf", "nan"):
        return digits.replace("inf", ".inf").replace("nan", ".nan")
    digits += "" if "." in digits else ".0"
    return f"{digits}e{exponent if exponent[0] in '+-' else f'+{exponent}'}" if exponent else digits


def beyond_yaml(value: Any, depth: int = 0) -> bool:
    """Whether a collection cannot be YAML: keys that are too long or no Unicode, nesting that is too deep."""
    if not isinstance(value, dict | list):
        return False
    if depth > _DEEPEST:
        return True
    if isinstance(value, list):
        return any(beyond_yaml(item, depth + 1) for item in value)
    odd = any(len(key) > _LONGEST_KEY or _SURROGATE.search(key) for key in value)
    return odd or any(beyond_yaml(item, depth + 1) for item in value.values())


def _json_tag(text: str) -> str:
    return f"!json {_line(json.dumps(text))}"


def _line(text: str) -> str:
    """A text on one line: plain where it cannot be misread, else in double quotes."""
    if _PLAIN.fullmatch(text) and not _is_misread(text):
        return text
    return f'"{_escaped(text)}"'


def _is_misread(text: str) -> bool:
    """Whether a plain text would be read as something else (`no`, `null`, `.5`)."""
    resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(text[0], [])
    return any(pattern.match(text) for _, pattern in resolvers)


def _block(text: str, column: int) -> list[str]:
    """A literal block scalar, with its indentation where the first line could hide it."""
    ends = len(text) - len(text.rstrip("\n"))
    if ends == len(text):
        return _quoted_lines(text, column)
    chomping = "-" if ends == 0 else "" if ends == 1 else "+"
    indentation = "2" if text[0] in " \t\n" else ""
    lines = text.split("\n")
    body = [" " * column + line if line else "" for line in (lines[:-1] if ends else lines)]
    return [f"|{indentation}{chomping}", *body]


def _quoted_lines(text: str, column: int) -> list[str]:
    """A double-quoted scalar with a line for each line of the text."""
    pieces = [_escaped(piece) for piece in re.findall("[^\n]*\n|[^\n]+", text)]
    if len(pieces) < 2:
        return [f'"{"".join(pieces)}"']
    # A blank at the beginning of a line would be taken for its indentation.
    pieces[1:] = [f"\\{piece}" if piece.startswith(" ") else piece for piece in pieces[1:]]
    lines = ['"' + pieces[0], *(" " * column + piece for piece in pieces[1:])]
    return [*(f"{line}\\" for line in lines[:-1]), f'{lines[-1]}"']


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(ch) or (ch if _BARE.match(ch) else _escape(ch)) for ch in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
