"""A person's schema file held against the packaged one of the same call: what the program reads must be in it.

Both are walked side by side. At every place a person's schema has the same types as the packaged one, all its
properties, and no other values where the packaged one lists them. Properties of its own are asked of the model like all
others; what is answered there is neither checked nor read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aeon.schema.json_schema import pointer, resolve, type_of

# A schema without references and alternatives at its top, and where it stands.
_Form = tuple[str, Mapping[str, Any]]


def misfits(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> tuple[str, ...]:
    """Why answers by a person's schema could not be read, each as `pointer: reason`; empty when they can."""
    found: list[str] = []
    for place, forms, counterparts in _walk_both(own, packaged):
        kinds, wanted = _types(forms), _types(counterparts)
        if kinds.keys() != wanted.keys():
            given = " or ".join(sorted(kinds)) or "anything"
            found.append(f"{place or '(root)'}: must be of type {' or '.join(wanted)}, not {given}")
            continue
        for at, form in forms:
            for _, counterpart in counterparts:
                found += [f"{at or '(root)'}: {reason}" for reason in _compare(form, counterpart)]
    return tuple(dict.fromkeys(found))


def relax_extras(own: dict[str, Any], packaged: Mapping[str, Any]) -> dict[str, Any]:
    """The person's schema with the properties that nothing reads neither required nor checked."""

    def relax(mine: Any, theirs: Any) -> Any:
        if "$ref" in mine:
            return relax(resolve(own, mine["$ref"]), theirs)
        if "anyOf" in mine:
            return {**mine, "anyOf": [relax(option, theirs) for option in mine["anyOf"]]}
        result = dict(mine)
        for _, form in _forms(theirs, packaged, ""):
            read = form.get("properties", {})
            if read and "properties" in mine:
                parts = mine["properties"].items()
                result["properties"] = {name: relax(part, read[name]) if name in read else True for name, part in parts}
                result["required"] = [name for name in mine.get("required", ()) if name in read]
            if "items" in form and "items" in mine:
                result["items"] = relax(mine["items"], form["items"])
        return result

    relaxed: dict[str, Any] = relax(own, packaged)
    return relaxed


def drop_extras(answer: Any, packaged: Mapping[str, Any]) -> Any:
    """An answer without the properties that the packaged schema does not have."""

    def read(value: Any, schema: Any) -> Any:
        for _, form in _forms(schema, packaged, ""):
            if isinstance(value, dict) and "properties" in form:
                known = form["properties"]
                return {name: read(inner, known[name]) for name, inner in value.items() if name in known}
            if isinstance(value, list) and "items" in form:
                return [read(inner, form["items"]) for inner in value]
        return value

    return read(answer, packaged)


def _compare(form: Mapping[str, Any], counterpart: Mapping[str, Any]) -> Iterator[str]:
    """What a person's form lacks of a packaged one of the same type."""
    properties, allowed = counterpart.get("properties", {}), counterpart.get("enum")
    if properties and "properties" in form:
        yield from (f"has no property {name!r}" for name in properties if name not in form["properties"])
    if allowed is not None and form.get("type") != "null":
        values = _listed(form)
        if values is None or not all(value in allowed for value in values):
            yield f"must allow no values but {', '.join(map(str, allowed))}"


def _walk_both(
    own: Mapping[str, Any], packaged: Mapping[str, Any]
) -> Iterator[tuple[str, Sequence[_Form], Sequence[_Form]]]:
    """Every place that both schemas have, outermost first: its pointer, and the forms that either has there."""
    waiting: list[tuple[str, Any, Any]] = [("", own, packaged)]
    while waiting:
        place, mine, theirs = waiting.pop(0)
        forms, counterparts = list(_forms(mine, own, place)), list(_forms(theirs, packaged, ""))
        yield place, forms, counterparts
        for (at, form), (_, counterpart) in ((f, c) for f in forms for c in counterparts):
            known = form.get("properties", {})
            for name, schema in counterpart.get("properties", {}).items():
                if name in known:
                    waiting.append((at + pointer(("properties", name)), known[name], schema))
            if "items" in form and "items" in counterpart:
                waiting.append((f"{at}/items", form["items"], counterpart["items"]))


def _forms(schema: Any, document: Mapping[str, Any], place: str) -> Iterator[_Form]:
    """The alternatives of a schema, references followed. Raises RecursionError for one that only leads to itself."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _forms(resolve(document, schema["$ref"]), document, schema["$ref"][1:])
    elif "anyOf" in schema:
        for index, option in enumerate(schema["anyOf"]):
            yield from _forms(option, document, f"{place}/anyOf/{index}")
    else:
        yield place, schema


def _types(forms: Sequence[_Form]) -> dict[str, None]:
    """The types that a place allows, in order."""
    found: list[str] = []
    for _, form in forms:
        declared = form.get("type")
        listed = declared if declared is not None else map(type_of, _listed(form) or ())
        found += [declared] if isinstance(declared, str) else listed
    return dict.fromkeys(found)


def _listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    return [schema["const"]] if "const" in schema else schema.get("enum")
