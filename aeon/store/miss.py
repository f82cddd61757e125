"""The error of a replay that has no answer: which request, and how it differs from the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any
from unicodedata import category

from aeon.domain.errors import StoreMiss
from aeon.store.interface import AnswerSource
from aeon.store.lookup import place_of
from aeon.store.models import CallPath, Entry, StoreRequest

_MOST_LINES = 60
_LONGEST_LINE = 200
_CONTEXT = 2
_LAST = ("messages", "schema")


def describe_miss(request: StoreRequest, source: AnswerSource) -> StoreMiss:
    """The error for a request that a recording has no answer to: a readable diff to the request recorded in its place.

    Raises StoreFailed when the recording cannot be read.
    """
    what = f"the store has no answer to {describe_request(request)}"
    nearest = _find_nearest(request, source)
    if nearest is None:
        return StoreMiss(
            f"{what}; no such {_noun(request)} was recorded", hint="Replay what was recorded, or record this run anew."
        )
    same_place = place_of(nearest.request) == place_of(request)
    recorded = "recorded there" if same_place else f"recorded as {describe_request(nearest.request)}"
    if nearest.request.content == request.content:
        return StoreMiss(
            f"{what}; the same was {recorded}",
            hint="store.match=order answers by call and order, wherever the request comes from.",
        )
    return StoreMiss(
        f"{what}. It differs from what was {recorded}:\n{show_difference(nearest.request, request)}",
        hint="store.match=order answers by call and order, whatever the requests say; or take the change back.",
    )


def describe_request(request: StoreRequest) -> str:
    """A request by its name and place: `the model's call 'step' (pass 1, EXECUTE, step a, repair 1)`."""
    return f"the {_noun(request)} '{printable(request.path.call)}' ({_place(request.path)})"


def show_difference(recorded: StoreRequest, request: StoreRequest) -> str:
    """A unified diff of two requests as lines of text, of bounded length, without control characters."""
    lines = [
        printable(line)[:_LONGEST_LINE]
        for line in unified_diff(
            list(to_lines(recorded.body)), list(to_lines(request.body)), "recorded", "now", lineterm="", n=_CONTEXT
        )
    ]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], f"... and {more} more lines"] if more > 0 else lines)


def to_lines(request: dict[str, Any]) -> Iterator[str]:
    """A request as text: messages line by line, everything else as JSON."""
    for name, value in sorted(request.items(), key=lambda item: (item[0] in _LAST, item[0])):
        if name == "messages":
            for message in value:
                yield f"--- {message['role']} message ---"
                yield from str(message["content"]).split("\n")
        elif isinstance(value, dict | list):
            yield f"--- {name} ---"
            yield from json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).split("\n")
        else:
            yield f"{name}: {json.dumps(value, ensure_ascii=False)}"


def printable(text: str) -> str:
    """The text without a character that could steer a terminal, or that none can show."""
    return "".join(f"\\u{ord(ch):04x}" if category(ch) in ("Cc", "Cs") and ch != "\t" else ch for ch in text)


def _find_nearest(request: StoreRequest, source: AnswerSource) -> Entry | None:
    """The recorded request of the same call that comes from the nearest place; the last of equally near ones."""
    best, distance = None, None
    for entry in source.entries():
        if (entry.request.kind, entry.request.path.call) != (request.kind, request.path.call):
            continue
        away = _distance(entry.request, request)
        if distance is None or away <= distance:
            best, distance = entry, away
    return best


def _distance(one: StoreRequest, other: StoreRequest) -> tuple[bool, bool, int, int, bool]:
    a, b = one.path, other.path
    passes = abs(a.pass_number - b.pass_number)
    return a.step_id != b.step_id, a.phase != b.phase, passes, abs(a.attempt - b.attempt), a.occurrence != b.occurrence


def _noun(request: StoreRequest) -> str:
    return {"model": "call", "tool": "call of tool", "person": "person's answer to", "memory": "content of"}[
        request.kind
    ]


def _place(path: CallPath) -> str:
    parts = [f"pass {path.pass_number}", path.phase or "no phase"]
    parts += [f"step {printable(path.step_id)}"] if path.step_id else []
    parts += [f"repair {path.attempt}"] if path.attempt else []
    parts += [f"equal request number {path.occurrence + 1}"] if path.occurrence else []
    return ", ".join(parts)
