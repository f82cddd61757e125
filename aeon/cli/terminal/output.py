"""The answer on standard output: exact for pipes and files, safe and rendered for terminals."""

from __future__ import annotations

import os
import shutil

from aeon.cli.terminal.streams import DUMB, put, stdout
from aeon.domain.result import RunResult
from aeon.report.words import MOST_RENDERED, escape_controls, is_utf


def write_answer(result: RunResult, form: str, *, markdown: bool = False) -> None:
    """Write the answer, or with `json` the whole result as one line of JSON. Raises ArtefactError as `put` does. Pipes
    and files get the exact text. A terminal gets control characters, other than newlines and tabs, as escapes, and with
    `markdown` the answer rendered, if its encoding allows and it has no more than MOST_RENDERED characters."""
    stream = stdout()
    can_show_all = is_utf(getattr(stream, "encoding", None) or "utf-8")
    if form == "json":
        put(escape_controls(result.model_dump_json(ensure_ascii=not can_show_all), json=True))
        return
    text = result.answer
    if stream is not None and stream.isatty():
        text = escape_controls(text)
        is_rich = can_show_all and os.environ.get("TERM", "").lower() not in DUMB
        if text and markdown and is_rich and len(text) <= MOST_RENDERED:
            from aeon.cli.terminal.markdown import (
                render_markdown,
            )  # slow to load, and not needed for a pipe

            text = render_markdown(text, shutil.get_terminal_size().columns)
    if text:
        put(text)
