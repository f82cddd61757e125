"""Progress on standard error: plain lines, a banner alone, or a picture below the lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TextIO

from aeon.cli.progress.plain import Display, Silence
from aeon.cli.progress.view import RunView
from aeon.cli.terminal.streams import DUMB

_RECORDED = ("CI", "JPY_PARENT_PID")
"""Environment variables of places that log a terminal's output: build servers, notebooks."""


@contextmanager
def progress_for(
    kind: str, stream: TextIO, environ: Mapping[str, str], view: RunView | None = None
) -> Iterator[Display]:
    """Show a run on `stream` while the block lasts, and yield the subscriber of its events. `kind`
    is that of `progress`; a picture is drawn only on a terminal, with `auto` not in a build log or
    a notebook, without colour under NO_COLOR. Every kind, even `none`, begins with the banner of a
    run that calls no model."""
    view = view or RunView()
    live = False
    with suppress(ValueError):  # of a closed stream
        is_kept = kind == "auto" and any(environ.get(name) for name in _RECORDED)
        live = kind in ("auto", "live") and stream.isatty() and not is_kept
        live &= environ.get("TERM", "").lower() not in DUMB
    display = Silence(stream, view) if kind == "none" else Display(stream, view)
    if live:
        from aeon.cli.progress.screen import Screen  # with rich, which is slow to load

        display = Screen(stream, view, colour=not environ.get("NO_COLOR"))
    with closing(display):
        yield display
