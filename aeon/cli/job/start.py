"""Starts the one job or the several jobs of a command line, once their configuration has been checked."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from aeon.app.directory import claim_run_directory, claim_sweep_directory
from aeon.cli.job.arguments import Arguments
from aeon.cli.job.job import prepare_job, run_job, sweep_job
from aeon.cli.job.material import Material
from aeon.cli.job.multirun import Job, read_jobs, summary, swept_keys, write_csv
from aeon.cli.terminal.status import INTERRUPTED, read_statuses, run_guarded, worst
from aeon.cli.terminal.stderr import report, say
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.literal import quote
from aeon.config.compose.problems import composition_error
from aeon.domain.errors import ArtefactError
from aeon.files.writing import unwritable_error


def run_one(given: Arguments, whole: DictConfig, material: Material) -> int:
    """Run the task of a composed configuration whose `material` was read already; the exit status."""
    job = prepare_job(whole, whole.hydra, material)
    run = job.aeon.prepared_run(job.task, inputs=job.inputs)
    directory = claim_run_directory(whole, run)

    def carry_out(_: DictConfig) -> int:
        # Hydra prints the overrides, task and all, for a job that raises.
        return run_guarded(lambda: run_job(job, run, directory))

    with _hydra_errors(directory):
        return int(hydra_private.run_composed(whole, given.config_name, directory, carry_out))


def run_several(given: Arguments, whole: DictConfig, added: frozenset[str]) -> int:
    """Run the jobs of a multirun; `added` are the keys that its configuration did not have. The exit status."""
    params = dict(whole.hydra.sweeper.get("params") or {})
    planned: list[list[str]] = []
    # Another sweeper chooses values during the sweep; its jobs are checked when they start.
    if hydra_private.has_basic_sweeper(whole):
        planned = config_compose.sweep_jobs(given.overrides, params, given.config_dir)
        for overrides in planned:
            job, more = given.compose(overrides)
            prepare_job(job).aeon.close()
            added |= more
    directory = claim_sweep_directory(whole)
    overrides = [
        *config_compose.add_unknown_keys(given.overrides, added),
        f"hydra.sweep.dir={quote(str(directory))}",
        f"hydra.mode={RunMode.MULTIRUN.name}",
    ]
    keys = swept_keys(given.overrides, map(str, params))
    try:
        with _hydra_errors(directory):
            task = partial(sweep_job, keys=keys, process=os.getpid())
            hydra_private.start_multirun(overrides, given.config_dir, given.config_name, task)
    except KeyboardInterrupt:
        _sum_up(read_jobs(directory, keys, planned), INTERRUPTED, directory)
        raise
    status = worst(read_statuses(directory))
    _sum_up(read_jobs(directory, keys, planned), status, directory)
    return status


def _sum_up(jobs: Sequence[Job], status: int, directory: Path) -> None:
    """Print the table of a multirun's jobs, within the terminal's width if there is one, and write it as a file."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    say(f"\n{summary(jobs, status, width)}")
    try:
        write_csv(jobs, directory)
    except ArtefactError as error:
        report(error)


@contextmanager
def _hydra_errors(directory: Path) -> Iterator[None]:
    """Raise errors of Hydra as Aeon's own."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise composition_error(error) from error
    except OSError as error:
        # Hydra itself writes the configuration of the jobs.
        raise unwritable_error(Path(error.filename or directory), error) from error
