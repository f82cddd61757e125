"""Quotes: outputs of earlier steps inserted into a step's output, verbatim or edited, so that the
model need not copy them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import islice

from aeon.domain.values import JsonMapping
from aeon.llm.exchange import InvalidAnswer, require_few
from aeon.schema.validators import FieldError

_MOST = 3
"""The places that are shown of a text that stands in an output several times."""
_LONGEST = 120
_AROUND = 25
"""The characters that are shown of a place, and around it to each side."""


def join_quotes(text: str, quotes: Sequence[JsonMapping], outputs: Mapping[str, str]) -> str:
    """Return `text` with each quote's marker replaced by the quoted output, edited. `outputs` are
    the quotable ones by step id. Raises InvalidAnswer unless each marker occurs once in the text,
    each output exists and is quoted once, and each edit's text occurs in it once; and for a marker
    `[[STEP]]` of an output that is not quoted."""
    require_few(len(quotes), "/quotes", "quotes")
    errors = list(_find_errors(text, quotes, outputs))
    parts = {}
    for index, quote in enumerate(quotes):
        if errors:
            break
        parts[quote["at"]] = _edit(quote["step"], outputs, quote["edits"], f"/quotes/{index}")
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
    yield from _find_loose_markers(text, {quote["at"] for quote in quotes}, outputs)


def _find_loose_markers(
    text: str, markers: Collection[str], steps: Iterable[str]
) -> Iterator[FieldError]:
    """Yield an error for each marker of a step in the text that is not among the `markers`."""
    for step in steps:
        loose = f"[[{step}]]"
        if loose in text and loose not in markers:
            problem = f"has the marker {loose!r}, which no entry of quotes is for"
            yield FieldError("/step_output", problem)


def _find_wrong_marker(marker: str, text: str, others: Sequence[str]) -> str:
    """Return why a marker does not name exactly one place; empty if it does."""
    # If one marker contains the other, one would be replaced inside the other.
    if like := [other for other in others if marker in other or other in marker]:
        return f"{marker!r} and the marker {like[0]!r} cannot be told apart"
    times = _count(marker, text)
    return "" if times == 1 else f"{marker!r} must stand in step_output once, not {times} times"


def _edit(
    step: str, outputs: Mapping[str, str], edits: Sequence[Mapping[str, str]], place: str
) -> str:
    output = outputs[step]
    for index, edit in enumerate(edits):
        if problem := _find_wrong_edit(edit["find"], output, step):
            raise InvalidAnswer([FieldError(f"{place}/edits/{index}/find", problem)])
        output = output.replace(edit["find"], edit["replace"])
    return output


def _find_wrong_edit(find: str, output: str, step: str) -> str:
    """Return why an edit's text does not name exactly one place, with the places it may mean: a
    repair does not see the output. Empty if it does."""
    if not find:
        return f"must not be empty: give the text of the output of {step!r} that changes"
    times = _count(find, output)
    if times == 1:
        return ""
    wrong = f"must stand once in the output of {step!r}, not {times} times"
    if not times:
        return f"{wrong}. The closest passage is {_show_closest(find, output)}"
    places = ", ".join(_show(output, *span) for span in islice(_find_all(find, output), _MOST))
    return f"{wrong}: add the text around it. It stands there in {places}"


def _show_closest(find: str, output: str) -> str:
    """Show the part of an output that shares the longest piece with a text."""
    matcher = SequenceMatcher(a=find[:_LONGEST], b=output, autojunk=False)
    match = matcher.find_longest_match()
    start = max(0, match.b - match.a)
    return _show(output, start, start + min(len(find), _LONGEST))


def _show(output: str, start: int, end: int) -> str:
    """Show a part of an output and some text around it, on one line."""
    return repr(output[max(0, start - _AROUND) : min(end, start + _LONGEST) + _AROUND])


def _count(part: str, text: str) -> int:
    """Count the occurrences of a part in a text, overlapping ones too; 0 for an empty part."""
    return sum(1 for _ in _find_all(part, text))


def _find_all(part: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where each occurrence of a part begins and ends; none for an empty part."""
    place = text.find(part) if part else -1
    while place >= 0:
        yield place, place + len(part)
        place = text.find(part, place + 1)
