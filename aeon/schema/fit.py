"""A person's schema file held against the packaged one of the same call: what the program reads must be in it.

Both are walked side by side. At every place a person's schema has the same types as the packaged one, all its
properties, and no other values where the packaged one lists them. Properties of its own are asked of the model like all
others; what is answered there is neither checked nor read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
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


def extras(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The properties that only the person's schema has: JSON pointer of the object to names."""
    asked: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    for _, forms, counterparts in _walk_both(own, packaged):
        names = {name for _, counterpart in counterparts for name in counterpart.get("properties", ())}
        for at, form in forms:
            if names and "properties" in form:
                asked.setdefault(at, set()).update(form["properties"])
                read.setdefault(at, set()).update(names)
    return {at: frozenset(asked[at] - read[at]) for at in asked if asked[at] - read[at]}


def relax_extras(schema: dict[str, Any], extra: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """The schema with the properties that nothing reads neither required nor checked. `extra` is as `extras` gives."""
    result = deepcopy(schema)
    for place, names in extra.items():
        part = resolve(result, f"#{place}")
        part["required"] = [name for name in part.get("required", ()) if name not in names]
        part["properties"].update(dict.fromkeys(names, True))
    return result


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
