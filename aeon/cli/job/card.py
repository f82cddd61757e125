"""How a run ended, as a card on a terminal: the verdict, scores, cost, what is open, the folder, the next command."""

from __future__ import annotations

import math
from datetime import timedelta
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from aeon.app.artefacts import ANSWER
from aeon.app.directory import relative_to_here
from aeon.cli.job import ending
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.glyphs import STATES, is_utf, to_ascii
from aeon.cli.terminal.text import format_clock, round_down
from aeon.domain.result import RunResult

_STYLES = {"blocked": "yellow", "failed": "red", "invalid": "red", "question": "cyan"}


def heading(text: str) -> str:
    """A line across the terminal with a text in it."""
    return _draw(Rule(Text(text, "bold"), align="left", style="dim"))


def card(result: RunResult, directory: Path) -> str:
    """The card as text with the codes of the terminal on standard error; without colour under NO_COLOR.

    Paths and commands are not broken into lines, so that they can be copied.
    """
    good = result.exit_status == 0
    style = "green" if good else "yellow"
    seconds = timedelta(seconds=result.timings.total_seconds)
    lasted = "" if ending.is_replay(result) else f"  {format_clock(seconds)}"
    title = f"{STATES['complete' if good else 'blocked']} {ending.verdict(result).rstrip('.')}{lasted}"
    lines = [Text.assemble((f"  {'folder':<12} ", "dim"), str(relative_to_here(directory)))]
    if result.answer:
        lines.insert(0, Text.assemble((f"  {'answer':<12} ", "dim"), str(relative_to_here(directory / ANSWER))))
    for purpose, command in ending.next_commands(result, directory) or _onward(result, directory):
        lines += [Text(f"  {purpose}:", "dim"), Text(f"    {command}", "bold")]
    return _draw(Rule(style=style), Text(title, f"bold {style}"), _facts(result), *lines, Rule(style=style))


def _draw(*parts: Rule | Text | Table) -> str:
    """The parts as they are drawn on the terminal at standard error; a text is never broken into lines."""
    terminal, file = Console(stderr=True), StringIO()
    console = Console(file=file, force_terminal=True, width=terminal.width, highlight=False)
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text))
    drawn = "\n".join(line.rstrip(" ") for line in file.getvalue().splitlines())
    return drawn if is_utf(terminal.encoding) else to_ascii(drawn)


def _facts(result: RunResult) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=14)
    table.add_column(overflow="fold")
    if result.error:
        table.add_row("  error", Text(f"{result.error.message}\n{result.error.hint}".strip(), "red"))
    for name, score, bar in ending.scores_with_bars(result):
        style = "bold green" if score >= bar else "bold yellow"
        table.add_row(f"  {name}", Text.assemble((f"{round_down(score):.2f}", style), (f" of {bar:.2f}", "dim")))
    table.add_row("  spent", Text(ending.describe_spent(result)))
    for name, text in ending.open_points(result):
        if name not in SCORES:
            table.add_row(f"  {name}", Text(text, _STYLES.get(name, "")))
    return table


def _onward(result: RunResult, directory: Path) -> ending.Points:
    """What can be done next where nothing needs to be."""
    if ending.is_replay(result):
        return [("A recording has no more answers; for a run of your own", 'python -m aeon task="..."')]
    if not ending.is_resumable(result) or result.termination_reason == "completed":
        return []
    higher = math.ceil(50 * (1 + result.configuration["convergence"]["completeness"])) / 100
    command = f"{ending.resume_command(directory)} convergence.completeness={higher:g}"
    return [("To ask for more, from these answers on", command)]
