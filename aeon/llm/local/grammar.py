"""Converts JSON Schemas to the grammars (GBNF) that constrain the local model's decoding.

llama-cpp-python has the converter. Schemas that it misreads are rewritten, and what a grammar
cannot express (most ranges, patterns, long bounds) is left out: every answer is validated
afterwards anyway.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import resolve

# Bounds above these nest the grammar as deep as they are long, in a recursive parser.
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
# The ranges in Aeon's own schemas, by type, minimum and maximum.
_NUMBERS: dict[tuple[Any, Any, Any], str] = {
    ("number", 0, 1): '"0" ("." [0-9]{1,6})? | "1" ("." "0"{1,6})?',
    ("integer", 0, None): '"0" | [1-9] [0-9]{0,8}',
    ("integer", 1, None): "[1-9] [0-9]{0,8}",
}
_ANY = {
    "anyOf": [{"type": kind} for kind in ("object", "array", "string", "number", "boolean", "null")]
}
# The converter's own rule allows control characters, which JSON text may not contain, and code
# points that are no characters.
_CHARACTER = r'char ::= [^"\\\x7F\x00-\x1F\uD800-\uDFFF\U00110000-\U003FFFFF] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'


class NotExpressible(Exception):
    """A schema that no grammar can express."""


def closest_grammar(schema: JsonMapping) -> str:
    """Return the grammar of a schema, or that of any JSON object if the schema has none."""
    from llama_cpp.llama_grammar import JSON_GBNF, RESERVED_NAMES, SchemaConverter

    class Converter(SchemaConverter):  # type: ignore[misc] # untyped where the extra is not installed
        """With literals escaped whole, values as JSON writes them, and the ranges of `_NUMBERS`."""

        def visit(self, schema: JsonObject, name: str) -> str:
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
    part: Any, document: JsonMapping, open_references: tuple[str, ...] = ()
) -> JsonObject:
    """Return a part of a schema in a form that the converter reads correctly, without what a
    grammar cannot express. Raises NotExpressible for a part that refers to itself or uses `allOf`.
    """
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
    reference: str, document: JsonMapping, open_references: tuple[str, ...]
) -> JsonObject:
    target = resolve(document, reference)
    if reference in open_references or target is None:
        raise NotExpressible(reference)
    return expressible(target, document, (*open_references, reference))


def _is_held(name: str, value: Any) -> bool:
    return name in _KEPT or (name in _BOUNDS and bool(value <= _BOUNDS[name]))


def _keyword(name: str, value: Any, rewrite: Callable[[Any], JsonObject]) -> Any:
    if name == "properties":
        return {key: rewrite(inner) for key, inner in value.items()}
    if name in _FORMS:
        return list(map(rewrite, value))
    return rewrite(value) if name == "items" or isinstance(value, dict) else value
