"""Writing to standard output and standard error, whatever is at the other end of them."""

from __future__ import annotations

from typing import TextIO
from unicodedata import category

from aeon.cli.streams import discard, put, stdout
from aeon.errors import ArtefactError
from aeon.result import RunResult


def write_answer(result: RunResult, form: str) -> None:
    """The answer, or with `json` the whole result as one line of JSON, on standard output.

    A terminal is shown control characters, other than newlines and tabs, as escapes; pipes and files get them as
    they are. A reader that has gone away (`| head`) is no error. Raises ArtefactError when standard output is closed or
    full.
    """
    stream = stdout()
    text = _as_json(result, stream) if form == "json" else result.answer
    if stream is not None and stream.isatty():
        text = _harmless(text, r"\u{:04x}" if form == "json" else r"\x{:02x}")
    if not text:
        return
    if stream is None:
        raise ArtefactError("the answer cannot be printed: standard output is closed")
    try:
        put(text)
    except OSError as error:
        discard()
        if not isinstance(error, BrokenPipeError):
            raise ArtefactError(f"the answer cannot be printed: standard output: {error.strerror}") from error


def _as_json(result: RunResult, stream: TextIO | None) -> str:
    unicode = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    return result.model_dump_json(ensure_ascii=not unicode)


def _harmless(text: str, escape: str) -> str:
    """The text without a character that could steer a terminal."""
    return "".join(escape.format(ord(ch)) if category(ch) == "Cc" and ch not in "\n\t" else ch for ch in text)
