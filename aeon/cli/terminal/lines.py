"""The end of a run as lines: the verdict, open points, the folder, the next commands."""

from __future__ import annotations

from pathlib import Path

from aeon.domain.result import RunResult
from aeon.report.bought import describe_bought
from aeon.report.diagnosis.next_commands import find_next_commands
from aeon.report.ending import describe_spent, find_page, headline, open_points


def ending(result: RunResult, directory: Path, *, ways: bool = True) -> str:
    """Describe the error, how the run ended, the places of its artefacts and its page, what later
    passes bought, open points, and, with `ways`, each command that would help."""
    error = [f"Error: {result.error.message}", result.error.hint] if result.error else []
    line = f"{headline(result)} {describe_spent(result)} Artefacts: {directory}"
    page = find_page(directory)
    pages = [f"Page: {page}"] if page else []
    has_later = result.bought is not None and result.bought.later_passes
    bought = [f"  bought: {describe_bought(result.bought)}"] if has_later else []
    points = [f"  {name}: {text}" for name, text in open_points(result)]
    commands = [
        f"{purpose}: {command}"
        for purpose, command in (find_next_commands(result, directory) if ways else ())
    ]
    return "\n".join((*filter(None, error), line, *pages, *bought, *points, *commands))
