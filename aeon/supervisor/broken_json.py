"""Reads the fields of text that is nearly JSON or YAML: cut off, or quoted differently. Text inside
a quoted value is never a field."""

from __future__ import annotations

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[{}\[\],:])|(?P<quote>\\*["'])|(?P<word>[^\s{}\[\],:"'\\]+)|(?P<other>.))""",
    re.S,
)
_ENDS_A_TEXT = re.compile(r"\s*\\*[\"']?\s*(?:[,:}\]]|\Z)")
_KEY_LINE = re.compile(r"""(?P<indent>[ ]*(?:-[ ]+)*)(?P<name>[^\s:'"]+)[ ]*:(?P<value>.*)""")
_QUOTED = re.compile(r"""(?P<quote>["'])(?P<text>.*)(?P=quote)\s*""")


def find_values(text: str, name: str) -> set[str]:
    """Return the quoted values of all fields of that name."""
    is_json = "{" in text or "[" in text
    found = _json_fields(text) if is_json else _yaml_fields(text)
    return {value for field, value in found if field == name}


def _json_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield fields that begin after a brace or a comma, each with its value if that is quoted."""
    place = 0
    before = ""
    field = ""
    is_first = True
    while token := _TOKEN.match(text, place):
        place = token.end()
        if token["mark"]:
            # After a colon, the preceding text stays the field of the next value.
            field = field if token["mark"] == ":" else ""
            before = token["mark"]
        elif token["quote"] and before in ("", "{", "[", ",", ":"):
            content, place = _read_text(text, place, token["quote"])
            if is_first and "{" in content:  # JSON within a text
                yield from _json_fields(content)
            elif content and before == ":" and field:
                yield field, content
            field = _name_field(content, before)
            before = '"'
        else:
            field = _name_field(token["word"] or "", before)
            before = "word"
        is_first = False


def _name_field(text: str, before: str) -> str:
    return text if before in ("{", ",") else ""


def _read_text(text: str, start: int, quote: str) -> tuple[str, int]:
    """Return the text after an opening quote and the position after it; empty if the quote is not
    closed."""
    depth = len(quote) - 1
    place = start
    while (place := text.find(quote[-1], place)) >= 0:
        escapes = _count_escapes(text, place)
        closes = escapes == depth or (depth == 0 and escapes % 2 == 0)
        place += 1
        if closes and _ENDS_A_TEXT.match(text, place):
            return text[start : place - 1 - depth], place
    is_document = start == len(quote)
    return (text[start:] if is_document else ""), len(text)


def _count_escapes(text: str, place: int) -> int:
    before = place
    while before and text[before - 1] == "\\":
        before -= 1
    return place - before


def _yaml_fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield fields at the beginning of a line, unless the line continues an earlier value."""
    inside: int | None = None
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" "))
        if inside is not None and (indent > inside or not line.strip()):
            continue
        inside = None
        if found := _KEY_LINE.fullmatch(line.rstrip()):
            inside = len(found["indent"]) if found["value"].strip() else None
            if quoted := _QUOTED.fullmatch(found["value"].strip()):
                yield found["name"], quoted["text"]
