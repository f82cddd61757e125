"""Finds stored answers: for which requests they may be reused, and the error if there is none."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from difflib import unified_diff
from typing import Literal
from weakref import WeakValueDictionary

from aeon.domain.errors import StoreFailed, StoreMiss
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.fences import without_codes
from aeon.store.interface import AnswerSource
from aeon.store.models import Entry, Kind, StoreRequest

_MOST_LINES = 60
_LONGEST_LINE = 200
_NOUNS = {
    "model": "call",
    "tool": "call of tool",
    "check": "result of check",
    "person": "person's answer to",
    "memory": "content of",
    "begun": "beginning of",
}

ReuseScope = Literal["anywhere", "here", "replay"]
"""Where an answer may be reused: for every equal request; at its own place, when the run is resumed
or replayed; or only in a replay, because a failed or unanswered call may succeed now."""
ReusePolicy = Callable[[JsonObject], ReuseScope]
"""Returns the scope of an answer."""
# Weakly, so that a lock is gone with the last request that waits for it or holds it.
_turns: WeakValueDictionary[tuple[str, str], threading.Lock] = WeakValueDictionary()
_turns_lock = threading.Lock()


class ByKey:
    """The answer to exactly this request from exactly this place; of requests of the kinds in
    `whole`, failures and unusable answers too."""

    def __init__(self, source: AnswerSource, *, whole: Collection[Kind] = ()) -> None:
        self._source = source
        self._whole = whole

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """Return the stored answer; None if there is none. Raises StoreFailed."""
        entry = self.find_whole(request)
        if entry is None or request.kind in self._whole:
            return entry
        return entry if entry.usable and policy(entry.answer) != "replay" else None

    def find_whole(self, request: StoreRequest) -> Entry | None:
        """Return the stored answer, even an unusable one; None if there is none. Raises
        StoreFailed."""
        return self._source.get(request.key)


class Shared:
    """A model's answer to an equal request: from the same place if there is one, else from any
    place unless `same_place`. If the store cannot be read, `warn` is called and nothing more is
    found."""

    def __init__(
        self,
        source: AnswerSource,
        warn: Callable[[str], None],
        *,
        same_place: bool = False,
        name: str = "",
    ) -> None:
        self._source = source
        self._warn = warn
        self._same_place = same_place
        self._name = name
        self._failed = False

    @contextmanager
    def alone(self, request: StoreRequest) -> Iterator[None]:
        """Make equal requests to the store of this name in this process wait while the block
        runs."""
        key = self._name, request.key if self._same_place else request.content
        with _turns_lock:
            turn = _turns.setdefault(key, threading.Lock())
        with turn:
            yield

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:
        """Return the stored answer; None if there is none."""
        if request.kind != "model" or self._failed:
            return None
        try:
            entry = self._source.get(request.key)
            if not self._same_place and not _is_for_all(entry, policy):
                entry = self._source.by_content(request.content)
        except StoreFailed as error:
            self._failed = True
            self._warn(f"{error.message}; this store answers nothing more; the run continues")
            return None
        return entry if _is_for_all(entry, policy) else None


def _is_for_all(entry: Entry | None, policy: ReusePolicy) -> bool:
    return entry is not None and entry.usable and policy(entry.answer) == "anywhere"


class InOrder:
    """The next unused answer to the same request, else at the same place, else of the same call.
    `differing` counts the requests that got another request's answer."""

    def __init__(self, source: AnswerSource) -> None:
        self._lock = threading.Lock()
        self._recorded: defaultdict[object, list[Entry]] = defaultdict(list)
        self._used: set[str] = set()
        self.differing = 0
        for entry in source.entries():
            for name in _names_of(entry.request):
                self._recorded[name].append(entry)

    def find(self, request: StoreRequest, policy: ReusePolicy) -> Entry | None:  # noqa: ARG002
        """Return the stored answer; None if no more are left."""
        with self._lock:
            candidates = (entry for name in _names_of(request) for entry in self._recorded[name])
            entry = next(
                (entry for entry in candidates if entry.request.key not in self._used), None
            )
            if entry is not None:
                self._used.add(entry.request.key)
                self.differing += entry.request.content != request.content
            return entry


