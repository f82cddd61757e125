"""What a key of the configuration may hold, in words, from the JSON Schema of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_WORDS = {"boolean": "true or false", "string": "text", "object": "mapping", "array": "list", "null": "null"}
_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}

Schema = Mapping[str, Any]


def describe_types(schema: Schema, key: str) -> list[str]:
    """What the settings of a JSON Schema take at a dotted key, each kind once; empty for a key they do not have."""
    nodes = list(_unions(schema, schema))
    for name in key.split("."):
        nodes = [found for node in nodes for child in _children(node, name) for found in _unions(schema, child)]
    return list(dict.fromkeys(_described(schema, node) for node in nodes))


def _unions(root: Schema, node: Schema) -> Iterator[Schema]:
    """The alternatives of a node, references followed."""
    if "$ref" in node:
        yield from _unions(root, root["$defs"][str(node["$ref"]).rpartition("/")[2]])
        return
    parts = node.get("anyOf") or node.get("oneOf")
    if not parts:
        yield node
    for part in parts or ():
        yield from _unions(root, part)


def _children(node: Schema, name: str) -> Iterator[Schema]:
    named = node.get("properties", {}).get(name)
    others = node.get("additionalProperties")
    if named is not None:
        yield named
    elif isinstance(others, Mapping):
        yield others


def _described(root: Schema, node: Schema) -> str:
    if values := node.get("enum"):
        return f"one of {', '.join(map(str, values))}"
    if "const" in node:
        return str(node["const"])
    kind = str(node.get("type", "any"))
    word = "path" if node.get("format") == "path" else _WORDS.get(kind, kind)
    bounds = [f"{words} {node[bound]:g}" for bound, words in _BOUNDS.items() if bound in node]
    inner = node.get("items") if kind == "array" else node.get("additionalProperties")
    if isinstance(inner, Mapping) and inner:
        kinds = dict.fromkeys(_described(root, part) for part in _unions(root, inner))
        word = f"{word} of {' or '.join(kinds)}"
    return ", ".join([word, *bounds])
