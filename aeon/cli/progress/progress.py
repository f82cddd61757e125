"""Progress on standard error: a picture on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TextIO

from aeon.cli.progress.display import Display, Forgiving, Lines
from aeon.cli.progress.view import Conditions, RunView
from aeon.cli.terminal.stderr import DUMB
from aeon.store.cassette import Provenance


@contextmanager
def progress_for(
    kind: str,
    stream: TextIO,
    environ: Mapping[str, str],
    recording: Provenance | None = None,
    conditions: Conditions | None = None,
) -> Iterator[Display]:
    """Show a run on `stream` while the block lasts; gives the subscriber of its events.

    `kind` is that of `progress`: `auto` and `live` draw a picture on a terminal, without colour under NO_COLOR, and
    write plain lines elsewhere; `plain` writes lines; `none` writes nothing but the banner of a run that calls no
    model, which every kind begins with. A replay has a `recording`.
    """
    safe, view = Forgiving(stream), RunView(conditions or Conditions(), recording)
    with closing(_display(kind, safe, environ, view)) as display:
        yield display


def _display(kind: str, stream: Forgiving, environ: Mapping[str, str], view: RunView) -> Display:
    if kind == "none":
        return Display(stream, view)
    if kind != "plain" and stream.isatty() and environ.get("TERM", "").lower() not in DUMB:
        from aeon.cli.progress.screen import Screen  # slow to load

        return Screen(stream, environ, view)
    return Lines(stream, view)
