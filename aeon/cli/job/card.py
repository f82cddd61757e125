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
from aeon.app.directory import shown
from aeon.cli.job.ending import figures, is_replay, saved, verdict
from aeon.cli.job.forward import next_commands, onward, open_points
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.glyphs import glyphs
from aeon.cli.terminal.text import clock, rounded_down
from aeon.domain.result import RunResult

_OPEN = {"blocked": "yellow", "failed": "red", "invalid": "red", "question": "cyan"}


def heading(text: str) -> str:
    """A line across the terminal with a text in it."""
    drawing = _Drawing()
    drawing.rule(Text(text, "bold"), "dim")
    return drawing.text


def card(result: RunResult, directory: Path) -> str:
    """The card as text with the codes of the terminal on standard error; without colour under NO_COLOR.

    Paths and commands are not broken into lines, so that they can be copied.
    """
    drawing, good = _Drawing(), result.exit_status == 0
    style = "green" if good else "yellow"
    sign = drawing.signs.states["complete" if good else "blocked"]
    drawing.rule(Text(f"{sign} {_title(result)}", f"bold {style}"), style)
    drawing.console.print(_facts(result))
    for name, path in _paths(result, directory):
        drawing.line(Text.assemble((f"  {name:<12} ", "dim"), str(path)))
    for purpose, command in next_commands(result, directory) or onward(result, directory):
        drawing.line(Text(f"  {purpose}:", "dim"))
        drawing.line(Text(f"    {command}", "bold"))
    drawing.rule(Text(""), style)
    return drawing.text


class _Drawing:
    """What will be shown on the terminal at standard error, drawn as text."""

    def __init__(self) -> None:
        self._file = StringIO()
        terminal = Console(stderr=True)
        self.signs = glyphs(terminal.encoding)
        self.console = Console(file=self._file, force_terminal=True, width=terminal.width, highlight=False)

    @property
    def text(self) -> str:
        """What was drawn."""
        return "\n".join(line.rstrip(" ") for line in self._file.getvalue().splitlines())

    def rule(self, title: Text, style: str) -> None:
        """A line across, with a title in it, or below it where that is too long."""
        if title.cell_len > self.console.width - 6:
            self.rule(Text(""), style)
            self.console.print(title)
            return
        self.console.print(Rule(title, align="left", style=style, characters=self.signs.empty))

    def line(self, text: Text) -> None:
        """A line that the terminal may break, but that is one when it is copied."""
        self.console.print(text, soft_wrap=True)


def _title(result: RunResult) -> str:
    lasted = "" if is_replay(result) else f"  {clock(timedelta(seconds=result.timings.total_seconds))}"
    return f"{verdict(result).rstrip('.')}{lasted}"


def _facts(result: RunResult) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=14)
    table.add_column(overflow="fold")
    if result.error:
        table.add_row("  error", Text(f"{result.error.message}\n{result.error.hint}".strip(), "red"))
    for name, score in _scores(result):
        table.add_row(f"  {name}", score)
    table.add_row("  spent", Text(f"{figures(result)}{saved(result)}"))
    for name, text in open_points(result):
        if name not in SCORES:
            table.add_row(f"  {name}", Text(text, _OPEN.get(name, "")))
    return table


def _scores(result: RunResult) -> list[tuple[str, Text]]:
    given = [(name, result.scores[f"{name}_score"]) for name in SCORES] if result.scores else []
    bars = result.configuration["convergence"]
    return [(name, _score(score, bars[name])) for name, score in given if score is not None]


def _score(score: float, bar: float) -> Text:
    style = "bold green" if score >= bar else "bold yellow"
    return Text.assemble((f"{rounded_down(score):.2f}", style), (f" of {bar:.2f}", "dim"))


def _paths(result: RunResult, directory: Path) -> list[tuple[str, Path]]:
    answer = [("answer", shown(directory / ANSWER))] if result.answer else []
    return [*answer, ("folder", shown(directory))]
