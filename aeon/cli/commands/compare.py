"""`aeon compare RUN RUN ...`: runs side by side, as a table, a page and CSV; `aeon baseline RUN`: a
run against one direct call."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from aeon.app.baseline import require_answer
from aeon.cli.job.arguments import read_composition
from aeon.cli.job.attendance import attend_run
from aeon.cli.job.prepare import prepare_job
from aeon.cli.terminal.output import open_page
from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.cli.terminal.status import DONE, FAILED, INTERRUPTED
from aeon.cli.terminal.streams import put, say, warn
from aeon.cli.terminal.width import terminal_width
from aeon.config.load import compose_settings
from aeon.domain.errors import ArtefactError, ConfigError
from aeon.observability import artefacts
from aeon.report.compare.divergence import find_divergence
from aeon.report.compare.forms import csv_text, json_text
from aeon.report.compare.rows import compare_runs
from aeon.report.ending import describe_baseline
from aeon.report.page.build import write_report
from aeon.report.words import count_noun, relative_to_here


def compare(given: Namespace) -> int:
    """Print the runs side by side and write `compare.html` and `compare.csv`; with `output=json` or
    `output=csv` print that and write nothing. Raises ConfigError for paths without two runs,
    ArtefactError for files that cannot be written."""
    paths: list[Path] = given.run
    _check(paths)
    comparison = compare_runs(paths)
    if len(comparison.runs) < 2:
        found = f"{count_noun(len(comparison.runs), 'run')} found, two are needed"
        hint = "`aeon compare RUN RUN`, or name a folder that contains runs, such as a multirun's"
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
    if given.open:
        open_page(page)
    return DONE


def _check(paths: Sequence[Path]) -> None:
    if not paths:
        raise ConfigError("which runs?", hint="`aeon compare RUN RUN`, or `aeon compare MULTIRUN`")
    for path in paths:
        if not path.is_dir():
            hint = "Runs are under outputs/ and multirun/."
            raise ConfigError(f"{path}: there is no such folder", hint=hint)


def baseline(given: Namespace) -> int:
    """Compare the answer of a finished run with that of one direct call, and add both to its result
    and its page. Raises ConfigError for a run without an answer, ArtefactError."""
    given.overrides = [f"resume={given.run}", *given.overrides]
    composition = read_composition(given)
    settings = compose_settings(composition)
    try:
        result = artefacts.load(given.run)
    except ArtefactError as error:
        raise ConfigError(error.message, hint=error.hint) from error
    require_answer(result, settings)
    aeon, run = prepare_job(settings, composition)
    with aeon, attend_run(aeon.settings) as (attendance, _):
        warn(*aeon.warnings)
        report = run.measure_baseline(result, attendance, given.run, aeon.settings.limits)
    if attendance.control.stop_requested:
        return INTERRUPTED
    if report.outcome == "unknown":
        say(f"{describe_baseline(report)}: {' '.join(report.explanations) or report.folder}")
        return FAILED
    result = result.model_copy(update={"baseline": report})
    artefacts.write(result, given.run)
    write_report(given.run, result)
    sentence = describe_baseline(report)
    put(f"{sentence[0].upper()}{sentence[1:]}.")
    put("\n".join(f"  {words}" for words in report.explanations))
    return DONE
