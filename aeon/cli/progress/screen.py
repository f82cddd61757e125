"""The terminal during a run: lines of past events, and below them the picture, redrawn in place."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from io import StringIO
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from aeon.cli.progress.picture import picture
from aeon.cli.progress.plain import Display
from aeon.cli.progress.view import RunView
from aeon.cli.terminal.status import echo_off
from aeon.report.words import is_utf, to_ascii

_SECONDS_BETWEEN = 1 / 8
_HIDE_CURSOR = "\x1b[?25l"
_SHOW_CURSOR = "\x1b[?25h"
# Terminals that support these show everything between them at once.
_BEGIN = "\x1b[?2026h"
_END = "\x1b[?2026l"
# Line by line, so that nothing flickers.
_CLEAR_LINE = "\x1b[2K"
_CLEAR_REST = "\x1b[J"
_CLOCK = re.compile(r"\d+(?::\d\d)+  ")
_WORDS = {
    r"\b(?:complete|converged|no issues)\b": "green",
    r"\bnot converged\b": "yellow",
    r"\b(?:failed|invalid|BLOCKED|abandoned)\b": "red",
    r"^pass \d+  (?:retry|fallback|warning|advisory|call failed)\b": "yellow",
    r"^pass \d+  output .*": "dim",
    r"^pass \d+(?=  )": "dim",
}


class Screen(Display):
    """Draws the run below its lines, at most eight times a second, from the first event until it is
    over."""

    live = True

    def __init__(self, stream: TextIO, view: RunView, *, colour: bool) -> None:
        super().__init__(stream, view)
        # It only renders text with colours, and writes nothing.
        self._console = Console(
            file=StringIO(), force_terminal=True, no_color=not colour, highlight=False
        )
        self._is_utf = is_utf(getattr(stream, "encoding", None) or "utf-8")
        self._new: list[str] = []
        self._drawn: list[str] = []
        self._cells: list[int] = []
        self._drawing: ExitStack | None = None

    def print(self, new: list[str]) -> None:
        """Write lines above the picture."""
        with self._viewing:
            self._new += new
        if self._drawing is None:
            with self._writing:
                self._start()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Lend the terminal to somebody else, one at a time, while the block lasts."""
        with self._writing:
            self._stop()
            try:
                yield
            finally:
                self._start()

    def close(self) -> None:
        """Remove the picture; the lines stay."""
        with self._writing:
            self._stop()

    def _start(self) -> None:
        if self._drawing is not None:
            return
        self._drawing = ExitStack()
        over = threading.Event()
        self._drawing.enter_context(echo_off(self._stream))
        self._drawing.callback(over.set)
        self._write(_HIDE_CURSOR)
        self._draw()
        threading.Thread(
            target=self._draw_again, args=(over,), name="aeon-progress", daemon=True
        ).start()

    def _stop(self) -> None:
        if self._drawing is not None:
            self._drawing.close()
            self._drawing = None
            self._draw(last=True)
            self._write(_SHOW_CURSOR)

    def _draw_again(self, over: threading.Event) -> None:
        while not over.wait(_SECONDS_BETWEEN):
            with self._writing:
                if not over.is_set():
                    self._draw()

    def _draw(self, *, last: bool = False) -> None:
        """Write the new lines over the old picture, and the present picture below them; `last`: no
        picture."""
        width, height = self._size()
        # Some terminals break a full line in two, and nothing can be erased at its end.
        width -= 1
        with self._viewing:
            new = self._new
            self._new = []
            draw = self._view.draw or (lambda *size: picture(self._view, *size))
            lines = [] if last else draw(datetime.now(UTC), width, height)
        above = [part for line in new for part in self._wrap_line(line, width)]
        now = self._render_text(Text("\n").join(lines)).split("\n") if lines else []
        if above or now != self._drawn or last:
            texts = [f"{_CLEAR_LINE}{text}" for text in (*above, *now)]
            written = "\r\n".join([*texts, ""] if last else texts)
            self._write(f"{_BEGIN}{self._move_up(width + 1)}{written}{_CLEAR_REST}{_END}")
            self._drawn = now
            self._cells = [cell_len(line.plain.rstrip()) for line in lines]

    def _move_up(self, width: int) -> str:
        """Return the codes that move the cursor to the beginning of the old picture."""
        # A terminal that became narrower has wrapped the lines.
        rows = sum(max(1, -(-cells // width)) for cells in self._cells)
        return f"\x1b[{rows - 1}A\r" if rows > 1 else "\r"

    def _size(self) -> tuple[int, int]:
        with suppress(OSError, ValueError):
            # Some terminals report 0 columns.
            if min(size := os.get_terminal_size(self._stream.fileno())) > 0:
                return size
        return shutil.get_terminal_size()

    def _wrap_line(self, line: str, width: int) -> list[str]:
        """Wrap a line of past events, its continuation lines indented."""
        clock = found[0] if (found := _CLOCK.match(line)) else ""
        if not line.strip("="):
            line = line[: width - 2]  # the rule around a banner
        text = Text(line[len(clock) :])
        for pattern, style in _WORDS.items():
            text.highlight_regex(pattern, style)
        indent = " " * min(len(clock), 8)
        parts = text.wrap(self._console, max(20, width - len(indent) - 2))
        heads = [Text(clock, "dim"), *(Text(f"{indent}  ") for _ in parts[1:])]
        return [
            self._render_text(Text.assemble(head, part))
            for head, part in zip(heads, parts, strict=True)
        ]

    def _render_text(self, text: Text) -> str:
        with self._console.capture() as captured:
            self._console.print(text, end="", soft_wrap=True, markup=False, emoji=False)
        shown = captured.get()
        return shown if self._is_utf else to_ascii(shown)

    def _write(self, text: str) -> None:
        with suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