Lookup = ByKey | Shared | InOrder
"""A way to find the answer to a request; thread-safe."""


def _names_of(request: StoreRequest) -> tuple[object, ...]:
    return request.key, place_of(request), (request.kind, request.path.call)


def place_of(request: StoreRequest) -> tuple[object, ...]:
    """Return the place of a request, without its content."""
    path = request.path
    return request.kind, path.pass_number, path.phase, path.call, path.step_id, path.attempt


def describe_miss(request: StoreRequest, source: AnswerSource) -> StoreMiss:
    """Return the error for a request without a recorded answer, with a diff to the nearest request
    of the same call."""
    nearest = _find_nearest(request, source)
    message, hint = _explain_miss(request, nearest)
    miss = StoreMiss(message, hint=hint)
    miss.call = request.path.call
    miss.differs = _name_differences(nearest, request) if nearest else ()
    return miss


def _find_nearest(request: StoreRequest, source: AnswerSource) -> StoreRequest | None:
    place = request.path
    recorded = [entry.request for entry in source.entries()]
    same_call = [one for one in recorded if (one.kind, one.path.call) == (request.kind, place.call)]
    return min(
        reversed(same_call),
        key=lambda one: (
            one.path.step_id != place.step_id,
            abs(one.path.pass_number - place.pass_number),
        ),
        default=None,
    )


def _explain_miss(request: StoreRequest, nearest: StoreRequest | None) -> tuple[str, str]:
    what = f"the store has no answer to {_describe(request)}"
    if nearest is None:
        hint = "Replay what was recorded, or record this run anew."
        return f"{what}; no such {_NOUNS[request.kind]} was recorded", hint
    where = "there" if place_of(nearest) == place_of(request) else f"as {_describe(nearest)}"
    hint = (
        "store.match=order answers by call and order, whatever the requests say and "
        "wherever they come from."
    )
    if nearest.content == request.content:
        return f"{what}; the same was recorded {where}", hint
    difference = show_difference(nearest, request)
    return f"{what}. It differs from what was recorded {where}:\n{difference}", hint


def _name_differences(recorded: StoreRequest, request: StoreRequest) -> tuple[str, ...]:
    """Return the parts of a request that differ from the recording: messages by role, other parts
    by key."""
    before = _split_messages(recorded.body)
    after = _split_messages(request.body)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return tuple(names) or ("place",)


def _split_messages(body: JsonMapping) -> JsonObject:
    messages = {f"{one['role']} message": one["content"] for one in body.get("messages", ())}
    return {**messages, **{name: value for name, value in body.items() if name != "messages"}}


def show_difference(recorded: StoreRequest, request: StoreRequest) -> str:
    """Return a unified diff of two requests, of bounded length, without control characters."""
    before, after = (list(_to_lines(one.body)) for one in (recorded, request))
    difference = unified_diff(before, after, "recorded", "now", lineterm="", n=2)
    lines = [_printable(line)[:_LONGEST_LINE] for line in difference]
    more = len(lines) - _MOST_LINES
    return "\n".join([*lines[:_MOST_LINES], f"... and {more} more lines"] if more > 0 else lines)


def _describe(request: StoreRequest) -> str:
    path = request.path
    place = f"pass {path.pass_number}, {path.phase or 'no phase'}"
    place += f", step {path.step_id}" if path.step_id else ""
    place += f", repair {path.attempt}" if path.attempt else ""
    place += f", equal request number {path.occurrence + 1}" if path.occurrence else ""
    return _printable(f"the {_NOUNS[request.kind]} '{path.call}' ({place})")


def _to_lines(request: JsonObject) -> Iterator[str]:
    for name in sorted(sorted(request), key=("schema", "messages").count):
        if name == "messages":
            for message in request[name]:
                yield f"--- {message['role']} message ---"
                # The codes of tags follow from the texts between them, which are shown.
                yield from without_codes(str(message["content"])).split("\n")
        else:
            yield from f"{name}: {json.dumps(request[name], indent=1, sort_keys=True, ensure_ascii=False)}".split(
                "\n"
            )


def _printable(text: str) -> str:
    """Escape characters that could control a terminal or cannot be shown."""
    return "".join(ch if ch.isprintable() or ch == "\t" else f"\\u{ord(ch):04x}" for ch in text)
