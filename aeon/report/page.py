"""A run as one page, `report.html`: how it ended and why, its scores, plans, calls and issues."""

from __future__ import annotations

from pathlib import Path

from aeon.domain.result import RunResult
from aeon.observability.artefacts import replace_file
from aeon.report.ending import describe_spent, next_commands, verdict
from aeon.report.html import render_page
from aeon.report.record import Record, load_record

REPORT = "report.html"
"""The file in a run's directory."""


def write_report(directory: Path, result: RunResult | None = None, to: Path | None = None) -> Path:
    """Write the page of a run's directory into it, or to the file `to`; `result` is what the run gave, if at hand.
    Raises ArtefactError for a directory that cannot be read and a file that cannot be written."""
    path = to or directory / REPORT
    replace_file(path, draw_report(load_record(directory, result)))
    return path


def draw_report(record: Record) -> bytes:
    """The page of a run."""
    result = record.result
    return render_page(
        "report",
        {"calls": []},
        result=result,
        verdict=verdict(result),
        spent=describe_spent(result),
        ways=next_commands(result, record.directory),
        patterns=None,
    )
