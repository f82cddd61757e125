"""The error of a replay that has no answer: which request, and how it differs from the recorded one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from difflib import unified_diff
from typing import Any

from aeon.domain.errors import StoreMiss
from aeon.store.interface import AnswerSource
from aeon.store.lookup import place_of
from aeon.store.models import StoreRequest

_MOST_LINES, _LONGEST_LINE = 60, 200
_NOUNS = {"model": "call", "tool": "call of tool", "person": "person's answer to", "memory": "content of"}


def describe_miss(request: StoreRequest, source: AnswerSource) -> StoreMiss:
    """The error for a request that a recording has no answer to, with a diff to the nearest request of the same call.

    Raises StoreFailed when the recording cannot be read.
    """
    place, what = request.path, f"the store has no answer to {_describe(request)}"
    recorded = [entry.request for entry in source.entries()]
    same_call = [one for one in recorded if (one.kind, one.path.call) == (request.kind, place.call)]
    if not same_call:
        hint = "Replay what was recorded, or record this run anew."
        return StoreMiss(f"{what}; no such {_NOUNS[request.kind]} was recorded", hint=hint)
    nearest = min(
        reversed(same_call),
        key=lambda one: (one.path.step_id != place.step_id, abs(one.path.pass_number - place.pass_number)),
    )
    where = "there" if place_of(nearest) == place_of(request) else f"as {_describe(nearest)}"
    hint = "store.match=order answers by call and order, whatever the requests say and wherever they come from."
    if nearest.content == request.content:
        return StoreMiss(f"{what}; the same was recorded {where}", hint=hint)
    difference = show_difference(nearest, request)
    return StoreMiss(f"{what}. It differs from what was recorded {where}:\n{difference}", hint=hint)


def show_difference(recorded: StoreRequest, request: StoreRequest) -> str:
    """A unified diff of two requests as lines of text, of bounded length, without control characters."""
    before, after = (list(_to_lines(one.body)) for one in (recorded, request))
    difference = unified_diff(before, after, "recorded", "now", lineterm="", n=2)
    lines = [_printable(line)[:_LONGEST_LINE] for line in difference]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], f"... and {more} more lines"] if more > 0 else lines)


def _describe(request: StoreRequest) -> str:
    """A request by its name and place: `the call 'step' (pass 1, EXECUTE, step a, repair 1)`."""
    path = request.path
    place = f"pass {path.pass_number}, {path.phase or 'no phase'}"
    place += f", step {path.step_id}" if path.step_id else ""
    place += f", repair {path.attempt}" if path.attempt else ""
    place += f", equal request number {path.occurrence + 1}" if path.occurrence else ""
    return _printable(f"the {_NOUNS[request.kind]} '{path.call}' ({place})")


def _to_lines(request: dict[str, Any]) -> Iterator[str]:
    """A request as text, the long parts last: messages line by line, everything else as JSON."""
    for name in sorted(sorted(request), key=("schema", "messages").count):
        if name == "messages":
            for message in request[name]:
                yield from (f"--- {message['role']} message ---", *str(message["content"]).split("\n"))
        else:
            yield from f"{name}: {json.dumps(request[name], indent=1, sort_keys=True, ensure_ascii=False)}".split("\n")


def _printable(text: str) -> str:
    """The text without a character that could steer a terminal, or that none can show."""
    return "".join(ch if ch.isprintable() or ch == "\t" else f"\\u{ord(ch):04x}" for ch in text)
