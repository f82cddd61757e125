"""JSON Schemas as grammars (GBNF) that the local model's decoding is held to.

llama-cpp-python has the converter. What it reads wrongly is put into a form that it reads rightly,
and what a grammar cannot hold (most ranges, patterns, long bounds) is left out: every answer is
validated afterwards all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aeon.schema.json_schema import resolve

# Bounds above these are nested as deep as they are long, in a parser that recurses.
_BOUNDS = {"minLength": 256, "maxLength": 256, "minItems": 64, "maxItems": 64}
_FORMS = frozenset({"anyOf", "oneOf", "prefixItems"})
_KEPT = _FORMS | {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "minimum",
    "maximum",
}
# Ranges by type, minimum and maximum: the ones that Aeon's own schemas have.
_NUMBERS: dict[tuple[Any, Any, Any], str] = {
    ("number", 0, 1): '"0" ("." [0-9]{1,6})? | "1" ("." "0"{1,6})?',
    ("integer", 0, None): '"0" | [1-9] [0-9]{0,8}',
    ("integer", 1, None): "[1-9] [0-9]{0,8}",
}
_ANY = {
    "anyOf": [{"type": kind} for kind in ("object", "array", "string", "number", "boolean", "null")]
}
# The converter's own rule lets control characters through, which no JSON text may hold, and what is
# no character.
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F\uD800-\uDFFF\U00110000-\U003FFFFF] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'


class NotExpressible(Exception):
    """A schema that no grammar can be made of."""


def closest_grammar(schema: Mapping[str, Any]) -> str:
    """The grammar of a schema; where it has none, the grammar of any JSON object."""
    from llama_cpp.llama_grammar import JSON_GBNF, RESERVED_NAMES, SchemaConverter

    class Converter(SchemaConverter):  # type: ignore[misc] # untyped where the extra is not installed
        """With literals escaped whole, values as JSON writes them, and the ranges of `_NUMBERS`."""

        def visit(self, schema: dict[str, Any], name: str) -> str:
            rule = _NUMBERS.get((schema.get("type"), schema.get("minimum"), schema.get("maximum")))
            if rule is None:
                return str(super().visit(schema, name))
            rule_name = f"{name}-" if name in RESERVED_NAMES else name or "root"
            return str(self._add_rule(rule_name, f"({rule}) space"))

        def _format_literal(self, literal: str) -> str:
            return '"' + literal.replace("\\", "\\\\").replace('"', '\\"') + '"'

        def _generate_constant_rule(self, value: object) -> str:
            return self._format_literal(json.dumps(value, ensure_ascii=False))

    converter = Converter(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
    try:
        converter.visit(expressible(schema, schema), "")
    except (
        NotExpressible,
        RecursionError,
        AssertionError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
    ):
        return str(JSON_GBNF)
    return re.sub(
        r"^char ::= .*$", lambda _: _CHARACTER, converter.format_grammar(), flags=re.MULTILINE
    )


def expressible(
    part: Any, document: Mapping[str, Any], open_references: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A part of a schema as the converter reads it rightly, with only what a grammar holds. Raises
    NotExpressible for one that refers to itself, or uses `allOf`."""
    if part is True or part == {}:
        return _ANY
    _require_expressible(part)
    if "$ref" in part:
        return _expressible_target(part["$ref"], document, open_references)
    if part.get("enum"):
        return {"enum": list(part["enum"])}
    if "const" in part:
        return {"enum": [part["const"]]}
    rewrite = partial(expressible, document=document, open_references=open_references)
    if isinstance(part.get("type"), list):
        return {"anyOf": [rewrite({**part, "type": kind}) for kind in part["type"]]}
    rewritten = {
        name: _keyword(name, value, rewrite)
        for name, value in part.items()
        if _is_held(name, value)
    }
    return rewritten or _ANY


def _require_expressible(part: object) -> None:
    if not isinstance(part, Mapping) or "allOf" in part:
        raise NotExpressible("false, or an allOf")


def _expressible_target(
    reference: str, document: Mapping[str, Any], open_references: tuple[str, ...]
) -> dict[str, Any]:
    target = resolve(document, reference)
    if reference in open_references or target is None:
        raise NotExpressible(reference)
    return expressible(target, document, (*open_references, reference))


def _is_held(name: str, value: Any) -> bool:
    return name in _KEPT or (name in _BOUNDS and bool(value <= _BOUNDS[name]))


def _keyword(name: str, value: Any, rewrite: Callable[[Any], dict[str, Any]]) -> Any:
    if name == "properties":
        return {key: rewrite(inner) for key, inner in value.items()}
    if name in _FORMS:
        return list(map(rewrite, value))
    return rewrite(value) if name == "items" or isinstance(value, dict) else value
