"""What a repair of planned steps may not change: goal, steps, tools and arguments that the original had (FR-032).

Compared as structure, word for word; what any of it means is judged by nobody here. Pure functions.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from aeon.llm.exchange import FieldError
from aeon.llm.extract import ExtractError, extract_json

PlannedCall = Literal["plan", "subplan", "refinement"]

_GOAL = {"plan": "goal", "subplan": "subplan_goal"}
_LIST = {"plan": "steps", "subplan": "substeps", "refinement": "actions"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step of an answer, None where an entry has none that could be told apart, and its JSON pointer."""

    pointer: str
    step: Mapping[str, Any] | None

    @property
    def step_id(self) -> str:
        given = self.step.get("step_id") if self.step is not None else None
        return given.strip() if isinstance(given, str) else ""


def changed_meaning(
    call: PlannedCall, original: str, repaired: Mapping[str, Any], errors: Sequence[FieldError] = ()
) -> tuple[FieldError, ...]:
    """Where a repaired answer says something else than its original; empty where it does not.

    `errors` are those of the original: what they name may change. Tools may become null, and no other than the original
    named. Of an original that is not JSON only the tools are compared: each must stand somewhere in its text.
    """
    try:
        before = extract_json(original)
    except ExtractError:
        before = None
    entries = _entries(call, repaired)
    if not isinstance(before, Mapping):
        named = (entry for entry in entries if (tool := _tool(entry)) and not _stands_in(original, tool))
        return tuple(_foreign_tool(entry) for entry in named)
    wrong = frozenset(error.pointer for error in errors)
    known = {entry.step_id: entry for entry in _known(_entries(call, before), wrong)}
    return (
        *_goal(call, before, repaired, wrong),
        *_steps(call, before, entries, known, wrong),
        *(found for entry in entries for found in _content(entry, known.get(entry.step_id), before, wrong)),
    )


def _entries(call: PlannedCall, answer: Mapping[str, Any]) -> tuple[_Entry, ...]:
    listed = answer.get(_LIST[call])
    if not isinstance(listed, list):
        return ()
    found = []
    for index, each in enumerate(listed):
        pointer = f"/{_LIST[call]}/{index}"
        if call == "refinement":
            pointer, each = f"{pointer}/new_step", each.get("new_step") if isinstance(each, Mapping) else None
        found.append(_Entry(pointer, each if isinstance(each, Mapping) else None))
    return tuple(found)


def _known(entries: Sequence[_Entry], wrong: frozenset[str]) -> tuple[_Entry, ...]:
    """The steps that their ids tell apart."""
    times = Counter(entry.step_id for entry in entries)
    return tuple(
        entry
        for entry in entries
        if entry.step_id and times[entry.step_id] == 1 and f"{entry.pointer}/step_id" not in wrong
    )


def _goal(
    call: PlannedCall, before: Mapping[str, Any], repaired: Mapping[str, Any], wrong: frozenset[str]
) -> Iterator[FieldError]:
    name = _GOAL.get(call, "")
    if name and f"/{name}" not in wrong and _differ(before.get(name), repaired.get(name)):
        yield FieldError(f"/{name}", f"must stay what it was: {before[name]!r}")


def _steps(
    call: PlannedCall,
    before: Mapping[str, Any],
    entries: Sequence[_Entry],
    known: Mapping[str, _Entry],
    wrong: frozenset[str],
) -> Iterator[FieldError]:
    """Steps that are missing, and more new ids than the original had steps without one."""
    place, listed = f"/{_LIST[call]}", before.get(_LIST[call])
    if not isinstance(listed, list) or not listed:
        return
    present = {entry.step_id for entry in entries}
    # What an action gives beyond what its type needs may go.
    if place not in wrong and call != "refinement":
        missing = [step_id for step_id in known if step_id not in present]
        yield from (FieldError(place, f"step {step_id!r} of the original is missing") for step_id in missing)
    new = [entry for entry in entries if entry.step is not None and entry.step_id not in known]
    for entry in new[len(listed) - len(known) :]:
        yield FieldError(f"{entry.pointer}/step_id", f"the original has no step {entry.step_id!r}; a repair adds none")


def _content(
    entry: _Entry, was: _Entry | None, before: Mapping[str, Any], wrong: frozenset[str]
) -> Iterator[FieldError]:
    """What a step of the answer says that the same step of the original, or else all of the original, does not."""
    source = was.step if was is not None and was.step is not None else before
    tool = _tool(entry)
    if tool and tool not in _texts(source):
        yield _foreign_tool(entry)
    if was is None or was.step is None or entry.step is None:
        return
    if f"{was.pointer}/description" not in wrong and _differ(
        was.step.get("description"), entry.step.get("description")
    ):
        yield FieldError(f"{entry.pointer}/description", f"must stay what it was: {was.step['description']!r}")
    arguments = was.step.get("arguments")
    if tool and _read(arguments) != _read(entry.step.get("arguments")) and not _unreadable(arguments):
        yield FieldError(f"{entry.pointer}/arguments", f"must stay what they were: {arguments!r}")


def _tool(entry: _Entry) -> str:
    tool = entry.step.get("tool") if entry.step is not None else None
    return tool if isinstance(tool, str) else ""


def _foreign_tool(entry: _Entry) -> FieldError:
    message = f"the original does not name the tool {_tool(entry)!r} here; a repair adds none: null, or the one it had"
    return FieldError(f"{entry.pointer}/tool", message)


def _stands_in(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-]|\.\w)", text) is not None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _differ(was: Any, now: Any) -> bool:
    """Whether a text was said before and is another now; spaces aside."""
    return isinstance(was, str) and bool(was.strip()) and was.split() != str(now).split()


def _read(arguments: Any) -> Any:
    """Arguments as a value, whether they were given as JSON text or not; None for none."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments) if arguments.strip() else None
    except (ValueError, RecursionError):
        return arguments


def _unreadable(arguments: Any) -> bool:
    return _read(arguments) is not None and not isinstance(_read(arguments), Mapping)
