"""What a repair of planned steps may not bring in: a tool that its original did not name (FR-032, FR-066).

Compared as structure, word for word; the meaning of the rest of an answer is not judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from aeon.llm.extract import ExtractError, extract_json
from aeon.schema.violations import FieldError

PlannedCall = Literal["plan", "subplan", "refinement"]

# Quoted either way, and escaped where JSON stands within a text.
_TOOL_FIELD = re.compile(r"""(?<!\w)tool\\*["']?\s*:\s*\\*(?P<quote>["'])(?P<name>[^"'\\\n]*)\\*(?P=quote)""")
# What these fields hold is no tool's name, whatever it says.
_OTHER_FIELDS = frozenset(
    {"goal", "subplan_goal", "step_id", "description", "dependencies", "provides", "handoff_to_next", "arguments"}
    | {"justification", "target_step_id", "addresses_issues", "overrides_issues", "declined_issues", "questions"}
)
_LIST = {"plan": "steps", "subplan": "substeps", "refinement": "actions"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A step of an answer, None where an entry has none, and its JSON pointer."""

    pointer: str
    step: Mapping[str, Any] | None

    @property
    def step_id(self) -> str:
        given = self.step.get("step_id") if self.step is not None else None
        return given.strip() if isinstance(given, str) else ""

    @property
    def tool(self) -> str:
        given = self.step.get("tool") if self.step is not None else None
        return given if isinstance(given, str) else ""


def find_foreign_tools(call: PlannedCall, original: str, repaired: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """The steps of a repaired answer whose tool the original does not name; empty where there are none.

    A step that the original has may have the tool that the original names in that step; another one, a tool named
    anywhere in it, in each case by a field that could hold a tool. Where the original is no JSON, a tool counts as
    named if it is the quoted value of a `tool` field.
    """
    before = _original(call, original)
    known = _known(_entries(call, before))
    everywhere = frozenset(_texts(before))
    entries = [entry for entry in _entries(call, repaired) if entry.tool]
    return tuple(_foreign(entry) for entry in entries if entry.tool not in known.get(entry.step_id, everywhere))


def _original(call: PlannedCall, text: str) -> Mapping[str, Any]:
    """The original answer; of one that is no JSON object, its steps or no more than the tools it names."""
    try:
        found = extract_json(text)
    except ExtractError:
        found = None
    if isinstance(found, Mapping):
        return found
    if isinstance(found, list):
        return {_LIST[call]: found}
    return {"tools": [match["name"] for match in _TOOL_FIELD.finditer(text)]}


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


def _known(entries: tuple[_Entry, ...]) -> dict[str, frozenset[str]]:
    """The texts of the steps that their ids tell apart."""
    times = Counter(entry.step_id for entry in entries)
    return {e.step_id: frozenset(_texts(e.step)) for e in entries if e.step_id and times[e.step_id] == 1}


def _foreign(entry: _Entry) -> FieldError:
    message = f"the original does not name the tool {entry.tool!r} here; a repair adds none: null, or the one it had"
    return FieldError(f"{entry.pointer}/tool", message)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in _OTHER_FIELDS:
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
