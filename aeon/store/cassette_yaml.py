"""JSON values as YAML that a person can read, and back as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from io import StringIO
from typing import Any, NamedTuple

import yaml

from aeon.domain.errors import StoreFailed
from aeon.files.nesting import MAX_DEPTH, TOO_DEEP

MAX_CHARACTERS = 200_000_000
"""The most that a file may hold once its aliases are followed."""

_LEAST_SIZE = 16
"""The least that any value counts, in characters."""
_DEEPEST, _WIDTH = 40, 100
_TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
# What a block would not keep as it is: control characters, line breaks of other kinds.
_NOT_IN_BLOCKS = re.compile("[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.inf)\Z|\.nan\Z")
_SCALARS: Mapping[str, Any] = {
    "!json": json.loads,
    f"{_TAG}null": lambda _: None,
    f"{_TAG}bool": "true".__eq__,
    f"{_TAG}int": int,
    f"{_TAG}float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    f"{_TAG}str": str,
}
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Plain values are those of JSON: YAML's own are also dates, other bases and numbers to the base 60."""

    _depth = 0

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:  # noqa: ARG002
        """Count a node that begins; PyYAML's parser in C would crash on nesting without bounds."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise yaml.YAMLError(TOO_DEEP)

    def ascend_resolver(self) -> None:
        """Count a node that ends."""
        self._depth -= 1


_Loader.yaml_implicit_resolvers = {}
_Loader.add_implicit_resolver(f"{_TAG}null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_Loader.add_implicit_resolver(f"{_TAG}int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789"))
_Loader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-.0123456789"))


class _Read(NamedTuple):
    """A value, and its size in characters and its depth with every alias followed."""

    value: Any
    size: int
    depth: int


def load(text: str) -> Any:
    """The value of a text. Raises StoreFailed for a text that is no YAML, or is too large or too deep."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        return None if node is None else _read(node, {}).value
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise StoreFailed(f"this is not YAML: {' '.join(str(error).split())}") from None


def _read(node: Any, known: dict[int, _Read | None]) -> _Read:
    """The value of a node; each node is read once, so that its aliases share the value."""
    if id(node) in known:
        found = known[id(node)]
        if found is None:
            raise StoreFailed("a value in it holds itself")
        return found
    known[id(node)] = None
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        made = _Read(_SCALARS[node.tag](node.value), _LEAST_SIZE + len(node.value), 0)
    elif isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        made = _collect([_read(item, known) for item in node.value])
    elif isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        keys = [_read(key, known).value for key, _ in node.value]
        if odd := [key for key in keys if not isinstance(key, str)]:
            raise StoreFailed(f"a key in it is no text: {odd[0]!r}")
        made = _collect([_read(item, known) for _, item in node.value], keys)
    else:
        raise StoreFailed(f"this is not YAML as cassettes have it: the tag {node.tag} is unknown")
    known[id(node)] = made
    return made


def _collect(items: list[_Read], keys: list[str] | None = None) -> _Read:
    values = [item.value for item in items]
    size = _LEAST_SIZE + sum(item.size for item in items) + sum(map(len, keys or ()))
    depth = 1 + max((item.depth for item in items), default=0)
    if size > MAX_CHARACTERS:
        raise StoreFailed(f"it holds more than {MAX_CHARACTERS:,} characters once its aliases are followed")
    if depth > MAX_DEPTH:
        raise StoreFailed(f"a value in it is {TOO_DEEP}")
    return _Read(values if keys is None else dict(zip(keys, values, strict=True)), size, depth)


class _Json(str):
    """The JSON text of a value that YAML cannot carry."""


class _Dumper(yaml.SafeDumper):
    """Writes the values whose ids `names` holds once, with an anchor of that name."""

    names: Mapping[int, str]

    def ignore_aliases(self, data: Any) -> bool:
        """Whether a value is written again wherever it stands."""
        return id(data) not in self.names

    def generate_anchor(self, node: Any) -> str:
        """The anchor of a value that stands in several places."""
        return next(name for key, name in self.names.items() if self.represented_objects.get(key) is node)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if _NOT_IN_BLOCKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_representer(_Json, lambda dumper, text: dumper.represent_scalar("!json", text, style='"'))
_Dumper.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-.0123456789"))


def dump(value: Any, names: Mapping[int, str] | None = None) -> str:
    """YAML of a value that `carriable` has given.

    `names` are the anchors of the values that stand in several places, by the id of each.
    """
    stream = StringIO()
    dumper = _Dumper(stream, default_flow_style=None, width=_WIDTH, allow_unicode=True, sort_keys=False)
    dumper.names = names or {}
    dumper.open()
    dumper.represent(value)
    dumper.close()
    return stream.getvalue()


def carriable(value: Any, depth: int = 0) -> Any:
    """A JSON value with JSON text where YAML carries none: half surrogate pairs, nesting that is very deep."""
    if isinstance(value, str):
        return _Json(json.dumps(value)) if _SURROGATE.search(value) else value
    if not isinstance(value, dict | list):
        return value
    if depth > _DEEPEST or (isinstance(value, dict) and any(map(_SURROGATE.search, value))):
        return _Json(json.dumps(value))
    if isinstance(value, list):
        return [carriable(item, depth + 1) for item in value]
    return {key: carriable(item, depth + 1) for key, item in value.items()}
