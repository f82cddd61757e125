"""Limits the schemas that a check visits: a schema whose references double is refused before it is
ever used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject
from aeon.schema.json_schema import DEFINITIONS, list_inner_schemas, resolve, walk

MOST_VISITS = 10_000
"""Most schemas visited in one check, plus `VISITS_A_VALUE` for each value in the checked data."""
VISITS_A_VALUE = 20
MOST_IN_ALL = 200_000
"""Most schemas visited in one check, however many values there are."""
MOST_SCHEMAS = 10_000
"""Most schemas in a document, itself included."""
# The engine finishes this many at once; smaller checks are not counted.
_QUICK = 10_000_000
_CHARACTERS_A_VISIT = 1_000
_IN_PLACE_LISTS = ("anyOf", "allOf", "oneOf")
_IN_PLACE = ("not", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_OTHER_MEMBERS = ("additionalProperties", "unevaluatedProperties")
_OTHER_ITEMS = ("items", "additionalItems", "unevaluatedItems", "contains")
# Known to every validator; they refer to themselves only inside a value.
_META_SCHEMAS = ("http://json-schema.org/", "https://json-schema.org/")


class TooManyVisits(Exception):
    """A check would visit more schemas than allowed."""


class Visits:
    """Counts the schemas that checks by a schema visit. Raises ValueError, with the place, for a
    schema that cannot be checked in bounded time: it doubles its alternatives, or refers to itself
    without entering a value."""

    def __init__(self, schema: JsonMapping) -> None:
        self._schema = dict(schema)
        _refuse_inner_ids(self._schema)
        weigh = _Weights(self._find_in_place)
        for place, part in walk(self._schema):
            if (weight := weigh(part)) > MOST_VISITS:
                why = "it refers to itself" if weight == math.inf else f"{weight:,} of them"
                raise ValueError(
                    f"{place or '/'}: one value is checked by more than {MOST_VISITS:,} "
                    f"schemas: {why}"
                )
        self._weight = _Weights(self._find_all)(self._schema)

    def are_too_many(self, value: object) -> bool:
        """Whether checking this value would take more than MOST_VISITS visits plus VISITS_A_VALUE
        for each value in it, or more than MOST_IN_ALL; not counted if the engine finishes at once.
        """
        values = _count_values(value)
        if self._weight * values <= _QUICK:
            return False
        try:
            self._visit(self._schema, value, VisitBudget(values))
        except (TooManyVisits, RecursionError):
            return True
        return False

    def _visit(self, schema: object, value: object, budget: VisitBudget) -> None:
        budget.spend()
        if not isinstance(schema, Mapping):
            return
        for part in self._find_in_place(schema):
            self._visit(part, value, budget)
        if isinstance(value, Mapping):
            for name, inner in value.items():
                for part in _find_member_schemas(schema, name):
                    self._visit(part, inner, budget)
        elif isinstance(value, list):
            for place, inner in enumerate(value):
                for part in _find_item_schemas(schema, place):
                    self._visit(part, inner, budget)

    def _find_in_place(self, schema: JsonMapping) -> Iterator[Any]:
        """Yield the schemas that apply to a value because this one does."""
        yield from self._find_references(schema)
        for keyword in _IN_PLACE_LISTS:
            yield from _to_sequence(schema.get(keyword))
        yield from (schema[keyword] for keyword in _IN_PLACE if keyword in schema)
        for keyword in ("dependentSchemas", "dependencies"):
            parts = schema.get(keyword)
            yield from parts.values() if isinstance(parts, Mapping) else ()

    def _find_all(self, schema: JsonMapping) -> Iterator[Any]:
        yield from self._find_references(schema)
        for path, part in list_inner_schemas(schema):
            # A definition is visited where it is referred to.
            if path[0] not in DEFINITIONS:
                yield part

    def _find_references(self, schema: JsonMapping) -> Iterator[Any]:
        for keyword in _REFERENCES:
            if isinstance(reference := schema.get(keyword), str):
                yield self._follow(reference)

    def _follow(self, reference: str) -> Any:
        if reference.startswith(_META_SCHEMAS):
            return True
        found = resolve(self._schema, reference)
        if found is None:
            raise ValueError(f"the reference {reference!r} cannot be followed; use #/$defs/NAME")
        return found


def refuse_many_schemas(schema: JsonMapping) -> None:
    """Raise ValueError for a document of more than MOST_SCHEMAS: only to compile them takes
    seconds."""
    waiting: list[Any] = [schema]
    count = 0
    while waiting:
        part = waiting.pop()
        count += 1
        if count > MOST_SCHEMAS:
            raise ValueError(f"it has more than {MOST_SCHEMAS:,} schemas")
        if isinstance(part, Mapping):
            waiting += (inner for _, inner in list_inner_schemas(part))


class VisitBudget:
    """The remaining visits of a check."""

    def __init__(self, values: int) -> None:
        self._left = min(MOST_VISITS + VISITS_A_VALUE * values, MOST_IN_ALL)

    def spend(self, characters: int = 0) -> None:
        """Count a visit, and the length of its message. Raises TooManyVisits if none is left."""
        self._left -= 1 + characters // _CHARACTERS_A_VISIT
        if self._left < 0:
            raise TooManyVisits


_budget: ContextVar[VisitBudget | None] = ContextVar("budget", default=None)


@contextmanager
def limit_visits(value: object) -> Iterator[None]:
    """Make functions wrapped by `count_visits` raise TooManyVisits in this block once a check of
    `value` takes too many."""
    token = _budget.set(VisitBudget(_count_values(value)))
    try:
        yield
    finally:
        _budget.reset(token)


def count_visits(check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
    """Wrap a keyword's jsonschema function so that each call counts as a visit."""

    def check_counted(
        validator: object, keyword: object, instance: object, schema: object
    ) -> Iterator[Any]:
        budget = _budget.get()
        if budget is not None:
            budget.spend()
        for error in check(validator, keyword, instance, schema) or ():
            if budget is not None:
                budget.spend(len(error.message))
            yield error

    return check_counted


