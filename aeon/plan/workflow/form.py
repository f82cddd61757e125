"""What pydantic finds in a workflow file, in the words of who wrote it. Private to workflows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import pydantic
from pydantic_core import ErrorDetails

from aeon.files.located_yaml import LocatedYaml, Place, dotted
from aeon.plan.workflow.models import Problem, WorkflowFile, WorkflowStep, problem_at

_OTHER_SPELLINGS = {
    "step_id": "id",
    "name": "id",
    "dependencies": "depends_on",
    "needs": "depends_on",
    "requires": "depends_on",
    "handoff_to_next": "handoff",
    "args": "arguments",
    "params": "arguments",
    "parameters": "arguments",
    "with": "arguments",
    "uses": "tool",
    "prompt": "description",
}
_WANTED = {
    "string_type": "must be text",
    "string_unicode": "must be valid Unicode text",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "tuple_type": "must be a list: [one, other]",
    "dict_type": "must be a mapping: names and values",
    "model_type": "must be a mapping: names and values",
    "model_attributes_type": "must be a mapping: names and values",
    "invalid_key": "must have text as keys",
    "literal_error": "must be `llm`",
    "finite_number": "must be a number that JSON has",
    "invalid-json-value": "must be a value that JSON has",
}


def form_problems(error: pydantic.ValidationError, document: LocatedYaml) -> Iterator[Problem]:
    """A problem for each of pydantic's errors."""
    for details in error.errors(include_url=False):
        if details["type"] == "too_short" and details["input"]:
            continue  # The list is long enough; what is wrong with its items is said of each.
        place = _real(details["loc"], document.value)
        unknown = details["type"] == "extra_forbidden" or "[key]" in details["loc"]
        position = document.key_position(place) if unknown else document.position(place)
        yield problem_at(position, _said(details, place))


def _said(details: ErrorDetails, place: Place) -> str:
    where = f"{dotted(place)}: " if place else ""
    kind, given = details["type"], details["input"]
    if kind == "missing":
        return f"{where}`{details['loc'][-1]}` is missing"
    if kind == "extra_forbidden":
        return f"{where}unknown key; {_allowed(str(place[-1]), _model_at(place))}"
    if "[key]" in details["loc"]:
        return f"{where}a key must be text: quote it"
    wanted = _WANTED.get(kind) or f"{details['msg'][:1].lower()}{details['msg'][1:]}"
    return f"{where}{wanted}{_shown(kind, given)}"


def _shown(kind: str, given: Any) -> str:
    if given is None:
        return ", and nothing is given"
    if isinstance(given, bool | int | float):
        said = str(given).lower() if isinstance(given, bool) else str(given)
        return f': quote it if you mean the text "{said}"' if kind == "string_type" else f" (it is {said})"
    return f" (it is '{given[:60]}')" if isinstance(given, str) and given else ""


def _allowed(given: str, model: type[pydantic.BaseModel]) -> str:
    names = [field.alias or name for name, field in model.model_fields.items()]
    other = _OTHER_SPELLINGS.get(given.lower())
    near = [other] if other in names else get_close_matches(given, names, n=1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    return f"{meant}allowed are {', '.join(names)}"


def _model_at(place: Place) -> type[pydantic.BaseModel]:
    return WorkflowStep if place[:1] == ("steps",) else WorkflowFile


def _real(location: tuple[int | str, ...], value: Any) -> Place:
    """The part of pydantic's location that is in the file; it also names kinds of JSON values, and keys."""
    place: Place = ()
    for part in location:
        in_list = isinstance(value, list) and isinstance(part, int) and part < len(value)
        if in_list or (isinstance(value, Mapping) and part in value):
            value, place = value[part], (*place, part if in_list else str(part))
    return place
