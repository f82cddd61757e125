"""Figures of a comparison as text, and the whole comparison as CSV and JSON."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import asdict
from io import StringIO
from pathlib import Path

from aeon.domain.values import JsonObject
from aeon.observability.artefacts import replace_file
from aeon.report.compare.divergence import Divergence
from aeon.report.compare.rows import FIGURES, SCORES, ComparedRun, Comparison, show
from aeon.report.words import escape_controls, round_down


def format_figure(name: str, value: float | None, *, is_mean: bool = False) -> str:
    """Format a figure for people; a score is never rounded up to a threshold that it does not
    reach."""
    if value is None:
        return "-"
    if name in SCORES:
        return f"{round_down(value):.2f}"
    small = {
        "cost": 4,
        "seconds": 2 if value < 10 else 1,
        "passes": int(is_mean),
        "calls": int(is_mean),
    }
    return f"{value:,.{small.get(name, 0)}f}"


COLUMNS_OF_RUNS = {"run": "name", "cause": "cause", "error": "error", "directory": "directory"}
COLUMNS_OF_JOBS = {"job": "number", "exit": "status", "directory": "directory"}
"""The columns of a table before and after the parameters and figures, and the attributes of `Run`
in them."""


def csv_text(comparison: Comparison, columns: Mapping[str, str] = COLUMNS_OF_RUNS) -> str:
    """Return the comparison as CSV: a line for each run, exact values. The first of the `columns`
    begins each line, the others end it."""
    text = StringIO(newline="")
    keys = comparison.parameters
    writer = csv.writer(text)
    first, *last = columns
    writer.writerow([first, *keys, "ended", "converged", "checks", *FIGURES, *last])
    for run in comparison.runs:
        converged = "" if run.converged is None else str(run.converged).lower()
        values = [show(run.parameters.get(key)) for key in keys]
        figures = [run.figures[name] for name in FIGURES]
        name, *end = (getattr(run, attribute) for attribute in columns.values())
        row: list[object] = [name, *values, run.ended, converged, run.checks, *figures, *end]
        writer.writerow(escape_controls(cell) if isinstance(cell, str) else cell for cell in row)
    return text.getvalue()


def write_csv(
    comparison: Comparison, path: Path, columns: Mapping[str, str] = COLUMNS_OF_RUNS
) -> None:
    """Write the comparison as CSV. Raises ArtefactError."""
    replace_file(path, csv_text(comparison, columns).encode("utf-8", "backslashreplace"))


def json_text(comparison: Comparison, divergence: Divergence | None = None) -> str:
    """Return the comparison as JSON; the lines of differences begin with their marks."""
    runs = [
        {**asdict(run), "directory": str(run.directory) if run.directory else None}
        for run in comparison.runs
    ]
    whole: JsonObject = {"parameters": comparison.parameters, "runs": runs}
    if divergence is not None:
        texts = {
            name: [line.mark + "".join(text for _, text in line.parts) for line in lines]
            for name, lines in divergence.differences.items()
        }
        whole["divergence"] = {**asdict(divergence), "differences": texts}
    return json.dumps(whole)


def format_change(name: str, first: ComparedRun, second: ComparedRun) -> str:
    """Format the difference of a figure between the second run and the first."""
    before = first.figures[name]
    after = second.figures[name]
    if before is None or after is None:
        return ""
    if before == after:
        return "same"
    sign = "+" if after > before else "-"
    change = f"{sign}{format_figure(name, abs(after - before))}"
    if not before or name in SCORES:
        return change
    return f"{change} ({(after - before) / before:+.0%})"