class _Weights:
    """The number of schemas reachable from one, counted as often as reached; infinite if it reaches
    itself."""

    def __init__(self, find_inner: Callable[[JsonMapping], Iterator[Any]]) -> None:
        self._find_inner = find_inner
        self._known: dict[int, float] = {}

    def __call__(self, schema: object) -> float:
        if not isinstance(schema, Mapping):
            return 1
        if id(schema) not in self._known:
            self._known[id(schema)] = math.inf  # its value while it is being counted
            self._known[id(schema)] = 1 + sum(map(self, self._find_inner(schema)))
        return self._known[id(schema)]


def _refuse_inner_ids(schema: JsonObject) -> None:
    """Raise ValueError for an inner schema with its own id, which changes the meaning of references
    in it."""
    own = "id" if "draft-04" in str(schema.get("$schema")) else "$id"
    for place, part in walk(schema):
        if place and isinstance(part.get(own), str):
            raise ValueError(
                f"{place}/{own}: is not supported inside of a schema; use #/$defs/NAME"
            )


def _find_member_schemas(schema: JsonMapping, name: str) -> Iterator[Any]:
    properties = schema.get("properties")
    patterns = schema.get("patternProperties")
    if isinstance(patterns, Mapping):
        yield from patterns.values()
    if isinstance(properties, Mapping) and name in properties:
        yield properties[name]
    else:
        yield from (schema[keyword] for keyword in _OTHER_MEMBERS if keyword in schema)


def _find_item_schemas(schema: JsonMapping, place: int) -> Iterator[Any]:
    for keyword in ("prefixItems", *_OTHER_ITEMS):
        part = schema.get(keyword)
        if not isinstance(part, list):
            yield from () if part is None else (part,)
        elif place < len(part):
            yield part[place]


def _to_sequence(parts: object) -> Sequence[Any]:
    return parts if isinstance(parts, list) else ()


def _count_values(value: object) -> int:
    waiting = [value]
    count = 0
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return count
