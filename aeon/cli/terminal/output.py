"""The answer on standard output: exact for pipes and files, safe and rendered for terminals."""

from __future__ import annotations

import os
import shutil
from typing import TextIO
from unicodedata import category

from aeon.cli.terminal.glyphs import is_utf
from aeon.cli.terminal.streams import discard, put, stdout
from aeon.domain.errors import ArtefactError
from aeon.domain.result import RunResult


def write_answer(result: RunResult, form: str, *, markdown: bool = False) -> None:
    """Write the answer, or with `json` the whole result as one line of JSON, on standard output.

    Pipes and files get the exact text. A terminal gets control characters, other than newlines and tabs, as escapes,
    and with `markdown` the answer rendered, if its encoding allows. A reader that has gone away (`| head`) is no error.
    Raises ArtefactError when standard output is closed or full.
    """
    stream = stdout()
    text = _as_json(result, stream) if form == "json" else result.answer
    if stream is not None and is_seen():
        text = _escape_controls(text, r"\u{:04x}" if form == "json" else r"\x{:02x}")
        if markdown and form != "json" and text and _shows_signs(stream):
            from aeon.cli.terminal.markdown import render_markdown  # slow to load, and not needed for a pipe

            text = render_markdown(text, shutil.get_terminal_size().columns)
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


def is_seen() -> bool:
    """Whether standard output is a terminal."""
    stream = stdout()
    return stream is not None and stream.isatty()


def _shows_signs(stream: TextIO) -> bool:
    dumb = os.environ.get("TERM", "").lower() in ("", "dumb", "unknown")
    return is_utf(stream.encoding or "ascii") and not dumb


def _as_json(result: RunResult, stream: TextIO | None) -> str:
    unicode = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "").startswith("utf")
    return result.model_dump_json(ensure_ascii=not unicode)


def _escape_controls(text: str, escape: str) -> str:
    """The text with every character that could steer a terminal as an escape."""
    return "".join(escape.format(ord(ch)) if category(ch) == "Cc" and ch not in "\n\t" else ch for ch in text)
