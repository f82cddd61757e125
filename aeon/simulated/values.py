"""JSON values for a JSON Schema: made up, fitted to a wish, or completed around what is given.

Covers what OpenAI's strict mode accepts and the plain keywords that people use beside it. A value is checked against
the whole schema before it is given out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random
from typing import Any, Final

from aeon.domain.errors import NotSimulated
from aeon.schema.json_schema import is_type, resolve, type_of
from aeon.schema.validators import is_valid
from aeon.simulated.texts import formatted_text, free_text, matching_text, resize_text

Schema = Mapping[str, Any]

_ATTEMPTS = 40
_SPARE_DEPTH, _MAX_DEPTH = 5, 24
# The type that a keyword speaks of, for a schema without a type.
_IMPLIED = {"properties": "object", "required": "object", "items": "array", "minimum": "number", "maximum": "number"}


class _Nothing:
    """No wish for this place."""


NOTHING: Final = _Nothing()


class _Impossible(Exception):
    """No value can be made for a part of a schema."""


def make_value(schema: Schema, rng: Random) -> Any:
    """A valid value of `schema`, made up from `rng`; free texts in it begin with "(simulated)". Raises NotSimulated."""
    return fit_value(schema, NOTHING, rng)


def fit_value(schema: Schema, wish: Any, rng: Random) -> Any:
    """A valid value that takes over from `wish` whatever the schema allows there; the rest is made up.

    Raises NotSimulated when none is found.
    """
    if wish is not NOTHING and is_valid(schema, wish):
        return wish
    for attempt in range(_ATTEMPTS):
        try:
            value = _Maker(schema, rng).value(schema, wish if attempt < _ATTEMPTS // 2 else NOTHING)
        except _Impossible:
            continue
        if is_valid(schema, value):
            return value
    raise NotSimulated(
        "the simulated provider can make up no value for this schema",
        hint="Script the answer in a scenario file (`aeon docs scenarios`).",
    )


def complete_value(schema: Schema, given: Any, rng: Random) -> Any:
    """`given`, never changed, with every required property that it lacks: null or an empty list where that is allowed,
    else the first of an enumeration, else made up."""
    try:
        return _Maker(schema, rng).complete(schema, given)
    except _Impossible:
        return given


class _Maker:
    """Makes one value. Deeper than `_SPARE_DEPTH` it makes as little as possible."""

    def __init__(self, root: Schema, rng: Random) -> None:
        self._root = root
        self._rng = rng

    def value(self, schema: Any, wish: Any = NOTHING, name: str = "", depth: int = 0) -> Any:
        """A value for the property `name`. Raises _Impossible."""
        if depth > _MAX_DEPTH:
            raise _Impossible
        flat = self._narrowed(schema, wish, depth)
        if "const" in flat or "enum" in flat:
            return self._listed(flat, wish, depth)
        kind = self._type(flat, wish, depth)
        if kind == "object":
            return self._object(flat, wish if isinstance(wish, Mapping) else {}, depth)
        if kind == "array":
            return self._array(flat, wish if isinstance(wish, list) else NOTHING, name, depth)
        return self._scalar(kind, flat, wish, name)

    def complete(self, schema: Any, given: Any) -> Any:
        """What is given with the required properties that are missing. Raises _Impossible."""
        if isinstance(given, list):
            items = self._narrowed(schema, given, 0).get("items", {})
            return [self.complete(items, item) for item in given]
        if not isinstance(given, Mapping):
            return given
        flat = self._narrowed(schema, given, 0)
        known, required = flat.get("properties", {}), flat.get("required", ())
        missing = [name for name in required if name not in given]
        whole = {**given, **{name: self.value(known.get(name), NOTHING, name, _SPARE_DEPTH + 1) for name in missing}}
        names = dict.fromkeys((*known, *whole))
        return {name: self.complete(known.get(name), whole[name]) for name in names if name in whole}

    def _narrowed(self, schema: Any, wish: Any, depth: int) -> dict[str, Any]:
        """The schema with references followed, `allOf` merged, and one of its alternatives chosen."""
        flat = self._flattened(schema)
        while options := flat.pop("anyOf", None) or flat.pop("oneOf", None):
            flat = self._flattened(_merge(flat, self._option(options, wish, depth)))
        return flat

    def _flattened(self, schema: Any) -> dict[str, Any]:
        """The schema with `$ref` and `allOf` at its top put in place."""
        if schema is False:
            raise _Impossible
        flat = dict(schema) if isinstance(schema, Mapping) else {}
        for _ in range(_MAX_DEPTH):
            if "$ref" in flat:
                target = resolve(self._root, flat.pop("$ref"))
                parts = [] if target is None else [target]
            elif "allOf" in flat:
                parts = flat.pop("allOf")
            else:
                return flat
            for part in parts:
                flat = _merge(flat, part)
        raise _Impossible

    def _option(self, options: list[Any], wish: Any, depth: int) -> Any:
        """The alternative that takes the wish, else the first of its type, else any that is not null, or null."""
        possible = [(option, self._types(option)) for option in options if option is not False]
        if wish is not NOTHING:
            fitting = [option for option, kinds in possible if _is_of(wish, kinds)]
            shared = {key: self._root[key] for key in ("$defs", "definitions") if key in self._root}
            if fitting:
                return next((option for option in fitting if is_valid({**shared, **option}, wish)), fitting[0])
        nulls = [option for option, kinds in possible if kinds == ["null"]]
        others = [option for option, kinds in possible if kinds != ["null"]]
        wanted = nulls if nulls and depth > _SPARE_DEPTH else others or nulls
        if not wanted:
            raise _Impossible
        return self._rng.choice(wanted)

    def _types(self, schema: Any) -> list[str]:
        flat = self._flattened(schema)
        kinds = flat.get("type") or [kind for keyword, kind in _IMPLIED.items() if keyword in flat][:1]
        return [kinds] if isinstance(kinds, str) else list(kinds)

    def _type(self, flat: Schema, wish: Any, depth: int) -> str:
        kinds = self._types(flat)
        if wish is not NOTHING and _is_of(wish, kinds):
            return next((kind for kind in kinds if is_type(wish, kind)), type_of(wish))
        if "null" in kinds and depth > _SPARE_DEPTH:
            return "null"
        others = [kind for kind in kinds if kind != "null"] or kinds or ["string"]
        return self._rng.choice(others)

    def _listed(self, flat: Schema, wish: Any, depth: int) -> Any:
        allowed = [flat["const"]] if "const" in flat else list(flat["enum"])
        if not allowed:
            raise _Impossible
        if depth > _SPARE_DEPTH:
            return None if None in allowed else allowed[0]
        return wish if wish in allowed else self._rng.choice([v for v in allowed if v is not None] or allowed)

    def _scalar(self, kind: str, flat: Schema, wish: Any, name: str) -> Any:
        if kind == "string":
            return self._text(flat, wish if isinstance(wish, str) else None, name)
        if kind in ("integer", "number"):
            return _number(flat, wish if _is_of(wish, ["number"]) else None, kind == "integer", self._rng)
        if kind == "boolean":
            return wish if isinstance(wish, bool) else self._rng.random() < 0.5
        return None

    def _text(self, flat: Schema, wish: str | None, name: str) -> str:
        shortest, longest = flat.get("minLength", 0), flat.get("maxLength")
        made = formatted_text(flat.get("format", ""), self._rng)
        if made is None:
            made = wish if wish is not None else free_text(name, self._rng)
            made = resize_text(made, shortest, longest)
        if "pattern" in flat and not is_valid({"pattern": flat["pattern"]}, made):
            made = matching_text(flat["pattern"], self._rng, self._rng.choice((0, shortest)))
            made = resize_text(made, shortest, longest)
        return made

    def _object(self, flat: Schema, wish: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known, other, required = flat.get("properties", {}), flat.get("additionalProperties"), flat.get("required", ())
        wanted = {*required, *wish} | (known.keys() if depth <= _SPARE_DEPTH else set())
        if other is False:
            wanted &= known.keys()
        names = [name for name in dict.fromkeys((*known, *required, *wish)) if name in wanted]
        return {n: self.value(known.get(n, other or {}), wish.get(n, NOTHING), n, depth + 1) for n in names}

    def _array(self, flat: Schema, wish: Any, name: str, depth: int) -> list[Any]:
        first, rest = flat.get("prefixItems", []), flat.get("items", {})
        shortest, longest = flat.get("minItems", 0), flat.get("maxItems", len(first) if rest is False else 10**6)
        if wish is not NOTHING:
            count = max(shortest, min(len(wish), longest))
        elif depth > _SPARE_DEPTH:
            count = shortest
        else:
            count = min(longest, max(shortest, len(first), self._rng.randint(1, 3)))
        forms = [first[index] if index < len(first) else rest for index in range(count)]
        wishes = [*(wish if wish is not NOTHING else []), *[NOTHING] * count]
        items = [self.value(form, wished, name, depth + 1) for form, wished in zip(forms, wishes, strict=False)]
        if flat.get("uniqueItems"):
            return [item for index, item in enumerate(items) if item not in items[:index]]
        return items


def _merge(one: Mapping[str, Any], other: Any) -> dict[str, Any]:
    """Two schemas side by side; of a keyword that both have, the first counts, but for the names of properties."""
    if other is False:
        raise _Impossible
    other = other if isinstance(other, Mapping) else {}
    both = {**other, **one}
    if "properties" in both:
        both["properties"] = {**other.get("properties", {}), **one.get("properties", {})}
    if "required" in both:
        both["required"] = [*one.get("required", ()), *other.get("required", ())]
    return both


def _is_of(value: Any, kinds: list[str]) -> bool:
    """Whether a value is of one of these types; of any, where there are none."""
    return not kinds or any(is_type(value, kind) for kind in kinds)


def _number(flat: Schema, wish: float | None, whole: bool, rng: Random) -> float:
    """A number within the bounds and a multiple of `multipleOf`: the wish, moved into the bounds, if there is one."""
    low = max(flat.get("minimum", -math.inf), flat.get("exclusiveMinimum", -math.inf))
    high = min(flat.get("maximum", math.inf), flat.get("exclusiveMaximum", math.inf))
    excluded = (flat.get("exclusiveMinimum"), flat.get("exclusiveMaximum"))
    near_low = low if math.isfinite(low) else min(0, high - 100) if math.isfinite(high) else 0
    near_high = high if math.isfinite(high) else near_low + 100
    wished = min(max(wish, low), high) if wish is not None and math.isfinite(wish) else None
    step = flat.get("multipleOf") or (1 if whole else None)
    candidates = [wished, round(rng.uniform(near_low, near_high), 2), (near_low + near_high) / 2]
    if step:
        first, last = math.ceil(near_low / step), math.floor(near_high / step)
        counts = (*(round(c / step) for c in candidates if c is not None), first, first + 1, last, last - 1)
        candidates = [count * (int(step) if step == int(step) else step) for count in counts]
    for number in candidates:
        if number is not None and low <= number <= high and number not in excluded:
            return int(number) if whole else number
    raise _Impossible
