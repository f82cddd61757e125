"""`aeon compare RUN RUN ...`: runs beside each other, as a table, a page and CSV."""

from __future__ import annotations

import webbrowser
from collections.abc import Sequence
from pathlib import Path

from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, say, stdout
from aeon.domain.errors import ConfigError
from aeon.report.compare.divergence import find_divergence
from aeon.report.compare.forms import csv_text, json_text
from aeon.report.compare.rows import compare_runs
from aeon.report.words import count_noun, relative_to_here


def compare(arguments: Sequence[str]) -> int:
    """Print the runs beside each other and write `compare.html` and `compare.csv`; with `output=json` or `output=csv`
    print that and write nothing. Raises ConfigError for what holds no two runs, ArtefactError for what cannot be
    written."""
    options = {
        key: value
        for key, _, value in (text.partition("=") for text in arguments)
        if key in ("output", "out")
    }
    paths = [
        Path(text)
        for text in arguments
        if text.partition("=")[0] not in options and text != "--open"
    ]
    _check(paths, options)
    comparison = compare_runs(paths)
    if len(comparison.runs) < 2:
        raise ConfigError(
            f"{' '.join(map(str, paths))}: {count_noun(len(comparison.runs), 'run')} found, two are needed",
            hint="`aeon compare RUN RUN`, or a folder with runs under it, such as a multirun's",
        )
    divergence = find_divergence(comparison)
    if options.get("output", "table") != "table":
        put(
            csv_text(comparison)
            if options["output"] == "csv"
            else json_text(comparison, divergence)
        )
        return DONE
    put(draw_comparison(comparison, divergence, is_terminal=_is_terminal()))
    from aeon.report.compare.page import write_comparison  # slow to load

    folder = Path(options.get("out", paths[0] if len(paths) == 1 else ""))
    page = write_comparison(comparison, folder, divergence)
    say(str(relative_to_here(page)))
    if "--open" in arguments and not webbrowser.open(page.absolute().as_uri()):
        say(f"No browser was found. Open it yourself: {page.absolute().as_uri()}")
    return DONE


def _check(paths: Sequence[Path], options: dict[str, str]) -> None:
    if not paths:
        raise ConfigError("which runs?", hint="`aeon compare RUN RUN`, or `aeon compare MULTIRUN`")
    if options.get("output", "table") not in ("table", "json", "csv"):
        raise ConfigError(f"output={options['output']}: there are table, json, csv")
    for path in paths:
        if not path.is_dir():
            hint = (
                "There are the options out=DIR, output=json|csv and --open."
                if str(path).startswith("-")
                else ""
            )
            raise ConfigError(
                f"{path}: there is no such folder",
                hint=hint or "Runs are under outputs/ and multirun/.",
            )


def _is_terminal() -> bool:
    stream = stdout()
    return stream is not None and stream.isatty()
