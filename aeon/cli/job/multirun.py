"""The jobs of a multirun: the exit status of each, and all of them side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from aeon.batch.summary import is_final
from aeon.cli.terminal.status import FAILED
from aeon.report.compare.rows import (
    STATUS,
    ComparedRun,
    Comparison,
    compare_runs,
    plan_job,
    values_by_key,
)


def write_status(directory: Path, status: int) -> None:
    """Write a job's status into its directory; an unwritten one counts as FAILED."""
    with suppress(OSError):
        (directory / STATUS).parent.mkdir(exist_ok=True)
        (directory / STATUS).write_text(f"{status}\n", encoding="ascii")


def read_statuses(jobs: Iterable[ComparedRun]) -> set[int]:
    """Return the exit statuses of the jobs that have begun; FAILED when none has."""
    return {job.status for job in jobs if job.status is not None} or {FAILED}


def compare_jobs(directory: Path, planned: Sequence[Sequence[str]] = ()) -> Comparison:
    """Compare the jobs of a multirun, each read from its own directory, since they may have run in
    other processes; also those of the `planned` overrides that never began."""
    digits = len(str(max(len(planned) - 1, 0)))
    jobs = [
        plan_job(f"{number:0{digits}d}", values_by_key(overrides))
        for number, overrides in enumerate(planned)
    ]
    return compare_runs([directory], jobs)


def has_ended(job: ComparedRun) -> bool:
    """Check whether resuming the multirun skips this job."""
    line = {"ended": job.ended, "unusable_calls": job.unusable_calls}
    return job.has_result and is_final(line) and job.status != FAILED


def name_stop(comparison: Comparison, setting: str) -> Comparison:
    """Return the comparison with interrupted jobs shown as ended by the setting that stopped
    them."""
    runs = (
        replace(run, ended=setting) if run.ended == "interrupted" else run
        for run in comparison.runs
    )
    return replace(comparison, runs=tuple(runs))
