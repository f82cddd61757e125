"""Running the task, or several in a multirun: everything is checked first, then Hydra starts the jobs."""

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

from aeon import config_compose
from aeon.cli.arguments import Arguments, parse
from aeon.cli.directory import claimed_run, claimed_sweep, identify_start
from aeon.cli.job import prepared, run_job, sweep_job
from aeon.cli.jobs import Job, read_jobs, summary, swept_keys, write_csv
from aeon.cli.show import show
from aeon.cli.status import INTERRUPTED, guarded, read_statuses, worst
from aeon.cli.stderr import report, say
from aeon.config_literal import quoted
from aeon.config_problems import composition_error
from aeon.errors import ArtefactError
from aeon.writing import unwritable

_BASIC_SWEEPER = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for, or show what it asks to see; the exit status.

    Raises ConfigError for everything that is wrong with the configuration, before any model is called and before any
    directory is made.
    """
    given = parse(arguments)
    if given.shows:
        return show(given)
    identify_start()
    plain = config_compose.without_sweeps(given.overrides)
    whole, added = _composed(given, plain, with_hydra=True)
    if given.flags.multirun or whole.hydra.mode == RunMode.MULTIRUN:
        return _multirun(given, whole, added)
    if len(plain) < len(given.overrides):
        whole, _ = _composed(given, given.overrides, with_hydra=True)
    return _single(given, whole)


def _single(given: Arguments, whole: DictConfig) -> int:
    job = prepared(whole, whole.hydra)
    run = job.aeon.prepared_run(job.task, inputs=job.inputs)
    directory = claimed_run(whole, run)

    def carry_out(_: DictConfig) -> int:
        # Hydra prints the overrides, task and all, for a job that raises.
        return guarded(lambda: run_job(job, run, directory))

    with _hydra_errors(directory):
        return int(config_compose.run_composed(whole, given.config_name, directory, carry_out))


def _multirun(given: Arguments, whole: DictConfig, added: frozenset[str]) -> int:
    params = dict(whole.hydra.sweeper.get("params") or {})
    planned: list[list[str]] = []
    # Another sweeper draws its values as it goes; each of its jobs checks itself.
    if whole.hydra.sweeper.get("_target_") == _BASIC_SWEEPER:
        planned = config_compose.sweep_jobs(given.overrides, params, given.config_dir)
        for overrides in planned:
            job, more = _composed(given, overrides)
            prepared(job).aeon.close()
            added |= more
    directory = claimed_sweep(whole)
    overrides = [
        *config_compose.adding(given.overrides, added),
        f"hydra.sweep.dir={quoted(str(directory))}",
        f"hydra.mode={RunMode.MULTIRUN.name}",
    ]
    keys = swept_keys(given.overrides, map(str, params))
    try:
        with _hydra_errors(directory):
            task = partial(sweep_job, keys=keys, process=os.getpid())
            config_compose.start_multirun(overrides, given.config_dir, given.config_name, task)
    except KeyboardInterrupt:
        _sum_up(read_jobs(directory, keys, planned), INTERRUPTED, directory)
        raise
    status = worst(read_statuses(directory))
    _sum_up(read_jobs(directory, keys, planned), status, directory)
    return status


def _sum_up(jobs: Sequence[Job], status: int, directory: Path) -> None:
    """Show the jobs of a multirun side by side, within the terminal's width if there is one, and leave them as a
    file."""
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    say(f"\n{summary(jobs, status, width)}")
    try:
        write_csv(jobs, directory)
    except ArtefactError as error:
        report(error)


def _composed(
    given: Arguments, overrides: Sequence[str], *, with_hydra: bool = False
) -> tuple[DictConfig, frozenset[str]]:
    return config_compose.compose_adding(
        overrides, given.config_dir, config_name=given.config_name, with_hydra=with_hydra
    )


@contextmanager
def _hydra_errors(directory: Path) -> Iterator[None]:
    """What Hydra raises, as an error of Aeon's own."""
    try:
        yield
    except (HydraException, OmegaConfBaseException) as error:
        raise composition_error(error) from error
    except OSError as error:
        # Of its own jobs Hydra writes the configuration.
        raise unwritable(Path(error.filename or directory), error) from error
