"""Single strings and numbers that a JSON Schema allows."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from random import Random

from aeon.schema.shapes import Schema, Unsatisfiable
from aeon.simulated.pattern_values import matching

MARK = "(simulated)"

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "larch", "maple", "river")
_FORMATS: dict[str, Callable[[Random], str]] = {
    "date": lambda rng: f"20{rng.randint(10, 39)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
    "time": lambda rng: f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}:00Z",
    "date-time": lambda rng: f"{_FORMATS['date'](rng)}T{_FORMATS['time'](rng)}",
    "duration": lambda rng: f"P{rng.randint(1, 30)}D",
    "email": lambda rng: f"{rng.choice(_WORDS)}@example.org",
    "idn-email": lambda rng: f"{rng.choice(_WORDS)}@example.org",
    "hostname": lambda rng: f"{rng.choice(_WORDS)}.example.org",
    "idn-hostname": lambda rng: f"{rng.choice(_WORDS)}.example.org",
    "ipv4": lambda rng: f"192.0.2.{rng.randint(1, 254)}",
    "ipv6": lambda rng: f"2001:db8::{rng.randint(1, 9999)}",
    "uri": lambda rng: f"https://example.org/{rng.choice(_WORDS)}",
    "iri": lambda rng: f"https://example.org/{rng.choice(_WORDS)}",
    "uri-reference": lambda rng: f"/{rng.choice(_WORDS)}",
    "iri-reference": lambda rng: f"/{rng.choice(_WORDS)}",
    "uri-template": lambda rng: f"/{rng.choice(_WORDS)}/{{id}}",
    "uuid": lambda rng: f"{_hex(rng, 8)}-{_hex(rng, 4)}-4{_hex(rng, 3)}-8{_hex(rng, 3)}-{_hex(rng, 12)}",
    "json-pointer": lambda rng: f"/{rng.choice(_WORDS)}",
    "relative-json-pointer": lambda rng: f"{rng.randint(0, 3)}/{rng.choice(_WORDS)}",
    "regex": lambda rng: f"^{rng.choice(_WORDS)}$",
}


def a_text(name: str, rng: Random) -> str:
    """A free text that says it is simulated and for what property it stands."""
    return " ".join(filter(None, (MARK, name.replace("_", " "), rng.choice(_WORDS), str(rng.randint(1, 999)))))


def a_string(flat: Schema, wish: str | None, name: str, rng: Random) -> str:
    """A string within `minLength`, `maxLength`, `pattern` and `format`: the wish, cut or padded where that is enough.

    Raises Unsatisfiable when none is found.
    """
    low, high = int(flat.get("minLength", 0)), int(flat.get("maxLength", max(200_000, flat.get("minLength", 0))))
    if high < low:
        raise Unsatisfiable(f"no text has at least {low} and at most {high} characters")
    pattern, form = flat.get("pattern"), _FORMATS.get(str(flat.get("format")))
    candidates = [wish] if wish is not None else []
    candidates += [form(rng)] if form else [a_text(name, rng)]
    for candidate in candidates:
        sized = candidate if form else _sized(candidate, low, high)
        if low <= len(sized) <= high and (not isinstance(pattern, str) or found(pattern, sized)):
            return sized
    if isinstance(pattern, str):
        return _patterned(pattern, low, high, rng)
    return _sized(candidates[-1], low, high)


def _patterned(pattern: str, low: int, high: int, rng: Random) -> str:
    for attempt in range(30):
        text = matching(pattern, rng, low if attempt % 2 == 0 else 0)
        if text is None:
            break
        sized = _sized(text, low, high)
        if found(pattern, sized):
            return sized
    raise Unsatisfiable(f"no text was found for the pattern {pattern}")


def _sized(text: str, low: int, high: int) -> str:
    return (text + " ." * math.ceil(max(0, low - len(text)) / 2))[: max(low, min(high, max(low, len(text))))]


def found(pattern: str, text: str) -> bool:
    """Whether `pattern` is found in `text`; true for a pattern that Python cannot read."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


def a_number(flat: Schema, wish: float | None, whole: bool, rng: Random) -> float:
    """A number (an int when `whole`) within the bounds and a multiple of `multipleOf`: the wish, moved into the bounds.

    Raises Unsatisfiable when the bounds leave none.
    """
    low, high = _bounds(flat)
    step = flat.get("multipleOf") or (1 if whole else None)
    if step and whole and step != int(step):
        step = round(step * 1000) // math.gcd(round(step * 1000), 1000)
    if step:
        return _multiple(step, low, high, wish, rng, _excluded(flat))
    low, high = _finite(low, high)
    if low > high:
        raise Unsatisfiable(f"no number is at least {low} and at most {high}")
    if wish is not None and math.isfinite(wish):
        wish = min(max(wish, low), high)
    chosen = wish if wish is not None and math.isfinite(wish) else round(rng.uniform(low, high), 2)
    return _inside(chosen, low, high, _excluded(flat))


def _bounds(flat: Schema) -> tuple[float, float]:
    low = [flat[key] for key in ("minimum", "exclusiveMinimum") if _is_number(flat.get(key))]
    high = [flat[key] for key in ("maximum", "exclusiveMaximum") if _is_number(flat.get(key))]
    return max(low, default=-math.inf), min(high, default=math.inf)


def _excluded(flat: Schema) -> list[float]:
    """The bounds that are themselves not allowed; draft 4 says so with a boolean."""
    new = [flat[key] for key in ("exclusiveMinimum", "exclusiveMaximum") if _is_number(flat.get(key))]
    old = [flat.get(bound) for bound in ("minimum", "maximum") if flat.get(f"exclusive{bound.capitalize()}") is True]
    return [*new, *(bound for bound in old if _is_number(bound) and bound is not None)]


def _finite(low: float, high: float) -> tuple[float, float]:
    """The bounds with an ordinary range in place of infinity."""
    if math.isinf(low):
        low = min(0.0, high - 100) if math.isfinite(high) else 0.0
    return low, (max(100.0, low + 100) if math.isinf(high) else high)


def _inside(chosen: float, low: float, high: float, excluded: list[float]) -> float:
    if low <= chosen <= high and chosen not in excluded:
        return chosen
    middle = low + (high - low) / 2
    if middle in excluded or not low <= middle <= high:
        raise Unsatisfiable(f"no number lies strictly between {low} and {high}")
    return middle


def _multiple(step: float, low: float, high: float, wish: float | None, rng: Random, excluded: list[float]) -> float:
    near_low, near_high = _finite(low, high)
    first, last = math.ceil(near_low / step), math.floor(near_high / step)
    if math.isinf(high):
        last = max(last, first + 10)
    elif math.isinf(low):
        first = min(first, last - 10)
    allowed = [n for n in (first, last) if first <= last and n * step not in excluded]
    wished = round(min(max(wish, low), high) / step) if wish is not None and math.isfinite(wish) else None
    drawn = rng.randint(first, last) if first <= last else None
    for count in (wished, drawn, *allowed, *range(first + 1, min(last, first + 3))):
        if count is not None and low <= count * step <= high and count * step not in excluded:
            found_one: float = count * (int(step) if step == int(step) else step)
            return found_one
    raise Unsatisfiable(f"no multiple of {step} lies between {low} and {high}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _hex(rng: Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"
