"""Checks that compare an answer with a value, under promptfoo's names. They start no code, so
datasets and plan files may contain them."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from decimal import Decimal, DecimalException
from typing import Any, NamedTuple

from aeon.checks.interface import CheckBroken, CheckResult
from aeon.domain.checks import ComparingCheck, is_negated
from aeon.domain.errors import SchemaFileError
from aeon.domain.values import JsonObject
from aeon.schema.equality import is_same
from aeon.schema.validators import SchemaValidator, compile_schema, find_errors

DEFAULT_EDITS = 5
_MOST_CELLS = 20_000_000
_SHOWN_ERRORS = 5
_SHOWN = 300
_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|[-+]?\.\d+")


class Match(NamedTuple):
    """Whether a condition holds, a score if it has degrees, and further findings."""

    holds: bool
    score: float | None = None
    found: str = ""


class Condition(NamedTuple):
    """A prepared condition: its wording after "the answer must", and its comparison."""

    words: str
    compare: Callable[[str], Match]


def make_condition(settings: ComparingCheck) -> Condition:
    """Return the comparison that a check describes. Raises ValueError for an unusable value."""
    kind = settings.type.removeprefix("not-")
    if settings.threshold is not None and kind not in ("levenshtein", "similar-number"):
        raise ValueError(f"{settings.type} takes no threshold")
    return _MAKERS[kind](settings)


def describe_condition(settings: ComparingCheck) -> str:
    """Return what a check asks of an answer, as `must contain "tea"`."""
    must = "must not" if is_negated(settings) else "must"
    return f"{must} {make_condition(settings).words}"


def compare(condition: Condition, answer: str, *, negated: bool) -> CheckResult:
    """Check whether a condition holds for an answer, with feedback if it should (or, `negated`,
    should not). Raises CheckBroken for a comparison that takes too long."""
    done = condition.compare(answer)
    feedback = ""
    if done.holds == negated:
        must = "must not" if negated else "must"
        feedback = f"The answer {must} {condition.words}. {done.found}".rstrip()
    return CheckResult(passed=done.holds, score=done.score, feedback=feedback)


def _read_json(text: str) -> tuple[Any] | None:
    try:
        return (json.loads(text, parse_constant=_refuse_constant),)
    except (ValueError, RecursionError):
        return None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def _make_equals(settings: ComparingCheck) -> Condition:
    value = settings.value
    if value is None:
        raise ValueError("needs a value")
    expected = value if isinstance(value, str) else json.dumps(value)
    return Condition(f"equal {_show(value)}", lambda answer: Match(is_same(answer, expected)))


def _make_contains(settings: ComparingCheck) -> Condition:
    text = _read_text(settings.value)
    return Condition(f"contain {_show(text)}", lambda answer: Match(text in answer))


def _make_icontains(settings: ComparingCheck) -> Condition:
    text = _read_text(settings.value)
    return Condition(
        f"contain {_show(text)}, in capitals or not",
        lambda answer: Match(text.casefold() in answer.casefold()),
    )


def _make_contains_all(settings: ComparingCheck) -> Condition:
    texts = _read_texts(settings.value)

    def compare_all(answer: str) -> Match:
        missing = [text for text in texts if text not in answer]
        found = f"It lacks {', '.join(map(_show, missing))}." if missing else ""
        return Match(not missing, 1 - len(missing) / len(texts), found)

    return Condition(f"contain all of {', '.join(map(_show, texts))}", compare_all)


def _make_contains_any(settings: ComparingCheck) -> Condition:
    texts = _read_texts(settings.value)
    return Condition(
        f"contain one of {', '.join(map(_show, texts))}",
        lambda answer: Match(any(text in answer for text in texts)),
    )


def _make_starts_with(settings: ComparingCheck) -> Condition:
    text = _read_text(settings.value)
    return Condition(f"start with {_show(text)}", lambda answer: Match(answer.startswith(text)))


def _make_regex(settings: ComparingCheck) -> Condition:
    pattern = _read_text(settings.value)
    # Matched in bounded time for every pattern.
    try:
        validator = compile_schema({"type": "string", "pattern": pattern}, "value")
    except SchemaFileError:
        raise ValueError(f"{pattern!r} is no regular expression") from None
    return Condition(
        f"match the regular expression {pattern}",
        lambda answer: Match(validator.is_valid(answer)),
    )


def _make_is_json(settings: ComparingCheck) -> Condition:
    schema = settings.value
    if schema is None:
        return Condition("be JSON", lambda answer: Match(_read_json(answer) is not None))
    if not isinstance(schema, dict):
        raise ValueError("the value is a JSON Schema, an object; without one any JSON passes")
    validator = _compile(schema)

    def compare_json(answer: str) -> Match:
        read = _read_json(answer)
        if read is None:
            return Match(False, found="It is no JSON.")
        errors = find_errors(validator, read[0])
        return Match(not errors, found="; ".join(map(str, errors[:_SHOWN_ERRORS])))

    return Condition("be JSON of the schema", compare_json)


def _compile(schema: JsonObject) -> SchemaValidator:
    try:
        return compile_schema(schema, "value")
    except SchemaFileError as error:
        raise ValueError(error.message) from None


def _make_word_count(settings: ComparingCheck) -> Condition:
    value = settings.value
    least = 0.0
    most = math.inf
    words = []
    if isinstance(value, dict) and value and not value.keys() - {"min", "max"}:
        least = _read_number(value.get("min", 0))
        most = _read_number(value.get("max", math.inf))
        words += [f"at least {value['min']}"] if "min" in value else []
        words += [f"at most {value['max']}"] if "max" in value else []
    else:
        least = most = _read_number(value)
        words = [f"exactly {value}"]

    def count(answer: str) -> Match:
        counted = len(answer.split())
        return Match(least <= counted <= most, found=f"It has {counted}.")

    return Condition(f"have {' and '.join(words)} words", count)


def _make_levenshtein(settings: ComparingCheck) -> Condition:
    text = _read_text(settings.value)
    most = DEFAULT_EDITS if settings.threshold is None else int(settings.threshold)

    def compare_edits(answer: str) -> Match:
        width = min(2 * most + 1, len(text))
        if width * len(answer) > _MOST_CELLS and abs(len(answer) - len(text)) <= most:
            raise CheckBroken("the answer is too long to count so many edits")
        edits = count_edits(answer, text, most)
        return Match(edits <= most, found="" if edits > most else f"{edits} edits apart.")

    return Condition(f"be within {most} edits of {_show(text)}", compare_edits)


def count_edits(one: str, other: str, most: int) -> int:
    """Return the Levenshtein distance of two texts, or `most + 1` if it exceeds `most`."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    beyond = most + 1
    # Cells further than `most` from the diagonal are on no path of so few edits.
    row = [column if column <= most else beyond for column in range(len(other) + 1)]
    for line, letter in enumerate(one, start=1):
        first = max(1, line - most)
        last = min(len(other), line + most)
        diagonal = row[first - 1]
        row[first - 1] = line if first == 1 else beyond
        for column in range(first, last + 1):
            above = row[column] if column < line + most else beyond
            same = diagonal + (letter != other[column - 1])
            row[column] = min(same, above + 1, row[column - 1] + 1, beyond)
            diagonal = above
    return row[-1]


