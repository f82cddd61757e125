"""A person's schema file held against the packaged one of the same call: what the program reads must be in it.

Both are walked side by side. At every place a person's schema has the same types as the packaged one and, of an object,
all its properties; what it allows may be less, never more, where the packaged one lists the values. Properties of its
own are asked of the model like all others; what is answered there is neither checked nor read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from aeon.schema.json_schema import pointer, resolved

_KINDS = {type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
# A range of no more integers than this is compared value by value.
_SMALL_RANGE = 1000


@dataclass(frozen=True, slots=True)
class _Form:
    """What a schema allows of one type: where it stands, references followed, and the schema there."""

    place: str
    schema: Mapping[str, Any]
    kind: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """One place of an answer: what the person's schema allows there, and the packaged one's, by type."""

    place: str
    own: tuple[_Form, ...]
    packaged: Mapping[str, _Form]


def misfits(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> tuple[str, ...]:
    """Why answers by a person's schema could not be read, each as `pointer: reason`; empty when they can."""
    found = (f"{place or '(root)'}: {reason}" for pair in _pairs(own, packaged) for place, reason in _of_pair(pair))
    return tuple(dict.fromkeys(found))


def extras(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The properties that only the person's schema has: JSON pointer of the object to names."""
    names: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    for form, counterpart in _objects(own, packaged):
        names.setdefault(form.place, set()).update(_properties(form))
        read.setdefault(form.place, set()).update(_properties(counterpart))
    found = {place: frozenset(names[place] - read[place]) for place in names}
    return {place: own_names for place, own_names in found.items() if own_names}


def without_demands(schema: dict[str, Any], extra: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """The schema with the properties that nothing reads neither required nor checked. `extra` is as `extras` gives."""
    result = deepcopy(schema)
    for place, names in extra.items():
        part = resolved(result, f"#{place}")
        part["required"] = [name for name in part.get("required", ()) if name not in names]
        part["properties"].update(dict.fromkeys(names, True))
    return result


def known(value: Any, packaged: Mapping[str, Any]) -> Any:
    """An answer without the properties that the packaged schema does not have."""
    return _known(value, packaged, packaged)


def _known(value: Any, schema: Any, document: Mapping[str, Any]) -> Any:
    forms = {form.kind: form for form in _forms(schema, document, "")}
    if isinstance(value, dict) and "object" in forms:
        properties = _properties(forms["object"])
        return {name: _known(inner, properties[name], document) for name, inner in value.items() if name in properties}
    if isinstance(value, list) and "array" in forms:
        return [_known(inner, forms["array"].schema.get("items"), document) for inner in value]
    return value


def _of_pair(pair: _Pair) -> Iterator[tuple[str, str]]:
    kinds = {form.kind for form in pair.own}
    if kinds != pair.packaged.keys():
        yield pair.place, f"must be of type {_either(pair.packaged)}, not {_either(sorted(kinds)) or 'anything'}"
    for form in pair.own:
        counterpart = pair.packaged.get(form.kind)
        if counterpart is None:
            continue
        missing = [name for name in _properties(counterpart) if name not in _properties(form)]
        yield from ((form.place, f"has no property {name!r}") for name in missing)
        allowed, values = _values(counterpart), _values(form)
        if allowed is not None and (values is None or not all(value in allowed for value in values)):
            yield form.place, f"must allow no values but {', '.join(map(str, allowed))}"


def _pairs(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> Iterator[_Pair]:
    """Every place that the packaged schema has and the person's has too, outermost first."""
    waiting: list[tuple[str, Any, Any]] = [("", own, packaged)]
    while waiting:
        place, mine, theirs = waiting.pop(0)
        pair = _Pair(place, tuple(_forms(mine, own, place)), {form.kind: form for form in _forms(theirs, packaged, "")})
        yield pair
        for form in pair.own:
            if form.kind in pair.packaged:
                waiting += _inside(form, pair.packaged[form.kind])


def _inside(form: _Form, counterpart: _Form) -> Iterator[tuple[str, Any, Any]]:
    if form.kind == "array":
        yield f"{form.place}/items", form.schema.get("items"), counterpart.schema.get("items")
    if form.kind == "object":
        own = _properties(form)
        for name, schema in _properties(counterpart).items():
            if name in own:
                yield form.place + pointer(("properties", name)), own[name], schema


def _objects(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> Iterator[tuple[_Form, _Form]]:
    for pair in _pairs(own, packaged):
        for form in pair.own:
            if form.kind == "object" and "object" in pair.packaged:
                yield form, pair.packaged["object"]


def _forms(
    schema: Any, document: Mapping[str, Any], place: str, followed: frozenset[str] = frozenset()
) -> Iterator[_Form]:
    """A schema as one form for each type it allows; nothing where it says nothing of types."""
    if not isinstance(schema, Mapping):
        return
    reference = schema.get("$ref")
    if reference is not None:
        if reference not in followed:
            target = resolved(document, reference)
            yield from _forms(target, document, reference.removeprefix("#"), followed | {reference})
        return
    for index, option in enumerate(schema.get("anyOf", ())):
        yield from _forms(option, document, f"{place}/anyOf/{index}", followed)
    if "anyOf" not in schema:
        yield from (_Form(place, schema, kind) for kind in _kinds(schema))


def _kinds(schema: Mapping[str, Any]) -> Sequence[str]:
    listed, declared = _listed(schema), schema.get("type")
    if declared is None:
        return tuple(dict.fromkeys(_KINDS.get(type(value), "object") for value in listed or ()))
    kinds = [declared] if isinstance(declared, str) else declared
    return kinds if listed is None else [kind for kind in kinds if any(_is(value, kind) for value in listed)]


def _values(form: _Form) -> Sequence[Any] | None:
    """The values of its type that a form allows, where they are few; None where they are not listed."""
    listed = _listed(form.schema)
    if listed is not None:
        return [value for value in listed if _is(value, form.kind)]
    least, most = form.schema.get("minimum"), form.schema.get("maximum")
    if form.kind == "integer" and least is not None and most is not None and most - least < _SMALL_RANGE:
        return range(math.ceil(least), math.floor(most) + 1)
    return None


def _listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    values: Sequence[Any] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    return values


def _is(value: Any, kind: str) -> bool:
    return bool(Draft202012Validator.TYPE_CHECKER.is_type(value, kind))


def _properties(form: _Form) -> Mapping[str, Any]:
    properties: Mapping[str, Any] = form.schema.get("properties", {})
    return properties if form.kind == "object" else {}


def _either(kinds: Any) -> str:
    return " or ".join(kinds)
