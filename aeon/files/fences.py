"""The tags around data in prompts: each is named after its data, so that no data can contain its
own tag."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_SHIFTS = (54, 44, 34, 24, 14, 4)
_CODE_LETTERS = 12  # 60 bits: a few tokens, and too many texts to search
_TAG = re.compile(r"(</?[A-Za-z_][A-Za-z0-9_-]*)-[a-z2-7]{12}(?=[ >])")
_OPENING = re.compile(r"<([A-Za-z_][A-Za-z0-9_-]*)-([a-z2-7]{12})( [^>\n]*)?>\n")


def name_fence(label: str, text: str) -> str:
    """Return the name of the tags around a text: `label-CODE`. CODE is twelve letters of the text's
    SHA-256."""
    return f"{label}-{_code_of(text)}"


def without_codes(prompt: str) -> str:
    """Return the prompt for readers, with `<task>` for `<task-abcdefgh2345>`."""
    return _TAG.sub(r"\1", prompt)


def change_fenced(prompt: str, change: Callable[[str], str]) -> str:
    """Apply `change` to all texts of a prompt, and rename the fences after the changed texts."""
    parts = []
    place = 0
    while opening := _OPENING.search(prompt, place):
        label, code, attributes = opening.groups()
        end = prompt.find(f"\n</{label}-{code}>", opening.end() - 1)
        text = prompt[opening.end() : max(end, opening.end())]
        if end < 0 or _code_of(text) != code:
            parts.append(change(prompt[place : opening.end()]))
            place = opening.end()
            continue
        changed = change(text)
        name = name_fence(label, changed)
        before = change(prompt[place : opening.start()])
        parts.append(f"{before}<{name}{change(attributes or '')}>\n{changed}\n</{name}>")
        place = end + len(f"\n</{label}-{code}>")
    return "".join([*parts, change(prompt[place:])])


def _code_of(text: str) -> str:
    content = text.encode("utf-8", "surrogatepass")
    while True:
        bits = int.from_bytes(sha256(content).digest()[:8], "big")
        # Base 32, two letters at a time: base64.b32encode takes ten times as long, and each prompt
        # has many texts.
        letters = "".join([_PAIRS[bits >> shift & 1023] for shift in _SHIFTS])
        code = letters[:_CODE_LETTERS]
        # Somebody may have found a text that contains its own code; they cannot know the next one.
        if code not in text:
            return code
        content += b"."
