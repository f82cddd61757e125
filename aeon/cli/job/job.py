"""The one job of a command line: its run, its answer on standard output, and its exit status."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from aeon.app.aeon import Aeon
from aeon.app.attendance import Attendance
from aeon.app.run import Run, RunPlace
from aeon.cli.job.attendance import attend_run
from aeon.cli.job.directory import claim_run_directory
from aeon.cli.terminal.output import write_answer
from aeon.cli.terminal.status import FAILED, INTERRUPTED, run_guarded
from aeon.cli.terminal.streams import report, say, warn
from aeon.config.compose.composed import Composed
from aeon.domain.errors import ArtefactError
from aeon.domain.result import RunResult
from aeon.files.secret_forms import mask_files
from aeon.report.ending import resume_command
from aeon.report.words import one_line

# Reported even when no progress is shown (Sprint 1 FR-071 to FR-073).
TOOL_WARNINGS = ("unknown_tool", "repaired_step", "fallback_step")


def run_one(aeon: Aeon, run: Run, whole: Composed) -> int:
    """Run the job of a composed configuration in its own directory, and return the exit status."""
    directory = claim_run_directory(whole, run)
    # For a job that raises, Hydra prints all overrides, the task too.
    return whole.run_job(directory, lambda: run_guarded(lambda: run_job(aeon, run, directory)))


def run_job(aeon: Aeon, run: Run, directory: Path, of_multirun: Path | None = None) -> int:
    """Carry out the run of a job with its artefacts in `directory`; print the answer, and its end
    on standard error. `of_multirun` is the folder of its multirun, whose jobs share a store."""
    if os.environ.get("HYDRA_FULL_ERROR"):
        logging.getLogger("aeon").setLevel(logging.DEBUG)  # with tracebacks of defects inside a run
    settings = aeon.settings
    mask_files(directory / ".hydra", "*.yaml")
    # Shown once the picture is gone, so that they stay on the screen.
    warnings: list[str] = []
    warn(*aeon.warnings)
    attending = attend_run(settings, directory, resume_command(directory), warn=warnings.append)
    with aeon, attending as (attendance, progress):
        place = RunPlace(directory=directory, of_multirun=of_multirun)
        result, unwritten = carry_out(run, attendance, place)
    if settings.progress.kind == "none":
        warnings += _tool_warnings(result)
    warn(*warnings)
    try:
        write_answer(result, settings.output, markdown=settings.answer.json_schema is None)
    except ArtefactError as error:
        unwritten.append(error)
    if progress.live:
        from aeon.cli.job.card import card as ending  # slow to load
    else:
        from aeon.cli.terminal.lines import ending
    say(ending(result, directory))
    report(*unwritten)
    # The terminal may be gone, so that nothing can be printed.
    was_stopped = result.exit_status == INTERRUPTED
    return FAILED if unwritten and not was_stopped else result.exit_status


def carry_out(
    run: Run, attendance: Attendance, place: RunPlace
) -> tuple[RunResult, list[ArtefactError]]:
    """Return the result of a run, and the errors of writing its artefacts, if any. Raises
    ArtefactError where that left no result."""
    try:
        return run.to_end(attendance, place), []
    except ArtefactError as error:
        if error.result is None:
            raise
        return error.result, [error]


def _tool_warnings(result: RunResult) -> list[str]:
    kept = [advisory for advisory in result.advisories if advisory.kind in TOOL_WARNINGS]
    return [one_line(advisory.message) for advisory in kept]
