"""The text of a streamed answer, piece by piece while it is received."""

from __future__ import annotations

import json
from collections.abc import Callable


class PieceReader:
    """Given the bytes of a response as they come, tells the pieces of its text; of what is no stream, nothing."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell, self._rest = tell, b""

    def __call__(self, part: bytes) -> None:
        """Take in the next bytes."""
        *lines, self._rest = (self._rest + part).split(b"\n")
        if text := "".join(map(_text_of, lines)):
            self._tell(text)


def _text_of(line: bytes) -> str:
    name, _, data = line.partition(b":")
    if name.strip() != b"data":
        return ""
    try:
        choices = json.loads(data.decode("utf-8", "replace"))["choices"]
        texts = [choice["delta"].get("content") for choice in choices if not choice.get("index")]
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return ""  # what is wrong with an answer is said when all of it is there
    return "".join(text for text in texts if isinstance(text, str))
