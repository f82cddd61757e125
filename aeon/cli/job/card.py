"""The end of a run as a card on a terminal: the verdict, scores, cost, open points, the folder, the
next command."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from aeon.cli.progress.view import SCORES
from aeon.domain.result import RunResult
from aeon.observability.artefacts import ANSWER
from aeon.report import ending
from aeon.report.bought import describe_bought
from aeon.report.diagnosis.next_commands import find_next_commands
from aeon.report.words import STATES, format_clock, is_utf, relative_to_here, round_down, to_ascii

_SIGNS = {
    "good": (STATES["complete"], "green"),
    "warn": (STATES["blocked"], "yellow"),
    "bad": (STATES["failed"], "red"),
}
_STYLES = {
    "missing tool": "yellow",
    "server down": "yellow",
    "lost review": "yellow",
    "lost comparison": "yellow",
    "error": "red",
    "blocked": "yellow",
    "failed": "red",
    "invalid": "red",
    "question": "cyan",
}


def card(result: RunResult, directory: Path) -> str:
    """Return the card as text with codes for the terminal on standard error; without colour under
    NO_COLOR. Paths and commands are not broken into lines, so that they can be copied."""
    terminal = Console(stderr=True)
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=terminal.width, highlight=False)
    sign, style = _SIGNS[ending.tone(result)]
    clock = format_clock(timedelta(seconds=result.timings.total_seconds))
    title = (
        f"{sign} "
        f"{ending.headline(result).rstrip('.')}{'' if ending.is_replay(result) else f'  {clock}'}"
    )
    console.print(Rule(style=style), Text(title, f"bold {style}"), _facts(result))
    paths = {
        "answer": relative_to_here(directory / ANSWER) if result.answer else None,
        "page": ending.find_page(directory),
        "folder": relative_to_here(directory),
    }
    lines = [
        Text.assemble((f"  {name:<12} ", "dim"), str(path)) for name, path in paths.items() if path
    ]
    for purpose, command in find_next_commands(result, directory):
        lines += [Text(f"  {purpose}:", "dim"), Text(f"    {command}", "bold")]
    for line in lines:
        console.print(line, soft_wrap=True)
    console.print(Rule(style=style))
    drawn = "\n".join(line.rstrip(" ") for line in file.getvalue().splitlines())
    return drawn if is_utf(terminal.encoding) else to_ascii(drawn)


def _facts(result: RunResult) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True, style="dim", min_width=14)
    table.add_column(overflow="fold")
    rows = (
        [("error", f"{result.error.message}\n{result.error.hint}".strip())] if result.error else []
    )
    for name, score, bar in ending.scores(result):
        style = "bold green" if score >= bar else "bold yellow"
        remark = f" ({ending.describe_threshold(result, name, bar)})"
        shown = Text.assemble((f"{round_down(score):.2f}", style), (remark, "dim"))
        table.add_row(f"  {name}", shown)
    rows += [("spent", ending.describe_spent(result))]
    if result.bought and result.bought.later_passes:
        rows.append(("bought", describe_bought(result.bought)))
    rows += [point for point in ending.open_points(result) if point[0] not in SCORES]
    for name, text in rows:
        table.add_row(f"  {name}", Text(text, _STYLES.get(name, "")))
    return table
