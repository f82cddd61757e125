"""A multirun: its jobs planned and checked, run in parallel in this process or by another launcher,
and summarised at its end."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence, Sized
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.cli.job.directory import claim_sweep_directory
from aeon.cli.job.job import run_job
from aeon.cli.job.multirun import (
    compare_jobs,
    has_ended,
    name_stop,
    read_statuses,
    write_status,
)
from aeon.cli.job.prepare import prepare_job
from aeon.cli.job.sweep_jobs import Sweep, objective_of
from aeon.cli.job.sweep_names import JOB_DIGITS
from aeon.cli.job.sweep_resume import FILE, find_done, record_jobs, write_multirun
from aeon.cli.terminal.status import INTERRUPTED, run_guarded, status_of_all
from aeon.cli.terminal.streams import own_streams, say, warn
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.composed import Composed
from aeon.config.compose.hydra_private import name_overrides
from aeon.config.compose.launcher import SweptJob, start_threads
from aeon.config.compose.literal import Composition, RecordedSettings, key_of, quote
from aeon.config.load import settings_from
from aeon.config.settings import Settings, SweepSettings
from aeon.domain.errors import ConfigError
from aeon.files.pinned import Pinned, list_pinned, pin
from aeon.files.text import hold
from aeon.llm.prices import check_prices, price_book
from aeon.report.compare.forms import COLUMNS_OF_JOBS, write_csv
from aeon.report.words import answer_command, command_of, count_noun, one_line, relative_to_here

if TYPE_CHECKING:
    from omegaconf import DictConfig

_EXCLUDED = "hydra.job.config.override_dirname.exclude_keys"
_OF_ALL = ("sweep", "progress", "interaction", "execution")


def run_several(given: Composition, whole: Composed) -> int:
    """Run the jobs of a multirun and return the exit status; `whole` is their common
    configuration."""
    settings = settings_from(whole, _OF_ALL)
    last = {key_of(text): text for text in given.overrides}
    constant = list(map(key_of, config_compose.without_sweeps(list(last.values()))))
    _refuse(given, settings.sweep, whole, constant)
    # The directory of a job is named after the values in which the jobs differ.
    if _EXCLUDED not in last:
        excluded = f"{_EXCLUDED}=[{','.join(map(quote, constant))}]"
        given = given.with_overrides((*given.overrides, excluded))
    planned = whole.list_jobs(given)
    # Other launchers start processes, which inherit it.
    os.environ[JOB_DIGITS] = str(_count_digits(planned))
    if sys.stderr.isatty():
        say(f"Checking {count_noun(len(planned), 'job')} ...")
    swept = [_select_swept(job, constant) for job in planned]
    _require_same_jobs(given, swept)
    checked = list(_check(given, planned, settings.sweep))
    added = whole.added.union(*(job.added for job, _ in checked))
    directory = (settings.sweep.resume or claim_sweep_directory(whole)).expanduser().absolute()
    overrides = config_compose.add_unknown_keys(given.overrides, added)
    place = f"hydra.sweep.dir={quote(str(directory))}"
    of = given.with_overrides((*overrides, place, "hydra.mode=MULTIRUN"))
    sweep = Sweep(settings, directory, constant)
    sweep.plan(planned)
    mark = directory / "multirun.yaml"
    with hold(mark, f"sweep.resume={directory}", "Wait for its end, or stop it."):
        if settings.sweep.resume:
            sweep.done, sweep.before = find_done(directory)
        if planned and len(sweep.done) == len(planned):
            say("Every job is done: nothing is run.")
        jobs = record_jobs(swept, (chosen for _, chosen in checked))
        write_multirun(directory, of, jobs)
        _carry_out(sweep, mark, of, in_threads=whole.is_in_threads)
        return _tell(sweep, directory, planned)


def _carry_out(sweep: Sweep, mark: Path, of: Composition, *, in_threads: bool) -> None:
    """Let Hydra start the jobs, `in_threads` of this process or by its own launcher. `mark` is the
    file in which it records them; it is removed when none can have begun. Raises ConfigError, and
    KeyboardInterrupt when none has."""
    try:
        if in_threads:
            start_threads(of, sweep.carry_out)
        else:
            task = partial(sweep_job, list_pinned(), of.recorded, sweep.settings.sweep.objective)
            hydra_private.start_multirun(of, task)
    except (KeyboardInterrupt, ConfigError) as error:
        if not (has_begun := mark.stat().st_size or compare_jobs(mark.parent).runs):
            mark.unlink()
            (mark.parent / FILE).unlink(missing_ok=True)
        if not has_begun or isinstance(error, ConfigError):
            raise
        sweep.control.request_stop()
    except (
        ValueError,
        RuntimeError,
    ) as error:  # a sweeper cannot use the values of the jobs
        sweep.control.request_stop(f"the sweeper failed: {one_line(str(error), 300)}")
    finally:
        sweep.endpoints.close()


def _tell(sweep: Sweep, directory: Path, planned: Sequence[Sequence[str]]) -> int:
    """Show the jobs side by side and write them as files; return the exit status."""
    from aeon.cli.terminal.side_by_side import draw_comparison  # slow to load

    comparison = compare_jobs(directory, planned)
    is_done = all(map(has_ended, comparison.runs))
    status = status_of_all(sweep.control, read_statuses(comparison.runs))
    if reason := sweep.control.reason:
        comparison = name_stop(comparison, sweep.stopped_by)
    width = shutil.get_terminal_size().columns if sys.stderr.isatty() else None
    table = draw_comparison(comparison, width=width)
    count = count_noun(len(comparison.runs), "job")
    say(f"\n{table}\nExit status {status}, the worst of {count}.")
    if reason:
        say(f"Stopped: {reason}.")
    for job in comparison.runs:
        if job.ended == "waiting" and job.directory is not None:
            way = answer_command(job.directory)
            say(f"Job {job.name} waits for a person. To answer: {way}")
    if not is_done and (directory / "multirun.yaml").stat().st_size:
        go_on = command_of((f"sweep.resume={relative_to_here(directory)}",))
        say(f"To run the jobs that are missing, failed or waiting: {go_on}")
    write_csv(comparison, directory / "summary.csv", COLUMNS_OF_JOBS)
    from aeon.report.compare.page import write_page_of_jobs  # slow to load

    write_page_of_jobs(comparison, directory, say, warn)
    return status


def _refuse(
    given: Composition, sweep: SweepSettings, whole: Composed, constant: Sequence[str]
) -> None:
    """Raise ConfigError for settings that jobs cannot have."""
    swept = {key_of(text) for text in given.overrides} - set(constant)
    for key in sorted(swept):
        if key.startswith("sweep."):
            raise ConfigError(f"{key}: applies to all jobs, and takes one value")
    if whole.is_in_threads:
        for key in whole.list_process_keys():
            problem = f"{key}: the jobs of this launcher share one process"
            hint = "With hydra/launcher=basic jobs run one after another, each in its own process."
            raise ConfigError(problem, hint=hint)
        return
    for name in ("fail_fast", "max_cost", "max_llm_calls", "resume"):
        if getattr(sweep, name):
            problem = "only the launcher that runs all jobs in one process supports it"
            hint = f"Leave out sweep.{name}, or hydra/launcher=..."
            raise ConfigError(f"sweep.{name}: {problem}", hint=hint)


def _select_swept(overrides: Sequence[str], constant: Sequence[str]) -> list[str]:
    """Return the overrides that differ between jobs."""
    return [text for text in name_overrides(overrides) if key_of(text) not in constant]


def _require_same_jobs(given: Composition, swept: Sequence[Sequence[str]]) -> None:
    """Raise ConfigError when the jobs of a resumed multirun would differ from the recorded ones."""
    if given.jobs and [list(overrides) for overrides, _ in given.jobs] != swept:
        problem = f"{given.jobs[0][1].named}: its jobs would differ from the recorded ones"
        hint = (
            "An option that it sweeps over was added or "
            "removed: undo that, or start another multirun."
        )
        raise ConfigError(problem, hint=hint)


def _check(
    given: Composition, planned: Sequence[Sequence[str]], sweep: SweepSettings
) -> Iterator[tuple[Composed, Settings]]:
    """Check each planned job as far as possible without a call; yield its configuration and
    settings."""
    # All of them before the first call: a mistake in the last job costs nothing.
    for number, overrides in enumerate(planned):
        recorded = given.find_recorded(number)
        job = config_compose.compose(replace(given, overrides=tuple(overrides), recorded=recorded))
        chosen = settings_from(job)
        aeon, _ = prepare_job(chosen)
        aeon.close()
        check_prices(price_book(aeon.settings.provider), sweep.max_cost, of="sweep")
        yield job, chosen


def sweep_job(
    trusted: Sequence[Pinned],
    recorded: RecordedSettings | None,
    objective: str | None,
    values: DictConfig,
) -> float | None:
    """Announce, prepare and run one job of a multirun, with these `values`, in a process that Hydra
    has set up for it, and write its exit status. Content that the person has `trusted` in the first
    process is trusted here too. Does not raise, so that every job gets its turn; only an
    interruption ends the multirun."""
    # The process of a launcher has not asked for trust itself.
    for pinned in trusted:
        pin(pinned)
    job = SweptJob.in_process(values, recorded)
    directory = job.directory

    def run() -> int:
        prepared = prepare_job(settings_from(job.complete().composed), job.composition)
        return run_job(*prepared, directory, job.multirun)

    with own_streams():
        words = (text for text in job.composition.overrides if not text.startswith("task="))
        say(f"job {job.number}  {one_line(' '.join(words), 200)}")
        status = run_guarded(run)
    write_status(directory, status)
    if status == INTERRUPTED:
        raise KeyboardInterrupt
    return objective_of(directory, objective, status)


def _count_digits(planned: Sized) -> int:
    """Return the digits of the job numbers; 2 for sweepers that draw an unknown number of jobs."""
    return len(str(len(planned) - 1)) if planned else 2
