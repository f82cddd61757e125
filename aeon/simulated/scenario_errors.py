"""What is wrong in a scenario file, in words: file, line, place, and what is allowed there."""

from __future__ import annotations

import difflib
from typing import Any, get_args

import pydantic
from pydantic_core import ErrorDetails

from aeon.domain.request import CallName
from aeon.files.located_yaml import LocatedYaml, Place, dotted

_CALLS = (*get_args(CallName), "*")
_MOST_SHOWN = 10


def explained(error: pydantic.ValidationError, document: LocatedYaml, model: type[pydantic.BaseModel]) -> str:
    """A line for each error, in the order of the file."""
    found = {_one(details, document, model) for details in error.errors(include_url=False)}
    lines = [f"{document.path}:{line}: {text}" for line, text in sorted(found)]
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return "\n".join([*lines[:_MOST_SHOWN], *more])


def _one(details: ErrorDetails, document: LocatedYaml, model: type[pydantic.BaseModel]) -> tuple[int, str]:
    place = _real(details["loc"], document.value)
    where = dotted(place)
    if "[key]" in details["loc"]:
        return document.line(place), f"`{place[-1]}` is not a call; {_allowed(str(place[-1]), _CALLS)}"
    if details["type"] == "extra_forbidden":
        names = tuple(_model_at(place[:-1], model).model_fields)
        return document.line(place), f"{where}: unknown key; {_allowed(str(place[-1]), names)}"
    return document.line(place), f"{where}: {_said(details)}" if where else _said(details)


def _said(details: ErrorDetails) -> str:
    message = details["msg"].removeprefix("Value error, ")
    given = details["input"]
    shown = f" (it is {given!r})" if isinstance(given, str | int | float | bool | None) else ""
    return f"{message[:1].lower()}{message[1:]}{shown}"


def _allowed(given: str, names: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(given, names, n=1)
    nearest = f"did you mean `{near[0]}`? " if near else ""
    return f"{nearest}allowed are {', '.join(names)}"


def _real(location: tuple[int | str, ...], value: Any) -> Place:
    """The part of pydantic's location that is in the file; it also names members of unions and keys."""
    place: Place = ()
    for part in location:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, dict) and part in value):
            value, place = value[part], (*place, part)
    return place


def _model_at(place: Place, model: type[pydantic.BaseModel]) -> type[pydantic.BaseModel]:
    """The model of the mapping at a place: the annotation of the last field on the way that has one."""
    for part in place:
        if isinstance(part, str) and part in model.model_fields:
            model = _model_in(model.model_fields[part].annotation) or model
    return model


def _model_in(annotation: Any) -> type[pydantic.BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner))), None)
