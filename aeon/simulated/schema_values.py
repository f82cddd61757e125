"""A JSON value for any JSON Schema: made up, fitted to a wish, or filled in around what is given.

    made(schema, rng)                  a valid value, the same for the same schema and random state
    fitted(schema, wish, rng)          a valid value, as near to `wish` as the schema allows
    completed(schema, given, rng)      `given` as it is, even where it is not valid, and what is missing added

Works for the subset that OpenAI's strict mode accepts and for ordinary schemas that people write (references and
recursion, alternatives, lists of types, ranges, patterns, formats). What it makes is checked against the whole schema
and made again when it fails; for a schema that no value satisfies, the last attempt is given rather than an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from aeon.schema.check import is_valid, same
from aeon.schema.shapes import Schema, Unsatisfiable, accepts_type, merged, plain, type_of, types_of
from aeon.simulated.scalar_values import a_number, a_string, found

_ATTEMPTS = 40
_SOFT_DEPTH = 4
_HARD_DEPTH = 24
_MOST_VALUES = 3000


class _Nothing:
    """No wish for this place."""


NOTHING: Final = _Nothing()


def made(schema: Mapping[str, Any], rng: Random) -> Any:
    """A valid value of `schema`, made up from `rng`; free texts in it begin with "(simulated)"."""
    return fitted(schema, NOTHING, rng)


def fitted(schema: Mapping[str, Any], wish: Any, rng: Random) -> Any:
    """A valid value that takes over from `wish` whatever the schema allows there; the rest is made up."""
    if wish is not NOTHING and is_valid(schema, wish):
        return wish
    value: Any = None
    for attempt in range(_ATTEMPTS):
        maker = _Maker(schema, rng, spare=attempt % 3 == 2)
        try:
            value = maker.value(schema, wish if attempt < _ATTEMPTS // 2 else NOTHING, "")
        except Unsatisfiable:
            continue
        if is_valid(schema, value):
            return value
    return value


def completed(schema: Mapping[str, Any], given: Any, rng: Random) -> Any:
    """`given`, never changed, with every required property that it lacks: null or an empty list where that is allowed,
    else the first of an enumeration, else made up."""
    try:
        return _Maker(schema, rng, spare=True, keep=True).value(schema, given, "")
    except Unsatisfiable:
        return given


class _Maker:
    """One attempt at a value. `spare` leaves out what is optional, `keep` never changes what was wished for."""

    def __init__(self, root: Mapping[str, Any], rng: Random, *, spare: bool = False, keep: bool = False) -> None:
        self._root = root
        self._rng = rng
        self._spare = spare
        self._keep = keep
        self._made = 0

    def value(self, schema: Any, wish: Any, name: str, depth: int = 0) -> Any:
        """A value for one place, called `name`. Raises Unsatisfiable."""
        self._made += 1
        if depth > _HARD_DEPTH or self._made > _MOST_VALUES:
            raise Unsatisfiable("nested too deep")
        flat = plain(schema, self._root)
        for key in ("oneOf", "anyOf"):
            if isinstance(flat.get(key), list) and flat[key]:
                return self._alternative(flat, key, wish, name, depth)
        if "if" in flat:
            return self._conditional(flat, wish, name, depth)
        return self._of_type(flat, wish, name, depth)

    def _alternative(self, flat: Schema, key: str, wish: Any, name: str, depth: int) -> Any:
        base = {k: v for k, v in flat.items() if k != key}
        for branch in self._in_order(flat[key], wish, depth):
            try:
                return self.value(merged(base, plain(branch, self._root)), wish, name, depth + 1)
            except Unsatisfiable:
                continue
        raise Unsatisfiable(f"no alternative of {key} can be made")

    def _in_order(self, branches: list[Any], wish: Any, depth: int) -> list[Any]:
        """The branches to try: those that fit the wish, else null first when little is wanted, else at random."""
        shapes = [(branch, self._plain_or_none(branch)) for branch in branches]
        possible = [(branch, shape) for branch, shape in shapes if shape is not None]
        if wish is NOTHING and not self._spare:
            self._rng.shuffle(possible)
        little = self._spare or depth > _SOFT_DEPTH

        def rank(entry: tuple[Any, Schema]) -> tuple[int, int]:
            branch, shape = entry
            null = types_of(shape) == ["null"]
            if wish is NOTHING:
                return (0 if null == little else 1, 0)
            return (0 if accepts_type(shape, wish) else 1, 0 if self._fits(branch, wish) else 1)

        return [branch for branch, _ in sorted(possible, key=rank)]

    def _plain_or_none(self, branch: Any) -> Schema | None:
        try:
            return plain(branch, self._root)
        except Unsatisfiable:
            return None

    def _fits(self, branch: Any, wish: Any) -> bool:
        shared = {key: self._root[key] for key in ("$defs", "definitions") if key in self._root}
        return is_valid({**shared, **branch} if isinstance(branch, Mapping) else {}, wish)

    def _conditional(self, flat: Schema, wish: Any, name: str, depth: int) -> Any:
        base = {key: value for key, value in flat.items() if key not in ("if", "then", "else")}
        holds = self._rng.random() < 0.5
        extra = merged(plain(flat["if"], self._root), plain(flat.get("then", {}), self._root)) if holds else {}
        return self.value(merged(base, extra or plain(flat.get("else", {}), self._root)), wish, name, depth + 1)

    def _of_type(self, flat: Schema, wish: Any, name: str, depth: int) -> Any:
        if "const" in flat or isinstance(flat.get("enum"), list):
            return self._listed(flat, wish)
        kind = self._kind(flat, wish, depth)
        if kind == "object":
            return self._object(flat, wish if isinstance(wish, Mapping) else {}, depth)
        if kind == "array":
            return self._array(flat, wish if isinstance(wish, list | tuple) else NOTHING, name, depth)
        if self._keep and wish is not NOTHING:
            return wish
        return self._scalar(kind, flat, wish, name)

    def _scalar(self, kind: str, flat: Schema, wish: Any, name: str) -> Any:
        if kind == "string":
            return a_string(flat, wish if isinstance(wish, str) else None, name, self._rng)
        if kind in ("integer", "number"):
            number = wish if isinstance(wish, int | float) and not isinstance(wish, bool) else None
            return a_number(flat, number, kind == "integer", self._rng)
        if kind == "boolean":
            return wish if isinstance(wish, bool) else self._rng.random() < 0.5
        return None

    def _listed(self, flat: Schema, wish: Any) -> Any:
        """One of an enumeration: the wish when it is in it, else null or the first when little is wanted."""
        allowed = [flat["const"]] if "const" in flat else list(flat["enum"])
        allowed = [member for member in allowed if accepts_type(flat, member)]
        if not allowed:
            raise Unsatisfiable("nothing is listed that the schema allows")
        if wish is not NOTHING and (self._keep or any(same(wish, member) for member in allowed)):
            return wish
        if self._spare:
            return None if None in allowed else allowed[0]
        return self._rng.choice([member for member in allowed if member is not None] or allowed)

    def _kind(self, flat: Schema, wish: Any, depth: int) -> str:
        kinds = types_of(flat)
        if wish is not NOTHING and (self._keep or accepts_type(flat, wish)):
            own = type_of(wish)
            return "number" if own == "integer" and own not in kinds else own
        if "null" in kinds and (self._spare or depth > _HARD_DEPTH // 2):
            return "null"
        chosen = [kind for kind in kinds if kind != "null"] or kinds or ["string"]
        return chosen[0] if self._spare else self._rng.choice(chosen)

    def _object(self, flat: Schema, wish: Mapping[str, Any], depth: int) -> dict[str, Any]:
        known = flat.get("properties") or {}
        required = self._required(flat, wish)
        little = self._spare or depth > _SOFT_DEPTH
        result: dict[str, Any] = {}
        for key in dict.fromkeys([*known, *required, *(key for key in wish if self._allowed(flat, key))]):
            schema = self._schema_of(flat, key)
            try:
                if key in wish or key in required or not little:
                    result[key] = self.value(schema, wish.get(key, NOTHING), key, depth + 1)
            except Unsatisfiable:
                if key in required:
                    raise
        return self._sized(flat, result, required, depth)

    def _required(self, flat: Schema, wish: Mapping[str, Any]) -> list[str]:
        names = [name for name in flat.get("required", ()) if isinstance(name, str)]
        for key, also in (flat.get("dependentRequired") or {}).items():
            names += (
                also if key in names or key in wish or (key in flat.get("properties", {}) and not self._spare) else []
            )
        return list(dict.fromkeys(names))

    def _allowed(self, flat: Schema, key: str) -> bool:
        closed = flat.get("additionalProperties") is False or flat.get("unevaluatedProperties") is False
        return self._keep or not closed or key in flat.get("properties", {}) or bool(_by_pattern(flat, key))

    def _schema_of(self, flat: Schema, key: str) -> Any:
        if key in (flat.get("properties") or {}):
            return flat["properties"][key]
        extra = flat.get("additionalProperties", {})
        return (
            {"allOf": special} if (special := _by_pattern(flat, key)) else extra if isinstance(extra, Mapping) else {}
        )

    def _sized(self, flat: Schema, result: dict[str, Any], required: list[str], depth: int) -> dict[str, Any]:
        """The object with extra keys up to `minProperties`, and without optional ones beyond `maxProperties`."""
        for key in [key for key in reversed(result) if key not in required]:
            if not self._keep and len(result) > flat.get("maxProperties", len(result)):
                del result[key]
        patterns = flat.get("patternProperties") or {}
        for number in range(int(flat.get("minProperties", 0)) - len(result)):
            key, schema = self._extra(flat, patterns, number)
            result[key] = self.value(schema, NOTHING, key, depth + 1)
        return result

    def _extra(self, flat: Schema, patterns: Mapping[str, Any], number: int) -> tuple[str, Any]:
        names = plain(flat.get("propertyNames", {}), self._root)
        if patterns:
            pattern, schema = self._rng.choice(sorted(patterns.items(), key=lambda entry: entry[0]))
            return a_string({**names, "pattern": pattern}, None, f"extra_{number}", self._rng), schema
        fallback = f"extra_{number}"
        return (a_string(names, None, fallback, self._rng) if names else fallback), self._schema_of(flat, fallback)

    def _array(self, flat: Schema, wish: Any, name: str, depth: int) -> list[Any]:
        first, rest = _item_schemas(flat)
        wished = list(wish) if wish is not NOTHING else []
        items: list[Any] = []
        for index in range(self._length(flat, wish, len(first), rest, depth)):
            schema = first[index] if index < len(first) else rest
            if "contains" in flat and index < int(flat.get("minContains", 1)):
                schema = {"allOf": [flat["contains"], schema]}
            given = wished[index] if index < len(wished) else NOTHING
            items += self._item(schema, given, name, depth, items if flat.get("uniqueItems") else [])
        if len(items) < int(flat.get("minItems", 0)) and not self._keep:
            raise Unsatisfiable("not enough different items")
        return items

    def _item(self, schema: Any, wish: Any, name: str, depth: int, unlike: list[Any]) -> list[Any]:
        """One item that is unlike those there, in a list; an empty list when chance gives none."""
        for _ in range(20):
            value = self.value(schema, wish, name, depth + 1)
            if self._keep or not any(same(value, other) for other in unlike):
                return [value]
            wish = NOTHING
        return []

    def _length(self, flat: Schema, wish: Any, first: int, rest: Any, depth: int) -> int:
        low = max(int(flat.get("minItems", 0)), int(flat.get("minContains", 1)) if "contains" in flat else 0)
        high = max(low, min(int(flat.get("maxItems", max(low, first) + 3)), first if rest is False else 10**9))
        if wish is not NOTHING:
            return len(wish) if self._keep else min(max(low, len(wish)), int(flat.get("maxItems", max(low, len(wish)))))
        if self._spare or depth > _SOFT_DEPTH:
            return max(low, min(first, high))
        return self._rng.randint(min(high, max(1, low, first)), high)


def _by_pattern(flat: Schema, key: str) -> list[Any]:
    """The schemas that `patternProperties` has for a property of this name."""
    return [schema for pattern, schema in (flat.get("patternProperties") or {}).items() if found(pattern, key)]


def _item_schemas(flat: Schema) -> tuple[list[Any], Any]:
    """The schemas of the first items, one by one, and that of all others; older drafts spell it differently."""
    items = flat.get("items", {})
    if isinstance(items, list):
        return items, flat.get("additionalItems", {})
    return list(flat.get("prefixItems") or ()), items
