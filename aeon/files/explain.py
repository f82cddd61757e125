"""Explains pydantic's errors in the terms of a document's author: the place, the mistake, and what
is allowed."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from typing import Any, NamedTuple, get_args, get_origin

import pydantic
from pydantic_core import ErrorDetails

from aeon.domain.values import JsonMapping
from aeon.files.located_yaml import LocatedYaml, Position
from aeon.files.text import Place, format_place

_MUST_BE = {
    "string_type": "must be text",
    "path_type": "must be a path, in quotes if it is a number",
    "string_unicode": "must be valid Unicode text",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "tuple_type": "must be a list: [one, other]",
    "list_type": "must be a list: [one, other]",
    "dict_type": "must be a mapping: names and values",
    "model_type": "must be a mapping: names and values",
    "model_attributes_type": "must be a mapping: names and values",
    "finite_number": "must be a number that JSON has",
    "invalid-json-value": "must be a value that JSON has",
}


class Mistake(NamedTuple):
    """One error: `kind` is pydantic's name for it; `at_key`: the key itself is wrong."""

    place: Place
    text: str
    kind: str
    given: Any
    at_key: bool = False

    def position(self, document: LocatedYaml) -> Position:
        """Return the mistake's position in its file."""
        return document.key_position(self.place) if self.at_key else document.position(self.place)

    def sentence(self) -> str:
        """Return the place, the mistake, and the value if it is short."""
        where = f"{format_place(self.place)}: " if self.place else ""
        if (
            self.at_key
            or self.kind == "missing"
            or not isinstance(self.given, str | int | float | None)
        ):
            return f"{where}{self.text}"
        if self.given is None:
            return f"{where}{self.text}, but nothing is given"
        given = str(self.given).lower() if isinstance(self.given, bool) else str(self.given)[:60]
        if self.kind == "string_type":
            return f'{where}{self.text}: quote it if you mean the text "{given}"'
        return f"{where}{self.text} (it is {repr(given) if isinstance(self.given, str) else given})"


def explain(
    error: pydantic.ValidationError,
    value: object,
    model: type[pydantic.BaseModel],
    other_spellings: Mapping[str, str] | None = None,
) -> Iterator[Mistake]:
    """Yield a mistake for each error of `model` in a value; `other_spellings` maps keys that people
    write to the right ones."""
    for details in error.errors(include_url=False):
        # For a list that is long enough, its items are reported instead.
        if details["type"] != "too_short" or not details["input"]:
            yield _explain_one(details, value, model, other_spellings or {})


def _explain_one(
    details: ErrorDetails,
    value: object,
    model: type[pydantic.BaseModel],
    other_spellings: Mapping[str, str],
) -> Mistake:
    kind = details["type"]
    given = details["input"]
    place = _place_in(value, details["loc"])
    if kind == "missing":
        return Mistake(place, f"`{details['loc'][-1]}` is missing", kind, given)
    if kind == "extra_forbidden":
        fields = _model_at(place[:-1], value, model).model_fields
        allowed = [field.alias or name for name, field in fields.items()]
        return Mistake(
            place, _unknown_key(str(place[-1]), allowed, other_spellings), kind, given, True
        )
    if "[key]" in details["loc"]:
        # Pydantic lists allowed keys in a sentence only: "'one', 'two' or 'three'".
        expected = str(details.get("ctx", {}).get("expected", "")).replace(" or ", ", ")
        allowed = [name.strip("'") for name in expected.split(", ") if name]
        words = "a key must be text: quote it"
        if allowed:
            words = _unknown_key(str(place[-1]), allowed, other_spellings)
        return Mistake(place, words, kind, given, True)
    message = details["msg"].removeprefix("Value error, ").replace("Input should be", "must be", 1)
    return Mistake(place, _MUST_BE.get(kind) or f"{message[:1].lower()}{message[1:]}", kind, given)


def _unknown_key(given: str, allowed: Collection[str], other_spellings: Mapping[str, str]) -> str:
    other = other_spellings.get(given.lower())
    near = [other] if other in allowed else get_close_matches(given, allowed, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    return f"unknown key; {meant}allowed are {', '.join(allowed)}"


def _place_in(value: Any, location: tuple[int | str, ...]) -> Place:
    """Return the part of pydantic's location that is in the document; pydantic also names members
    of unions, and keys."""
    place: Place = ()
    for part in location:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, Mapping) and part in value):
            value = value[part]
            place = (*place, part if in_list else str(part))
    return place


def _model_at(
    place: Place, value: Any, model: type[pydantic.BaseModel]
) -> type[pydantic.BaseModel]:
    models = [model]
    for part in place:
        try:
            value = value[part]
        except (LookupError, TypeError):
            value = None
        field = models[0].model_fields.get(str(part))
        # Below a name of the author's own, the kind is decided a level later.
        models = [found for found, _ in models_in(field.annotation if field else None)] or models
        if isinstance(value, dict):
            models.sort(key=partial(_is_of_other_kind, value))
    return models[0]


def _is_of_other_kind(value: JsonMapping, model: type[pydantic.BaseModel]) -> bool:
    for name in ("kind", "type"):
        if field := model.model_fields.get(name):
            return value.get(name) not in (field.default, *get_args(field.annotation))
    return True


def models_in(
    annotation: object, *, named: bool = False
) -> Iterator[tuple[type[pydantic.BaseModel], bool]]:
    """Yield the models that a field may contain, and whether it contains them by name."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        yield annotation, named
        return
    for argument in get_args(annotation):
        yield from models_in(argument, named=named or get_origin(annotation) is dict)


def first_mistake(error: pydantic.ValidationError) -> str:
    """Return the place and message of pydantic's first error, for values that no person wrote."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}" if place else str(first["msg"])
