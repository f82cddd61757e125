"""Quotes: outputs of earlier steps inserted into a step's output, verbatim or edited, so that the
model need not copy them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aeon.domain.values import JsonMapping
from aeon.llm.exchange import InvalidAnswer, require_few
from aeon.schema.validators import FieldError


def join_quotes(text: str, quotes: Sequence[JsonMapping], outputs: Mapping[str, str]) -> str:
    """Return `text` with each quote's marker replaced by the quoted output, edited. `outputs` are
    the quotable ones by step id. Raises InvalidAnswer unless each marker occurs once in the text,
    each output exists and is quoted once, and each edit's text occurs in it once."""
    require_few(len(quotes), "/quotes", "quotes")
    errors = list(_find_errors(text, quotes, outputs))
    parts = {}
    for index, quote in enumerate(quotes):
        if errors:
            break
        parts[quote["at"]] = _edit(outputs[quote["step"]], quote["edits"], f"/quotes/{index}")
    if errors:
        raise InvalidAnswer(errors)
    if not parts:
        return text
    markers = "|".join(map(re.escape, parts))
    return re.sub(markers, lambda marker: parts[marker[0]], text)


def _find_errors(
    text: str, quotes: Sequence[JsonMapping], outputs: Mapping[str, str]
) -> Iterator[FieldError]:
    for index, quote in enumerate(quotes):
        earlier = quotes[:index]
        step = quote["step"]
        if step not in outputs:
            known = ", ".join(outputs) or "none"
            yield FieldError(
                f"/quotes/{index}/step", f"no output of {step!r} came in; those that did: {known}"
            )
        elif any(step == other["step"] for other in earlier):
            yield FieldError(f"/quotes/{index}/step", f"{step!r} is quoted already")
        if problem := _find_wrong_marker(quote["at"], text, [other["at"] for other in earlier]):
            yield FieldError(f"/quotes/{index}/at", problem)


def _find_wrong_marker(marker: str, text: str, others: Sequence[str]) -> str:
    """Return why a marker does not name exactly one place; empty if it does."""
    # If one marker contains the other, one would be replaced inside the other.
    if like := [other for other in others if marker in other or other in marker]:
        return f"{marker!r} and the marker {like[0]!r} cannot be told apart"
    times = _count(marker, text)
    return "" if times == 1 else f"{marker!r} must stand in step_output once, not {times} times"


def _edit(output: str, edits: Sequence[Mapping[str, str]], place: str) -> str:
    for index, edit in enumerate(edits):
        if (times := _count(edit["find"], output)) != 1:
            message = f"must stand in the output once, not {times} times"
            raise InvalidAnswer([FieldError(f"{place}/edits/{index}/find", message)])
        output = output.replace(edit["find"], edit["replace"])
    return output


def _count(part: str, text: str) -> int:
    """Count the occurrences of a part in a text, overlapping ones too; 0 for an empty part."""
    count = 0
    place = text.find(part) if part else -1
    while place >= 0:
        count += 1
        place = text.find(part, place + 1)
    return count
