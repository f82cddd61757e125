"""The tags between which prompts show data: each is named after its data, so that no data can name
it."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import sha256

_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_SHIFTS = (54, 44, 34, 24, 14, 4)
_CODE_LETTERS = 12  # 60 bits: a few tokens, and too many texts to try
_TAG = re.compile(r"(</?[A-Za-z_][A-Za-z0-9_-]*)-[a-z2-7]{12}(?=[ >])")
_OPENING = re.compile(r"<([A-Za-z_][A-Za-z0-9_-]*)-([a-z2-7]{12})( [^>\n]*)?>\n")


def name_fence(label: str, text: str) -> str:
    """The name of the tags around a text: `label-CODE`. CODE is twelve letters of the text's
    SHA-256."""
    return f"{label}-{_code_of(text)}"


def without_codes(prompt: str) -> str:
    """The prompt as a person reads it, `<task>` for `<task-abcdefgh2345>`."""
    return _TAG.sub(r"\1", prompt)


def change_fenced(prompt: str, change: Callable[[str], str]) -> str:
    """The prompt with `change` of all its texts, and with the tags that fences of the changed texts
    have."""
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
        # Somebody may have searched for a text that names its own code; the next one they do not
        # know.
        if code not in text:
            return code
        content += b"."
