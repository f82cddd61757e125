"""`aeon compare RUN RUN ...`: runs beside each other, as a table, a page and CSV."""

from __future__ import annotations

import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say
from aeon.cli.terminal.width import terminal_width
from aeon.domain.errors import ConfigError
from aeon.report.compare.divergence import find_divergence
from aeon.report.compare.forms import csv_text, json_text
from aeon.report.compare.rows import compare_runs
from aeon.report.words import count_noun, relative_to_here


def compare(given: Namespace) -> int:
    """Print the runs beside each other and write `compare.html` and `compare.csv`; with
    `output=json` or `output=csv` print that and write nothing. Raises ConfigError for what holds no
    two runs, ArtefactError for what cannot be written."""
    paths: list[Path] = given.run
    _check(paths)
    comparison = compare_runs(paths)
    if len(comparison.runs) < 2:
        found = f"{count_noun(len(comparison.runs), 'run')} found, two are needed"
        hint = "`aeon compare RUN RUN`, or a folder with runs under it, such as a multirun's"
        raise ConfigError(f"{' '.join(map(str, paths))}: {found}", hint=hint)
    if given.output == "csv":
        put(csv_text(comparison))
        return DONE
    divergence = find_divergence(comparison)
    if given.output == "json":
        put(json_text(comparison, divergence))
        return DONE
    put(draw_comparison(comparison, divergence, terminal_width()))
    from aeon.report.compare.page import write_comparison  # slow to load

    folder = given.out or (paths[0] if len(paths) == 1 else Path())
    page = write_comparison(comparison, folder, divergence)
    say(str(relative_to_here(page)))
    if given.open and not webbrowser.open(page.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {page.absolute().as_uri()}")
    return DONE


def _check(paths: Sequence[Path]) -> None:
    if not paths:
        raise ConfigError("which runs?", hint="`aeon compare RUN RUN`, or `aeon compare MULTIRUN`")
    for path in paths:
        if not path.is_dir():
            hint = "Runs are under outputs/ and multirun/."
            raise ConfigError(f"{path}: there is no such folder", hint=hint)
