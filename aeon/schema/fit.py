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

from aeon.schema.json_schema import is_type, pointer, resolve, type_of

# A range of no more integers than this is compared value by value.
_SMALL_RANGE = 1000


@dataclass(frozen=True, slots=True)
class _Form:
    """What a schema allows of one type: where it stands, references followed, and the schema there."""

    place: str
    schema: Mapping[str, Any]
    kind: str

    @property
    def properties(self) -> Mapping[str, Any]:
        properties: Mapping[str, Any] = self.schema.get("properties", {})
        return properties if self.kind == "object" else {}


# One place of an answer: its pointer, what the person's schema allows there, and the packaged one's forms by type.
_Pair = tuple[str, tuple[_Form, ...], dict[str, _Form]]


def misfits(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> tuple[str, ...]:
    """Why answers by a person's schema could not be read, each as `pointer: reason`; empty when they can."""
    found = (f"{place or '(root)'}: {reason}" for pair in _pairs(own, packaged) for place, reason in _compare(pair))
    return tuple(dict.fromkeys(found))


def extras(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """The properties that only the person's schema has: JSON pointer of the object to names."""
    names: dict[str, set[str]] = {}
    read: dict[str, set[str]] = {}
    for _, forms, counterparts in _pairs(own, packaged):
        for form in forms:
            if form.kind == "object" and "object" in counterparts:
                names.setdefault(form.place, set()).update(form.properties)
                read.setdefault(form.place, set()).update(counterparts["object"].properties)
    return {place: frozenset(names[place] - read[place]) for place in names if names[place] - read[place]}


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
        forms = {form.kind: form for form in _forms(schema, packaged, "")}
        if isinstance(value, dict) and "object" in forms:
            properties = forms["object"].properties
            return {name: read(inner, properties[name]) for name, inner in value.items() if name in properties}
        if isinstance(value, list) and "array" in forms:
            return [read(inner, forms["array"].schema.get("items")) for inner in value]
        return value

    return read(answer, packaged)


def _compare(pair: _Pair) -> Iterator[tuple[str, str]]:
    place, forms, counterparts = pair
    kinds = {form.kind for form in forms}
    if kinds != counterparts.keys():
        found = " or ".join(sorted(kinds)) or "anything"
        yield place, f"must be of type {' or '.join(counterparts)}, not {found}"
    for form in forms:
        counterpart = counterparts.get(form.kind)
        if counterpart is None:
            continue
        missing = [name for name in counterpart.properties if name not in form.properties]
        yield from ((form.place, f"has no property {name!r}") for name in missing)
        allowed, values = _values(counterpart), _values(form)
        if allowed is not None and (values is None or not all(value in allowed for value in values)):
            yield form.place, f"must allow no values but {', '.join(map(str, allowed))}"


def _pairs(own: Mapping[str, Any], packaged: Mapping[str, Any]) -> Iterator[_Pair]:
    """Every place that the packaged schema has and the person's has too, outermost first."""
    waiting: list[tuple[str, Any, Any]] = [("", own, packaged)]
    while waiting:
        place, mine, theirs = waiting.pop(0)
        forms = tuple(_forms(mine, own, place))
        counterparts = {form.kind: form for form in _forms(theirs, packaged, "")}
        yield place, forms, counterparts
        for form in forms:
            if form.kind in counterparts:
                waiting += _inside(form, counterparts[form.kind])


def _inside(form: _Form, counterpart: _Form) -> Iterator[tuple[str, Any, Any]]:
    if form.kind == "array":
        yield f"{form.place}/items", form.schema.get("items"), counterpart.schema.get("items")
    for name, schema in counterpart.properties.items():
        if name in form.properties:
            yield form.place + pointer(("properties", name)), form.properties[name], schema


def _forms(
    schema: Any, document: Mapping[str, Any], place: str, followed: frozenset[str] = frozenset()
) -> Iterator[_Form]:
    """A schema as one form for each type it allows; nothing where it says nothing of types."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        reference = schema["$ref"]
        if reference not in followed:
            target = resolve(document, reference)
            yield from _forms(target, document, reference.removeprefix("#"), followed | {reference})
    elif "anyOf" in schema:
        for index, option in enumerate(schema["anyOf"]):
            yield from _forms(option, document, f"{place}/anyOf/{index}", followed)
    else:
        yield from (_Form(place, schema, kind) for kind in _kinds(schema))


def _kinds(schema: Mapping[str, Any]) -> Sequence[str]:
    listed, declared = _listed(schema), schema.get("type")
    if declared is None:
        return tuple(dict.fromkeys(map(type_of, listed or ())))
    kinds = [declared] if isinstance(declared, str) else declared
    return kinds if listed is None else [kind for kind in kinds if any(is_type(value, kind) for value in listed)]


def _values(form: _Form) -> Sequence[Any] | None:
    """The values of its type that a form allows, where they are few; None where they are not listed."""
    listed = _listed(form.schema)
    if listed is not None:
        return [value for value in listed if is_type(value, form.kind)]
    least, most = form.schema.get("minimum"), form.schema.get("maximum")
    if form.kind == "integer" and least is not None and most is not None and most - least < _SMALL_RANGE:
        return range(math.ceil(least), math.floor(most) + 1)
    return None


def _listed(schema: Mapping[str, Any]) -> Sequence[Any] | None:
    values: Sequence[Any] | None = [schema["const"]] if "const" in schema else schema.get("enum")
    return values
