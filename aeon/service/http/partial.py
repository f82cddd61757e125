"""The text of one field of a JSON object that comes in pieces, each character read once."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Literal

_MARKER = "[["
"""It begins a reference to another step's output, which is put in its place later."""
_STRUCTURE = re.compile(r'["{}\[\],:]')
_IN_STRING = re.compile(r'(?:[^"\\]+|\\u[0-9a-fA-F]{4}|\\[^u])*')
_FIRST_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
"""The first half of a character that JSON may write as two."""
_LONGEST_ESCAPE = 6


class PartialField:
    """Reads the text of the field `name`, from pieces of an answer that begins with a JSON object,
    up to a reference to another step's output. What is read is in `pieces`, for a reader in another
    thread to take; `unread` is the end of the answer so far, which needs the next piece."""

    def __init__(self, name: str) -> None:
        self.pieces: deque[str] = deque()
        self.unread = ""
        self._name = name
        self._place: Literal["before", "between", "string", "field", "after"] = "before"
        self._depth = 0
        self._is_value = False
        self._key = ""
        self._bracket = ""

    def read(self, piece: str) -> None:
        """Read the next piece of the answer."""
        text = self.unread + piece
        position = 0
        while position < len(text) and self._place != "after":
            before = (position, self._place)
            position = self._read_on(text, position)
            if (position, self._place) == before:
                break
        self.unread = "" if self._place == "after" else text[position:]

    def _read_on(self, text: str, position: int) -> int:
        """Read from a position, as far as that is of one kind; where it ends."""
        if self._place == "before":
            return self._find_object(text, position)
        if self._place == "between":
            return self._read_structure(text, position)
        return self._read_string(text, position)

    def _find_object(self, text: str, position: int) -> int:
        start = text.find("{", position)
        if start < 0:
            return len(text)
        self._place = "between"
        return start

    def _read_structure(self, text: str, position: int) -> int:
        """Read up to the next character that opens, closes or divides something."""
        found = _STRUCTURE.search(text, position)
        if found is None:
            return len(text)
        match found[0]:
            case "{" | "[":
                self._depth += 1
                self._is_value = False
            case "}" | "]":
                self._depth -= 1
                self._place = "between" if self._depth else "after"
            case ":":
                self._is_value = True
            case ",":
                self._is_value = False
            case _:
                self._begin_string()
        return found.end()

    def _begin_string(self) -> None:
        is_field = self._depth == 1 and self._is_value and self._key == self._name
        self._place = "field" if is_field else "string"
        if not self._is_value:
            self._key = ""

    def _read_string(self, text: str, position: int) -> int:
        """Read what is whole of a string, and its end where that has come."""
        found = _IN_STRING.match(text, position)
        assert found is not None
        end = found.end()
        if text[end : end + 1] == '"':
            self._take(text[position:end])
            self._end_string()
            return end + 1
        half = _FIRST_HALF.search(text, position, end)
        whole = end if half is None else half.start()
        self._take(text[position:whole])
        if len(text) - end >= _LONGEST_ESCAPE:  # no escape that JSON knows
            self._place = "after"
        return whole

    def _take(self, written: str) -> None:
        """Take a part of a string as it is written."""
        if self._place == "string" and not self._is_value:
            self._key += written
        if self._place != "field":
            return
        text = self._bracket + str(json.loads(f'"{written}"', strict=False))
        self._bracket = ""
        text, marker, _ = text.partition(_MARKER)
        if marker:
            self._place = "after"
        elif text.endswith(_MARKER[0]):
            text = text[:-1]
            self._bracket = _MARKER[0]
        if text:
            self.pieces.append(text)

    def _end_string(self) -> None:
        if self._bracket:
            self.pieces.append(self._bracket)
        self._place = "after" if self._place in ("field", "after") else "between"
