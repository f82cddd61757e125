"""Compares two runs: the first event at which they diverge, and the differences of their plans and
answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from pathlib import Path
from typing import Any

from aeon.domain.errors import ArtefactError
from aeon.domain.plan import Plan
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.text import load_json, read_linked_file
from aeon.observability.artefacts import RESULT, read_history
from aeon.report.compare.rows import Comparison, show
from aeon.report.record import read_events

_Event = JsonObject
_CLOCK = {"time", "seconds", "run_id", "response_id"}
_MOST_FIELDS = 12
_LONGEST_BY_WORD = 2_000
_MOST_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a difference: `mark` is `-`, `+`, a blank, or `@` for omitted lines; `parts` are
    pieces of its text, each with whether it changed."""

    mark: str
    parts: tuple[tuple[bool, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The point where two runs diverge. `number` counts events from 1, and is None where the two
    journals agree; `counts` is the length of each. `places` describes the two events, `fields`
    their differences. `asked` tells for each hash in both whether it is the same. `differences` are
    by name, of texts in both; one without lines is of equal texts."""

    number: int | None
    counts: tuple[int, int]
    places: tuple[str, str]
    fields: tuple[tuple[str, str, str], ...]
    asked: Mapping[str, bool]
    differences: Mapping[str, tuple[Line, ...]]


def find_divergence(comparison: Comparison) -> Divergence | None:
    """Compare two runs that can be read; None for any others."""
    places = [
        run.directory
        for run in comparison.runs
        if run.directory is not None and run.ended != "unreadable"
    ]
    if len(places) != len(comparison.runs) or len(places) != 2:
        return None
    first, second = places
    events = [[_without_clock(event) for event in read_events(place)] for place in places]
    number, pair = _first_difference(*events)
    return Divergence(
        number=number,
        counts=(len(events[0]), len(events[1])),
        places=(_place(pair[0]), _place(pair[1])),
        fields=_find_differing_fields(*pair),
        asked=_same_hashes(_result(first), _result(second)),
        differences=_differences(first, second),
    )


def _first_difference(
    first: Sequence[_Event], second: Sequence[_Event]
) -> tuple[int | None, tuple[_Event | None, _Event | None]]:
    """Return the first events that differ, and their number; None and no events where all are the
    same."""
    for number, pair in enumerate(zip_longest(first, second), start=1):
        if pair[0] != pair[1]:
            return number, pair
    return None, (None, None)


def _find_differing_fields(
    first: _Event | None, second: _Event | None
) -> tuple[tuple[str, str, str], ...]:
    if first == second:
        return ()
    left = _leaves(first or {})
    right = _leaves(second or {})
    differing = [key for key in dict.fromkeys((*left, *right)) if left.get(key) != right.get(key)]
    return tuple(
        (key, show(left.get(key)), show(right.get(key))) for key in differing[:_MOST_FIELDS]
    )


def _same_hashes(first: JsonMapping, second: JsonMapping) -> dict[str, bool]:
    """Return for each hash in both results whether it is the same."""
    hashes = first.get("hashes") or {}
    others = second.get("hashes") or {}
    return {name: hashes[name] == others[name] for name in hashes if name in others}


def _differences(first: Path, second: Path) -> dict[str, tuple[Line, ...]]:
    """Return the texts that both runs have, as differences."""
    plans = (_plans(first), _plans(second))
    texts = {
        "The plan that execution started with": (plans[0][0], plans[1][0]),
        "The plan at the end": (plans[0][1], plans[1][1]),
        "The answer": (_answer_lines(first), _answer_lines(second)),
    }
    return {
        name: compare_texts(before, after)
        for name, (before, after) in texts.items()
        if before and after
    }


def _answer_lines(directory: Path) -> list[str]:
    return str(_result(directory).get("answer") or "").splitlines()


def _without_clock(event: JsonMapping) -> JsonObject:
    """Return an event without the fields that differ between runs."""
    fields = {name: value for name, value in event.items() if name not in _CLOCK}
    result = fields.get("result")
    if isinstance(result, dict):  # of a tool
        fields["result"] = {name: value for name, value in result.items() if name != "seconds"}
    return fields


def _leaves(value: object, path: str = "") -> JsonObject:
    """Yield the values of an event, each with its dotted path."""
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    found: JsonObject = {}
    for name, part in parts:
        found |= _leaves(part, f"{path}.{name}")
    return found or {path.lstrip("."): value}


def _place(event: JsonMapping | None) -> str:
    """Describe the subject of a journal's line: `call_answered, pass 1, step draft`."""
    if not event:
        return "no event: its journal ends before"
    site = event.get("site") or {}
    about = {"pass": event.get("pass_number", site.get("pass_number")), "call": event.get("call")}
    about["step"] = site.get("step_id") or (event.get("step") or {}).get("step_id")
    return ", ".join(
        (event["event"], *(f"{name} {value}" for name, value in about.items() if value is not None))
    )


def _result(directory: Path) -> JsonObject:
    with suppress(OSError, ValueError):
        return dict(load_json(read_linked_file(directory / RESULT)))
    return {}


def _plans(directory: Path) -> tuple[list[str], list[str]]:
    """Return the plan that execution started with and the plan at the end, as lines."""
    with suppress(ArtefactError):
        passes = read_history(directory).passes
        first = passes[min(1, len(passes) - 1)].plan_state if passes else None
        last = passes[-1].plan_state if passes else None
        if first is not None and last is not None:
            ended = last.model_copy(update={"steps": passes[-1].steps})
            return _plan_lines(first), _plan_lines(ended, with_states=True)
    made = [event["plan"] for event in read_events(directory) if event["event"] == "plan_made"]
    return _plan_lines(Plan.model_validate(made[0])) if made else [], []


def _plan_lines(plan: Plan, *, with_states: bool = False) -> list[str]:
    lines = [f"goal: {plan.goal}"]
    for step in plan.steps:
        tool = f" [{step.tool}]" if step.tool else ""
        after = f" (after {', '.join(step.dependencies)})" if step.dependencies else ""
        state = f": {step.status}" if with_states else ""
        lines.append(f"{step.step_id}{tool}{after}{state}")
        lines += [f"    {text}" for text in step.description.splitlines()]
    return lines


def compare_texts(first: Sequence[str], second: Sequence[str]) -> tuple[Line, ...]:
    """Return the lines that differ with two lines around them; none for equal texts, at most 2,000
    of each are read."""
    return tuple(_lines(first[:_MOST_LINES], second[:_MOST_LINES]))


def _lines(first: Sequence[str], second: Sequence[str]) -> Iterator[Line]:
    for number, group in enumerate(SequenceMatcher(None, first, second).get_grouped_opcodes(2)):
        if number:
            yield Line("@", ((False, f"line {group[0][1] + 1}"),))
        for kind, start, end, other_start, other_end in group:
            before = first[start:end]
            if kind == "equal":
                yield from _mark_lines(" ", before)
            else:
                yield from _compare_lines(before, second[other_start:other_end])


def _compare_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[Line]:
    """Compare lines with those that replace them; opposite lines are compared by words."""
    pairs = [_by_word(*pair) for pair in zip(before, after, strict=False)]
    yield from (Line("-", old) for old, _ in pairs)
    yield from _mark_lines("-", before[len(pairs) :])
    yield from (Line("+", new) for _, new in pairs)
    yield from _mark_lines("+", after[len(pairs) :])


def _mark_lines(mark: str, texts: Sequence[str]) -> Iterator[Line]:
    return (Line(mark, ((False, text),)) for text in texts)


_Parts = tuple[tuple[bool, str], ...]


def _by_word(first: str, second: str) -> tuple[_Parts, _Parts]:
    """Return two lines with their differing words marked; nothing is marked where they have little
    in common."""
    whole = ((False, first),), ((False, second),)
    if max(len(first), len(second)) > _LONGEST_BY_WORD:
        return whole
    old = re.findall(r"\w+|\W", first)
    new = re.findall(r"\w+|\W", second)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < 0.6:
        return whole
    codes = matcher.get_opcodes()
    left = ((kind != "equal", "".join(old[start:end])) for kind, start, end, _, _ in codes)
    right = ((kind != "equal", "".join(new[start:end])) for kind, _, _, start, end in codes)
    return tuple(part for part in left if part[1]), tuple(part for part in right if part[1])
