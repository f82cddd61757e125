"""The answer on standard output: exact for pipes and files, safe and rendered for terminals."""

from __future__ import annotations

import os
from pathlib import Path

from aeon.cli.terminal.streams import DUMB, put, say, stdout
from aeon.cli.terminal.width import terminal_width
from aeon.domain.result import RunResult
from aeon.report.words import MOST_RENDERED, escape_controls, is_utf


def write_answer(result: RunResult, form: str, *, markdown: bool = False) -> None:
    """Write the answer, or with `json` the whole result as one line of JSON. Raises ArtefactError
    as `put` does. Pipes and files get the exact text. On a terminal, control characters other than
    newlines and tabs are escaped, and with `markdown` the answer is rendered, if its encoding
    allows and it has no more than MOST_RENDERED characters."""
    if form == "json":
        put(escape_controls(result.model_dump_json(ensure_ascii=not _can_show_all()), json=True))
    elif markdown:
        show_markdown(result.answer)
    elif result.answer:
        put(result.answer if terminal_width() is None else escape_controls(result.answer))


def show_markdown(text: str) -> None:
    """Write a Markdown text: rendered on a terminal that can show it, unchanged in a pipe or a
    file."""
    width = terminal_width()
    if width is not None:
        text = escape_controls(text)
        is_rich = _can_show_all() and os.environ.get("TERM", "").lower() not in DUMB
        if text and is_rich and len(text) <= MOST_RENDERED:
            from aeon.cli.terminal.markdown import render_markdown  # slow to load

            text = render_markdown(text, width)
    if text:
        put(text)


def open_page(page: Path) -> None:
    """Open a page in the person's browser, or report its address."""
    import webbrowser  # few commands open a page

    address = page.absolute().as_uri()
    if not webbrowser.open(address):
        say(f"No browser was found. Open it yourself: {address}")


def _can_show_all() -> bool:
    return is_utf(getattr(stdout(), "encoding", None) or "utf-8")
