"""JSON Schemas as grammars (GBNF) that the local model's decoding is held to.

llama-cpp-python has the converter. What it reads wrongly is put into a form that it reads rightly, and what a grammar
cannot hold (most ranges, patterns, long bounds) is left out: every answer is validated afterwards all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from aeon.schema.json_schema import resolve

# Bounds above these are nested as deep as they are long, in a parser that recurses.
LONGEST_TEXT, LONGEST_LIST = 256, 64

_ANNOTATIONS = frozenset({"description", "title", "default", "examples", "$comment", "$schema", "$id", "pattern"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_BOUNDS = {"minLength": LONGEST_TEXT, "maxLength": LONGEST_TEXT, "minItems": LONGEST_LIST, "maxItems": LONGEST_LIST}
# Ranges by type, minimum and maximum: the ones that Aeon's own schemas have. Scores out of range are a small model's
# commonest mistake.
_NUMBERS: dict[tuple[Any, Any, Any], str] = {
    ("number", 0, 1): '"0" ("." [0-9]{1,6})? | "1" ("." "0"{1,6})?',
    ("integer", 0, None): '"0" | [1-9] [0-9]{0,8}',
    ("integer", 1, None): "[1-9] [0-9]{0,8}",
}
_ANY = ("object", "array", "string", "number", "boolean", "null")
# The converter's own rule lets control characters through, which no JSON text may hold, and what is no character.
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F\uD800-\uDFFF\U00110000-\U003FFFFF] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
_CONVERTERS_CHARACTER = re.compile(r"^char ::= .*$", re.MULTILINE)


class NotExpressible(Exception):
    """A schema that no grammar can be made of: one that refers to itself, or uses `allOf`, or a keyword not known."""


def grammars(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """The grammars of a schema, the closest first; the last one, always there, is that of any JSON object."""
    from llama_cpp.llama_grammar import JSON_GBNF

    try:
        return _converted(expressible(schema)), JSON_GBNF
    except (NotExpressible, RecursionError):
        return (JSON_GBNF,)


def expressible(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as the converter reads it rightly: references followed, types one by one, only what a grammar holds.

    Raises NotExpressible.
    """
    document = dict(schema)
    return _part(document, document, ())


def _converted(schema: dict[str, Any]) -> str:
    from llama_cpp.llama_grammar import RESERVED_NAMES, SchemaConverter

    class Converter(SchemaConverter):  # type: ignore[misc] # untyped where the extra is not installed
        """With literals escaped whole, values as JSON writes them, and the ranges of `_NUMBERS`."""

        def visit(self, schema: dict[str, Any], name: str) -> str:
            rule = _NUMBERS.get((schema.get("type"), schema.get("minimum"), schema.get("maximum")))
            if rule is None:
                return str(super().visit(schema, name))
            return str(self._add_rule(f"{name}-" if name in RESERVED_NAMES else name or "root", f"({rule}) space"))

        def _format_literal(self, literal: str) -> str:
            return '"' + literal.replace("\\", "\\\\").replace('"', '\\"') + '"'

        def _generate_constant_rule(self, value: Any) -> str:
            return self._format_literal(json.dumps(value, ensure_ascii=False))

    converter = Converter(prop_order={}, allow_fetch=False, dotall=False, raw_pattern=False)
    try:
        converter.visit(schema, "")
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise NotExpressible(str(error)) from error
    return _CONVERTERS_CHARACTER.sub(lambda _: _CHARACTER, converter.format_grammar())


def _part(part: Any, document: dict[str, Any], open_references: tuple[str, ...]) -> dict[str, Any]:
    if part is True or part == {}:
        return {"anyOf": [{"type": kind} for kind in _ANY]}
    if not isinstance(part, dict) or "allOf" in part:
        raise NotExpressible("false, or an allOf")
    if "$ref" in part:
        return _referred(part["$ref"], document, open_references)
    if "const" in part or "enum" in part:
        return {"enum": list(part["enum"]) if "enum" in part else [part["const"]]}
    kept = {name: value for name, value in part.items() if _holds(name, value)}
    if isinstance(kinds := kept.get("type"), list):
        return {"anyOf": [_part({**kept, "type": kind}, document, open_references) for kind in kinds]}
    return {name: _keyword(name, value, document, open_references) for name, value in kept.items()} or _part(
        True, document, open_references
    )


def _holds(keyword: str, value: Any) -> bool:
    if keyword in _BOUNDS:
        return isinstance(value, int) and value <= _BOUNDS[keyword]
    return keyword not in _ANNOTATIONS | _DEFINITIONS


def _keyword(keyword: str, value: Any, document: dict[str, Any], open_references: tuple[str, ...]) -> Any:
    if keyword == "properties":
        return {name: _part(inner, document, open_references) for name, inner in value.items()}
    if keyword in ("anyOf", "oneOf", "prefixItems"):
        return [_part(inner, document, open_references) for inner in value]
    if keyword == "items" or (keyword == "additionalProperties" and isinstance(value, dict)):
        return _part(value, document, open_references)
    return value


def _referred(reference: str, document: dict[str, Any], open_references: tuple[str, ...]) -> dict[str, Any]:
    target = resolve(document, reference)
    if reference in open_references or target is None:
        raise NotExpressible(reference)
    return _part(target, document, (*open_references, reference))
