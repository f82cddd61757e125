"""The jobs of a multirun, read from their directories, and shown side by side at its end."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

from aeon.cli.terminal.status import FAILED
from aeon.files.fast_yaml import read_yaml
from aeon.files.text import load_json
from aeon.observability.artefacts import RESULT, replace_file
from aeon.report.compare.rows import BEFORE, FIGURES, Comparison, Run, compare_runs

_STATUS = Path(".hydra") / "exit_status"


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a multirun that left a directory: its exit `status`, how it `ended`, and the calls whose answers could
    not be used."""

    number: int
    directory: Path
    status: int
    ended: str = "no result"
    unusable_calls: tuple[str, ...] = ()


def write_status(directory: Path, status: int) -> None:
    """Write a job's status into its directory; one that cannot be written counts as FAILED."""
    with suppress(OSError):
        (directory / _STATUS).parent.mkdir(exist_ok=True)
        (directory / _STATUS).write_text(f"{status}\n", encoding="ascii")


def statuses_of(jobs: Iterable[Job]) -> set[int]:
    """The exit statuses of the jobs; FAILED when there are none."""
    return {job.status for job in jobs} or {FAILED}


def read_jobs(sweep_directory: Path) -> list[Job]:
    """The jobs of a multirun in their order, each from its own directory: they may have run in other processes."""
    found = [
        _read(path.parent)
        for path in sweep_directory.rglob(".hydra")
        if BEFORE not in path.relative_to(sweep_directory).parts
    ]
    return sorted(found, key=lambda job: job.number)


def _read(directory: Path) -> Job:
    named = re.match(r"\d+(?=-|$)", directory.name)
    number = int(named[0]) if named else -1
    job = Job(number, directory, FAILED)
    with suppress(OSError, ValueError):
        hydra = read_yaml(directory / ".hydra" / "hydra.yaml")["hydra"]
        job = replace(job, number=hydra["job"]["num"])
    with suppress(OSError, ValueError):
        status = int((directory / _STATUS).read_text(encoding="ascii"))
        job = replace(job, status=status)
    with suppress(OSError, ValueError):
        result = load_json((directory / RESULT).read_bytes())
        unusable = tuple(result.get("unusable_calls") or ())
        job = replace(job, ended=result["termination_reason"], unusable_calls=unusable)
    return job


def compare_jobs(
    directory: Path, jobs: Sequence[Job], planned: Sequence[Sequence[str]], stopped_by: str = ""
) -> Comparison:
    """The jobs beside each other, those of the `planned` overrides that never began, too. Jobs that were interrupted
    ended by the setting `stopped_by`, if one stopped them."""
    begun = {job.number for job in jobs}
    digits = len(str(max(len(planned) - 1, 0)))
    missing = [
        Run(
            name=f"{number:0{digits}d}",
            directory=None,
            ended="not started",
            parameters=_by_key(overrides),
        )
        for number, overrides in enumerate(planned)
        if number not in begun
    ]
    comparison = compare_runs([directory], missing)
    if not stopped_by:
        return comparison
    runs = (
        replace(run, ended=stopped_by) if run.ended == "interrupted" else run
        for run in comparison.runs
    )
    return replace(comparison, runs=tuple(runs))


def _by_key(overrides: Iterable[str]) -> dict[str, str]:
    parts = (text.partition("=") for text in overrides)
    return {key.lstrip("+"): value for key, _, value in parts if not key.startswith("hydra.")}


def write_csv(comparison: Comparison, jobs: Iterable[Job], directory: Path) -> None:
    """Write the jobs as `summary.csv`: a line for each, a column for each key that was swept over. Raises
    ArtefactError."""
    by_directory = {job.directory.resolve(): job for job in jobs}
    text = StringIO(newline="")
    writer = csv.writer(text)
    columns = ("ended", "converged", *FIGURES, "exit", "directory")
    writer.writerow(["job", *comparison.parameters, *columns])
    for run in comparison.runs:
        job = by_directory.get(run.directory) if run.directory else None
        values = [run.parameters.get(key) for key in comparison.parameters]
        converged = "" if run.converged is None else str(run.converged).lower()
        ended = [run.ended, converged, *(run.figures[name] for name in FIGURES)]
        place = [job.status, job.directory] if job else ["", ""]
        writer.writerow([job.number if job else int(run.name), *values, *ended, *place])
    replace_file(directory / "summary.csv", text.getvalue().encode("utf-8", "backslashreplace"))