def _make_similar_number(settings: ComparingCheck) -> Condition:
    value = _read_number(settings.value)
    most = settings.threshold or 0.0
    expected = Decimal(str(value))
    allowed = Decimal(str(most))

    def compare_number(answer: str) -> Match:
        numbers = _NUMBER.findall(answer)
        if not numbers:
            return Match(False, found="There is no number in it.")
        try:
            holds = abs(Decimal(numbers[-1].replace(",", "")) - expected) <= allowed
        except DecimalException:  # an exponent beyond all numbers
            holds = False
        return Match(holds, found=f"It ends with {numbers[-1]}.")

    within = f", or at most {most:g} away from it" if most else ""
    return Condition(f"end with the number {value:g}{within}", compare_number)


_MAKERS: dict[str, Callable[[ComparingCheck], Condition]] = {
    "equals": _make_equals,
    "contains": _make_contains,
    "icontains": _make_icontains,
    "contains-all": _make_contains_all,
    "contains-any": _make_contains_any,
    "starts-with": _make_starts_with,
    "regex": _make_regex,
    "is-json": _make_is_json,
    "word-count": _make_word_count,
    "levenshtein": _make_levenshtein,
    "similar-number": _make_similar_number,
}


def _read_text(value: object) -> str:
    if isinstance(value, bool | dict | list | None) or value == "":
        raise ValueError("the value must be a text")
    return str(value)


def _read_texts(value: object) -> Sequence[str]:
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError("the value must be a list of texts")
    return [_read_text(text.strip() if isinstance(text, str) else text) for text in texts]


def _read_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("the value must be a number")
    return float(value)


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
