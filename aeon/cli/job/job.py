"""The one job or the several jobs of a command line: their runs, answers on standard output, and exit statuses."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from aeon.app.aeon import Aeon
from aeon.app.directory import claim_run_directory, claim_sweep_directory
from aeon.app.run import Run
from aeon.cli.job.attendance import attend
from aeon.cli.job.multirun import read_jobs, summary, worst, write_csv, write_status
from aeon.cli.job.prepare import composition_of, prepare_job
from aeon.cli.terminal.output import write_answer
from aeon.cli.terminal.status import FAILED, INTERRUPTED, run_guarded
from aeon.cli.terminal.streams import own_streams, report, say, warn
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.literal import Composition, quote
from aeon.config.compose.problems import composition_error
from aeon.domain.errors import ArtefactError
from aeon.report.ending import resume_command
from aeon.report.words import one_line

# Reported even when no progress is shown (Sprint 1 FR-071 to FR-073).
TOOL_WARNINGS = ("unknown_tool", "repaired_step", "fallback_step")


def run_one(aeon: Aeon, run: Run, whole: DictConfig, config_name: str) -> int:
    """Run the job of a composed configuration in a directory of its own; the exit status."""
    directory = claim_run_directory(whole, run)

    def carry_out(_: DictConfig) -> int:
        # Hydra prints the overrides, task and all, for a job that raises.
        return run_guarded(lambda: run_job(aeon, run, directory))

    with _hydra_errors():
        return int(hydra_private.run_composed(whole, config_name, directory, carry_out))


def run_several(given: Composition, whole: DictConfig, added: frozenset[str]) -> int:
    """Run the jobs of a multirun; `added` are the keys that its configuration did not have. The exit status."""
    planned = hydra_private.sweep_jobs(given, whole)
    for overrides in planned:
        job, more = config_compose.compose(given.with_overrides(overrides))
        prepare_job(job)[0].close()
        added |= more
    directory = claim_sweep_directory(whole)
    overrides = config_compose.add_unknown_keys(given.overrides, added)
    overrides += [f"hydra.sweep.dir={quote(str(directory))}", "hydra.mode=MULTIRUN"]
    status = None
    try:
        with _hydra_errors():
            hydra_private.start_multirun(given.with_overrides(overrides), sweep_job)
    except KeyboardInterrupt:
        status = INTERRUPTED
    jobs = read_jobs(directory, planned)
    status = status or worst(jobs)
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    say(f"\n{summary(jobs, status, width)}")
    write_csv(jobs, directory)
    from aeon.report.compare.page import compare_jobs  # only for multiruns

    compare_jobs(directory, say, warn)
    return status


def sweep_job(cfg: DictConfig) -> int:
    """Announce, prepare and run one job of a multirun, perhaps in a process of its own, and write its exit status. Does
    not raise, so that every job gets its turn; only an interruption ends the multirun."""
    hydra = HydraConfig.get()
    of, directory, multirun = composition_of(hydra), Path(hydra.runtime.output_dir), Path(hydra.sweep.dir).absolute()

    def run() -> int:
        job = prepare_job(config_compose.with_fallbacks(cfg, of), of)
        return run_job(*job, directory, multirun)

    with own_streams():
        told = (text for text in of.overrides if not text.startswith("task="))
        say(f"job {hydra.job.num}  {one_line(' '.join(told), 200)}")
        status = run_guarded(run)
    write_status(directory, status)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return status


def run_job(aeon: Aeon, run: Run, directory: Path, of_multirun: Path | None = None) -> int:
    """Carry out the run of a job with its artefacts in `directory`; prints the answer, and on standard error how it
    ended. `of_multirun` is the folder of its multirun, whose jobs share a store."""
    if os.environ.get("HYDRA_FULL_ERROR"):
        logging.getLogger("aeon").setLevel(logging.DEBUG)  # with tracebacks of defects inside a run
    settings, warnings, unwritten = aeon.settings, list[str](), list[ArtefactError]()
    warn(*aeon.warnings)
    attending = attend(settings, directory, resume_command(directory), warn=warnings.append, of_multirun=of_multirun)
    with aeon, attending as (around, progress):
        try:
            result = run.to_end(around)
        except ArtefactError as error:
            if error.result is None:
                raise
            result = error.result
            unwritten.append(error)
    if settings.progress.kind == "none":
        warnings += [one_line(advisory.message) for advisory in result.advisories if advisory.kind in TOOL_WARNINGS]
    warn(*warnings)
    try:
        write_answer(result, settings.output, markdown=settings.answer.json_schema is None)
    except ArtefactError as error:
        unwritten.append(error)
    if progress.live:
        from aeon.cli.job.card import card as ending  # slow to load
    else:
        from aeon.report.ending import ending
    say(ending(result, directory))
    report(*unwritten)
    return FAILED if unwritten else result.exit_status


@contextmanager
def _hydra_errors() -> Iterator[None]:
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise composition_error(error) from error
