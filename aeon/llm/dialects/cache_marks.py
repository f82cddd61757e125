"""Where a prompt is marked for the provider's cache, and how a marked prompt is written."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.settings import CacheMarks

MOST_MARKS = 4
"""Most marks in one request, at OpenAI and at Anthropic."""
LEAST_BYTES = 3 * 1024
"""Neither provider caches fewer than 1,024 tokens, which is at least 3 bytes each in most texts. A
mark that comes too early costs nothing."""
_MOST_REMEMBERED = 10_000
_FIELDS: Mapping[CacheMarks, JsonMapping] = {
    "openai": {"prompt_cache_breakpoint": {"mode": "explicit"}},
    "anthropic": {"cache_control": {"type": "ephemeral"}},
}


@dataclass(frozen=True, slots=True)
class _PrefixEnd:
    """A place in a prompt: the index of its message, the number of characters of that message
    before it, and a digest of everything before it."""

    message: int
    end: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChosenMarks:
    """The marks of one request: their positions by message index, and their digests. `new` are
    those that it writes to the cache."""

    positions: Mapping[int, Sequence[int]] = field(default_factory=dict)
    digests: Sequence[bytes] = ()
    new: frozenset[bytes] = frozenset()


class MarkedPrefixes:
    """The prompt prefixes most recently marked in requests to one server; thread-safe."""

    def __init__(self) -> None:
        self._digests: OrderedDict[bytes, None] = OrderedDict()
        self._being_written: set[bytes] = set()
        self._lock = threading.Lock()

    def mark(
        self, messages: Sequence[JsonMapping], part_ends: Sequence[Sequence[int]], kind: str
    ) -> ChosenMarks:
        """Choose where to mark a prompt. `part_ends` are the ends of parts in each message; `kind`
        names what the provider puts before the prompt, such as the answer's schema. `settle` is to
        be called once the request has been answered.

        Marks the longest prefix that was marked before, so that it is read from the cache, and the
        last ends of parts, so that a later prompt can read those; but nothing new where another
        request is writing one of them, since both would pay for writing it.
        """
        places = list(_find_places(messages, part_ends, kind))
        if not places:
            return ChosenMarks()
        with self._lock:
            known = [place for place in places if place.digest in self._digests][-1:]
            latest = places[-MOST_MARKS:]
            if known and known[0] not in latest:
                latest = [*known, *latest[1:]]
            new = {place.digest for place in latest} - self._digests.keys()
            if not new.isdisjoint(self._being_written):
                return _choose(known, frozenset())
            self._being_written |= new
        return _choose(latest, frozenset(new))

    def settle(self, marks: ChosenMarks, *, is_answered: bool) -> None:
        """Remember the marks of a request, if it was answered."""
        with self._lock:
            self._being_written -= marks.new
            if not is_answered:
                return
            for digest in marks.digests:
                self._digests[digest] = None
                self._digests.move_to_end(digest)
            while len(self._digests) > _MOST_REMEMBERED:
                self._digests.popitem(last=False)


def _choose(places: Sequence[_PrefixEnd], new: frozenset[bytes]) -> ChosenMarks:
    positions: dict[int, list[int]] = {}
    for place in places:
        positions.setdefault(place.message, []).append(place.end)
    return ChosenMarks(positions, [place.digest for place in places], new)


def _find_places(
    messages: Sequence[JsonMapping], part_ends: Sequence[Sequence[int]], kind: str
) -> Iterator[_PrefixEnd]:
    """Yield the ends of parts that follow enough text to be cached, including the system message's
    end."""
    digest = hashlib.blake2b(kind.encode(), digest_size=16)
    size = 0
    for index, (message, ends) in enumerate(zip(messages, part_ends, strict=True)):
        role = message["role"]
        digest.update(f"\0{role}\0{message.get('tool_calls')}\0".encode("utf-8", "replace"))
        content = message["content"] or ""
        whole = len(content)
        for start, end in pairwise((0, *dict.fromkeys((*ends, whole)))):
            part = content[start:end].encode("utf-8", "replace")
            digest.update(part)
            size += len(part)
            is_end = end in ends or role == "system"
            if is_end and size >= LEAST_BYTES:
                yield _PrefixEnd(index, end, digest.digest())


def write_content(text: str, ends: Sequence[int], marks: CacheMarks) -> list[JsonObject]:
    """Write a message's text as content parts, each marked at its end except the last."""
    # Servers refuse a part of only white space.
    has_rest = bool(text[ends[-1] :].strip())
    borders = (0, *ends) if has_rest else (0, *ends[:-1], len(text))
    parts: list[JsonObject] = [
        {"type": "text", "text": text[start:end], **_FIELDS[marks]}
        for start, end in pairwise(borders)
    ]
    return [*parts, {"type": "text", "text": text[ends[-1] :]}] if has_rest else parts
