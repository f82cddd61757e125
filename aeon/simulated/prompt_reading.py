"""What a request's prompts say, read back from their text: the fenced data and the four sentences of a step (FR-090).

A person's own prompts may lack any of it or hold anything: whatever is not found is empty, and nothing here raises.
"""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aeon.domain.request import LLMRequest

_OPENING = re.compile(r"<([A-Za-z_][A-Za-z_-]{0,40})(-\d{1,4})?((?: [a-z_]+=\"[^\"<>]{0,400}\")*)>\n")
_ATTRIBUTE = re.compile(r"([a-z_]+)=\"([^\"]*)\"")
_POSITION = re.compile(r"You are executing step (\d{1,6}) of (\d{1,6})\.")
_INCOMING = "Incoming context from previous steps:"
_GOAL = "Your goal for this step:"
_HANDOFF = "You should prepare handoff for the next step as:"
_MOST_UNCLOSED = 200


@dataclass(frozen=True, slots=True)
class Fence:
    """One fenced piece of data: its label without a numbered suffix, its attributes, its text."""

    label: str
    text: str
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Any:
        """The text as JSON, None when it is none."""
        try:
            return json.loads(self.text)
        except (ValueError, RecursionError):
            return None


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found in the messages of a request, the last message's fences first."""

    fences: tuple[Fence, ...]
    bare: str

    def text(self, *labels: str) -> str | None:
        """The text of the first fence of one of these labels, None when there is none."""
        return next((fence.text for label in labels for fence in self.fences if fence.label == label), None)

    def objects(self, *labels: str) -> tuple[dict[str, Any], ...]:
        """The JSON objects in the first fence of one of these labels that holds a list of them or one of them."""
        for label in labels:
            for fence in self.fences:
                if fence.label == label and (found := _objects_in(fence.data)):
                    return found
        return ()

    @property
    def position(self) -> tuple[int, int]:
        """`step_index` and `total_steps` of the step prompt; (0, 0) when it does not say."""
        match = _POSITION.search(self.bare)
        return (int(match[1]), int(match[2])) if match else (0, 0)

    @property
    def goal(self) -> str:
        """The description of the step that is to be carried out, empty when the prompt does not say."""
        fenced = self.text("step_goal")
        return _between(self.bare, _GOAL, _HANDOFF).removesuffix(".").strip() if fenced is None else fenced.strip()

    @property
    def incoming(self) -> str:
        """What the step was given from earlier ones, empty for none."""
        fenced = self.text("context", "incoming_context", "incoming")
        text = fenced if fenced is not None else _between(self.bare, _INCOMING, _GOAL).strip()
        return "" if text.rstrip(". ").lower() in ("none", "") else text


def read(request: LLMRequest) -> Reading:
    """Read a request's messages. Text within fences is data: nothing in it counts as a sentence of the prompt."""
    fences: list[Fence] = []
    bare: list[str] = []
    for message in request.messages:
        found, rest = _split(message.content)
        fences[:0] = found
        bare.append(rest)
    return Reading(tuple(fences), "\n".join(bare))


def _split(text: str) -> tuple[list[Fence], str]:
    """The outermost fences of a text, and the text without them."""
    fences: list[Fence] = []
    bare: list[str] = []
    unclosed: set[str] = set()
    position = 0
    while (opening := _OPENING.search(text, position)) and len(unclosed) < _MOST_UNCLOSED:
        tag = opening[1] + (opening[2] or "")
        end = -1 if tag in unclosed else text.find(f"\n</{tag}>", opening.end() - 1)
        bare.append(text[position : opening.start()])
        if end < 0:
            unclosed.add(tag)
            bare.append(opening[0])
            position = opening.end()
            continue
        given = {name: html.unescape(value) for name, value in _ATTRIBUTE.findall(opening[3])}
        fences.append(Fence(opening[1], text[opening.end() : end], given))
        position = end + len(tag) + 4
    return fences, "".join([*bare, text[position:]])


def _between(text: str, start: str, end: str) -> str:
    _, found, after = text.partition(start)
    return after.partition(end)[0].strip() if found else ""


def _objects_in(data: Any) -> tuple[dict[str, Any], ...]:
    if isinstance(data, dict):
        return (data,)
    return tuple(member for member in data if isinstance(member, dict)) if isinstance(data, list) else ()


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects that begin somewhere in a text, outermost ones only."""
    decoder, position, tries = json.JSONDecoder(), 0, 0
    while (position := text.find("{", position)) >= 0 and tries < _MOST_UNCLOSED:
        tries += 1
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position += 1
            continue
        yield value


def excerpt(text: str, most: int = 60) -> str:
    """The beginning of a text on one line, at most `most` characters and an ellipsis, never cut within a character.

    Control characters and lone surrogates are left out. It is cut after a word where there are spaces.
    """
    shown = "".join(c if unicodedata.category(c) not in ("Cc", "Cs") else " " for c in text[: most * 8])
    line = " ".join(shown.split())
    if len(line) <= most:
        return line
    end = most
    while end > 1 and _joined(line[end - 1], line[end]):
        end -= 1
    space = line.rfind(" ", most // 2, end)
    return line[: space if space > 0 else end].rstrip() + "…"


def _joined(before: str, after: str) -> bool:
    """Whether a reader sees two code points as one character: combining marks, joiners, emoji modifiers, flags."""
    modifier = 0x1F3FB <= ord(after) <= 0x1F3FF
    flag = all(0x1F1E6 <= ord(c) <= 0x1F1FF for c in (before, after))
    return unicodedata.category(after)[0] == "M" or "\u200d" in (before, after) or modifier or flag
