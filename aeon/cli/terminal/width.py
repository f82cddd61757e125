"""Text and tables that fit the terminal, and are whole in a pipe or a file."""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from itertools import groupby

from aeon.cli.terminal.streams import stdout

_WIDEST = 100
_LEAST_TEXT = 24
_HANGING = "    "
_ROW = re.compile(r"(?P<head> +\S.*? {2,})(?P<text>\S.*)")


def terminal_width() -> int | None:
    """Return the columns of the terminal at standard output; None where it is not a terminal."""
    stream = stdout()
    if stream is None or not stream.isatty():
        return None
    return shutil.get_terminal_size().columns


def fit_rows(rows: str, hanging: int) -> str:
    """Wrap lines of a table on a terminal: the rest of a long line continues below, after `hanging`
    blanks."""
    width = terminal_width()
    if width is None:
        return rows
    return "\n".join(_wrap(row, width, " " * hanging) for row in rows.split("\n"))


def fit_text(text: str) -> str:
    """Wrap the paragraphs of a text to the terminal, at most 100 columns. In an indented line with
    two blanks within, `  term  text`, the text stays in its column; other indented lines, such as
    commands, are not changed."""
    return "\n".join(_fit_lines(text.splitlines(), _width_for_reading()))


def fit_line(text: str, hanging: int) -> str:
    """Wrap a line to the terminal: the rest continues below, after `hanging` blanks."""
    return _wrap(text, _width_for_reading(), " " * hanging)


def _width_for_reading() -> int:
    # Longer lines are hard to read.
    return min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST)


def _fit_lines(lines: Iterable[str], width: int) -> Iterator[str]:
    for is_prose, block in groupby(lines, lambda line: bool(line) and not line.startswith(" ")):
        if is_prose:
            yield _wrap(" ".join(block), width, "")
        else:
            yield from (_fit_indented(line, width) for line in block)


def _fit_indented(line: str, width: int) -> str:
    row = _ROW.fullmatch(line)
    if row is None:
        return line
    hanging = " " * len(row["head"])
    return _wrap(line, width, hanging if width - len(hanging) >= _LEAST_TEXT else 2 * _HANGING)


def _wrap(text: str, width: int, hanging: str) -> str:
    if len(text) <= width:
        return text
    indent = hanging if width - len(hanging) >= _LEAST_TEXT else _HANGING
    return textwrap.fill(
        text, max(width, _LEAST_TEXT), subsequent_indent=indent, break_on_hyphens=False
    )
