"""Two texts compared: what was removed and what was added, by lines and by words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from aeon.report.words import count_noun, shorten

LONGEST = 200_000
"""Characters of two texts together that are compared; comparing takes time by the square of what
differs."""
_MOST_WORDS = 1_500
"""Words of a changed stretch that are compared one by one; a longer one is shown as what went and
what came."""
_AROUND = 2  # unchanged lines that are shown before and after a change


Part = tuple[str, str]
"""A stretch of text with what became of it: `del`, `ins`, `same`, or `gap` for one that is left
out."""


def compare_texts(before: str, after: str) -> Iterator[Part]:
    """Return the changes from one text to another: by lines, and within changed lines by words.
    Unchanged lines far from a change are left out; texts too long to compare are returned as
    removed and added whole."""
    if len(before) + len(after) > LONGEST:
        yield "del", shorten(before, LONGEST // 2)
        yield "ins", shorten(after, LONGEST // 2)
        return
    old = before.splitlines(keepends=True)
    new = after.splitlines(keepends=True)
    for kind, i, j, k, m in SequenceMatcher(a=old, b=new).get_opcodes():
        if kind == "equal":
            yield from _fold(new[k:m], at_start=k == 0, at_end=m == len(new))
        else:
            yield from _compare_words("".join(old[i:j]), "".join(new[k:m]))


def _fold(lines: Sequence[str], *, at_start: bool, at_end: bool) -> Iterator[Part]:
    head = 0 if at_start else _AROUND
    tail = 0 if at_end else _AROUND
    left_out = len(lines) - head - tail
    if left_out <= 1:
        yield "same", "".join(lines)
        return
    yield "same", "".join(lines[:head])
    yield "gap", f"{count_noun(left_out, 'line')} unchanged"
    yield "same", "".join(lines[len(lines) - tail :])


def _compare_words(before: str, after: str) -> Iterator[Part]:
    old = re.findall(r"\S+\s*|\s+", before)
    new = re.findall(r"\S+\s*|\s+", after)
    if not old or not new or len(old) + len(new) > _MOST_WORDS:
        yield "del", before
        yield "ins", after
        return
    for kind, i, j, k, m in SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if kind == "equal":
            yield "same", "".join(new[k:m])
        else:
            yield "del", "".join(old[i:j])
            yield "ins", "".join(new[k:m])


def count_changed_words(parts: Iterable[Part]) -> tuple[int, int]:
    """Count the removed and the added words."""
    words = {"del": 0, "ins": 0}
    for tag, text in parts:
        if tag in words:
            words[tag] += len(text.split())
    return words["del"], words["ins"]


def measure_change(before: str, after: str) -> float:
    """Return the share of the words of both texts that were removed or added, in [0, 1]."""
    if before == after:
        return 0.0
    removed, added = count_changed_words(compare_texts(before, after))
    return (removed + added) / max(1, len(before.split()) + len(after.split()))
