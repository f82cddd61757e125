"""How a run ended, as a card on a terminal: the verdict, scores, cost, what is open, the folder, the next command."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from aeon.app.artefacts import ANSWER
from aeon.app.directory import relative_to_here
from aeon.cli.job.ending import describe_saved, describe_spent, verdict
from aeon.cli.job.forward import is_replay, next_commands, onward, open_points, scores_with_bars
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.glyphs import STATES, is_utf, to_ascii
from aeon.cli.terminal.text import format_clock, round_down
from aeon.domain.result import RunResult

_OPEN = {"blocked": "yellow", "failed": "red", "invalid": "red", "question": "cyan"}


def heading(text: str) -> str:
    """A line across the terminal with a text in it."""
    drawing = _Drawing()
    drawing.rule(Text(text, "bold"), "dim")
    return drawing.text()


def card(result: RunResult, directory: Path) -> str:
    """The card as text with the codes of the terminal on standard error; without colour under NO_COLOR.

    Paths and commands are not broken into lines, so that they can be copied.
    """
    drawing, good = _Drawing(), result.exit_status == 0
    style = "green" if good else "yellow"
    drawing.rule(Text(f"{STATES['complete' if good else 'blocked']} {_title(result)}", f"bold {style}"), style)
    drawing.console.print(_facts(result))
    paths = {"answer": relative_to_here(directory / ANSWER)} if result.answer else {}
    for name, path in {**paths, "folder": relative_to_here(directory)}.items():
        drawing.line(Text.assemble((f"  {name:<12} ", "dim"), str(path)))
    for purpose, command in next_commands(result, directory) or onward(result, directory):
        drawing.line(Text(f"  {purpose}:", "dim"))
        drawing.line(Text(f"    {command}", "bold"))
    drawing.rule(Text(""), style)
    return drawing.text()


class _Drawing:
    """Text drawn for the terminal at standard error."""

    def __init__(self) -> None:
        self._file, self._terminal = StringIO(), Console(stderr=True)
        self.console = Console(file=self._file, force_terminal=True, width=self._terminal.width, highlight=False)

    def text(self) -> str:
        drawn = "\n".join(line.rstrip(" ") for line in self._file.getvalue().splitlines())
        return drawn if is_utf(self._terminal.encoding) else to_ascii(drawn)

    def rule(self, title: Text, style: str) -> None:
        """A line across, with a title in it, or below it where that is too long."""
        if title.cell_len > self.console.width - 6:
            self.rule(Text(""), style)
            self.console.print(title)
        else:
            self.console.print(Rule(title, align="left", style=style))

    def line(self, text: Text) -> None:
        """A line that the terminal may break, but that is one when it is copied."""
        self.console.print(text, soft_wrap=True)


def _title(result: RunResult) -> str:
    lasted = "" if is_replay(result) else f"  {format_clock(timedelta(seconds=result.timings.total_seconds))}"
    return f"{verdict(result).rstrip('.')}{lasted}"


def _facts(result: RunResult) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=14)
    table.add_column(overflow="fold")
    if result.error:
        table.add_row("  error", Text(f"{result.error.message}\n{result.error.hint}".strip(), "red"))
    for name, score, bar in scores_with_bars(result):
        style = "bold green" if score >= bar else "bold yellow"
        table.add_row(f"  {name}", Text.assemble((f"{round_down(score):.2f}", style), (f" of {bar:.2f}", "dim")))
    table.add_row("  spent", Text(f"{describe_spent(result)}{describe_saved(result)}"))
    for name, text in open_points(result):
        if name not in SCORES:
            table.add_row(f"  {name}", Text(text, _OPEN.get(name, "")))
    return table
