"""JSON values as YAML that a person can read, and back as they were."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from io import StringIO
from typing import Any

import yaml

from aeon.domain.errors import StoreFailed
from aeon.files.fast_yaml import FastLoader

_MAX_CHARACTERS = 200_000_000
_LEAST_SIZE = 16  # what an empty value counts, in characters
_TAG = "tag:yaml.org,2002:"
# What a block would not keep as it is: control characters, line breaks of other kinds.
_NOT_IN_BLOCKS = re.compile(
    "[^\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_FLOAT = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|\.inf)\Z|\.nan\Z")
_SCALARS: Mapping[str, Any] = {
    "!json": json.loads,
    f"{_TAG}null": lambda _: None,
    f"{_TAG}bool": "true".__eq__,
    f"{_TAG}int": int,
    f"{_TAG}float": lambda text: float(text.replace(".inf", "inf").replace(".nan", "nan")),
    f"{_TAG}str": str,
}


class _CassetteLoader(FastLoader):
    """Plain values are those of JSON: YAML's own are also dates, other bases and numbers to the base 60."""


_CassetteLoader.yaml_implicit_resolvers = {}
_CassetteLoader.add_implicit_resolver(f"{_TAG}null", re.compile(r"(?:~|null|)\Z"), ["~", "n", ""])
_CassetteLoader.add_implicit_resolver(f"{_TAG}bool", re.compile(r"(?:true|false)\Z"), ["t", "f"])
_CassetteLoader.add_implicit_resolver(
    f"{_TAG}int", re.compile(r"-?(?:0|[1-9][0-9]*)\Z"), list("-0123456789")
)
_CassetteLoader.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-.0123456789"))


def load(text: str) -> Any:
    """The value of a text. Raises StoreFailed for a text that is no YAML, or is too large or too deep."""
    try:
        node = yaml.compose(text, Loader=_CassetteLoader)
        return None if node is None else _read(node, {})[0]
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise StoreFailed(f"this is not YAML: {' '.join(str(error).split())}") from None


def _read(node: Any, known: dict[int, tuple[Any, int]]) -> tuple[Any, int]:
    """The value of a node, which its aliases share, and its size in characters with every alias followed."""
    if id(node) in known:
        return known[id(node)]
    value: Any
    if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
        value, size = _SCALARS[node.tag](node.value), len(node.value)
    elif isinstance(node, yaml.SequenceNode) and node.tag == f"{_TAG}seq":
        items = [_read(item, known) for item in node.value]
        value, size = [item for item, _ in items], sum(more for _, more in items)
    elif isinstance(node, yaml.MappingNode) and node.tag == f"{_TAG}map":
        if others := [key.value for key, _ in node.value if key.tag != f"{_TAG}str"]:
            raise StoreFailed(f"a key in it is no text: {others[0]}")
        named = [(key.value, *_read(item, known)) for key, item in node.value]
        value, size = (
            {key: item for key, item, _ in named},
            sum(len(key) + more for key, _, more in named),
        )
    else:
        raise StoreFailed(f"this is not YAML as cassettes have it: the tag {node.tag} is unknown")
    size += _LEAST_SIZE
    if size > _MAX_CHARACTERS:
        raise StoreFailed(
            f"it holds more than {_MAX_CHARACTERS:,} characters once its aliases are followed"
        )
    known[id(node)] = value, size
    return value, size


class _Dumper(yaml.SafeDumper):
    """Writes the values whose ids are `shared` once, and refers to them elsewhere."""

    shared: Collection[int] = ()

    def ignore_aliases(self, data: Any) -> bool:
        return id(data) not in self.shared


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = '"' if _NOT_IN_BLOCKS.search(text) else "|" if "\n" in text else None
    return dumper.represent_scalar(f"{_TAG}str", text, style=style)


_Dumper.add_representer(str, _represent_text)
_Dumper.add_implicit_resolver(f"{_TAG}float", _FLOAT, list("-.0123456789"))


def dump(value: Any, shared: Collection[int] = ()) -> str:
    """YAML of a JSON value; `shared` are the ids of the objects that are written once, wherever they stand."""
    stream = StringIO()
    dumper = _Dumper(
        stream, default_flow_style=None, width=100, allow_unicode=True, sort_keys=False
    )
    dumper.shared = shared
    dumper.open()
    dumper.represent(value)
    dumper.close()
    return stream.getvalue()
