"""The jobs of a multirun side by side: overrides, ending, figures and directory of each."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from rich.cells import cell_len, chop_cells, set_cell_size

from aeon.app.artefacts import RESULT, replace_file
from aeon.app.directory import relative_to_here
from aeon.cli.progress.view import SCORES
from aeon.cli.terminal.status import DONE, read_status
from aeon.cli.terminal.text import count_noun, one_line
from aeon.config.compose.compose import is_sweep
from aeon.domain.assessment import ConvergenceScores
from aeon.domain.result import ParentRun, Timings, UsageReport

CSV = "summary.csv"
"""The file in a multirun's directory."""
_COLUMNS = ("ended", "converged", *SCORES, "passes", "calls", "saved")
_HEAD = ("job", "overrides", *_COLUMNS, "exit", "directory")
_SHORT = {"completeness": "compl.", "coherence": "coher.", "consistency": "consist."}
_FIGURES = (*_COLUMNS, "input_tokens", "output_tokens", "cost", "seconds")


class Outcome(BaseModel, frozen=True):
    """The part of a job's `result.json` that the summary shows; `scores` is None when nothing was assessed, `parent`
    when nothing could be saved."""

    termination_reason: str
    converged: bool
    scores: ConvergenceScores | None = None
    passes: int
    usage: UsageReport
    timings: Timings
    parent: ParentRun | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a multirun, read from its directory: `overrides` are those swept over, `directory` is None when the job
    never began, `status` its exit status, `result` None when there is none that can be read."""

    number: int
    overrides: tuple[str, ...]
    directory: Path | None = None
    status: int | None = None
    result: Outcome | None = None


def swept_keys(overrides: Iterable[str], params: Iterable[str]) -> frozenset[str]:
    """The keys that a multirun sweeps over: those given several values, and those of the sweeper's own `params`."""
    return frozenset(map(_key, [*(text for text in overrides if is_sweep(text)), *params]))


def select_swept(overrides: Iterable[str], keys: Collection[str]) -> tuple[str, ...]:
    """Of one job's overrides those of `keys`, the last one for each, on one line and without control characters."""
    last = {_key(text): text.lstrip("+") for text in overrides}
    return tuple(one_line(text) for key, text in last.items() if key in keys)


def header(number: int, overrides: Sequence[str]) -> str:
    """The line that a job's own lines follow: `job 2  provider.seed=2`."""
    return f"job {number}  {' '.join(overrides)}".rstrip()


def read_jobs(sweep_directory: Path, keys: Collection[str], planned: Sequence[Sequence[str]] = ()) -> list[Job]:
    """The jobs of a multirun in their order, each from its own directory: they may have run in other processes.

    `planned` are the overrides of each job that was to run, where they are known beforehand; a job that left no
    directory is included.
    """
    jobs = {job.number: job for job in (_read(path.parent, keys) for path in sorted(sweep_directory.rglob(".hydra")))}
    missing = {number: Job(number, select_swept(texts, keys)) for number, texts in enumerate(planned)}
    return [job for _, job in sorted({**missing, **jobs}.items())]


def _read(directory: Path, keys: Collection[str]) -> Job:
    number, overrides = _composition(directory)
    result: Outcome | None = None
    with suppress(OSError, ValidationError):
        result = Outcome.model_validate_json((directory / RESULT).read_bytes())
    return Job(number, select_swept(overrides, keys), directory, read_status(directory), result)


def _composition(directory: Path) -> tuple[int, list[str]]:
    """A job's number and overrides, as Hydra left them; by its directory's name where Hydra left none."""
    try:
        left = OmegaConf.load(directory / ".hydra" / "hydra.yaml")
        number = int(OmegaConf.select(left, "hydra.job.num"))
        texts = OmegaConf.to_container(OmegaConf.select(left, "hydra.overrides.task"), resolve=False)
    except (OSError, ValueError, TypeError, yaml.YAMLError, OmegaConfBaseException):
        return (int(directory.name) if directory.name.isdecimal() else -1), []
    return number, [str(text) for text in texts] if isinstance(texts, list) else []


def summary(jobs: Sequence[Job], status: int, width: int | None = None) -> str:
    """A table with a line for each job, and below it the multirun's exit status and which job it comes from.

    Where the table is wider than `width` terminal columns, a job's overrides stand above its figures, and the directory
    of all jobs below them.
    """
    rows = [_row(job) for job in jobs]
    converged = sum(1 for job in jobs if job.result and job.result.converged)
    first = next((job.number for job in jobs if job.status == status != DONE), None)
    source = "" if first is None else f", the worst of the jobs, that of job {first}"
    total = f"{count_noun(len(jobs), 'job')}, {converged} converged. Exit status {status}{source}."
    lines = [*_table([_HEAD, *rows]), total]
    if width is None or max(map(cell_len, lines)) <= width:
        return "\n".join(lines)
    head, *figures = _table([[_SHORT.get(name, name) for name in _narrow(_HEAD)], *map(_narrow, rows)])
    lines = [head, *(part for row, line in zip(rows, figures, strict=True) for part in (row[1], line))]
    folder = next((job.directory.parent for job in jobs if job.directory is not None), None)
    lines += [f"Directories: {relative_to_here(folder)}/JOB"] if folder else []
    return "\n".join(part for line in (*lines, total) for part in chop_cells(line, width))


def _narrow(row: Sequence[str]) -> list[str]:
    """A row without overrides and directory."""
    return [row[0], *row[2:-1]]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows]


def _row(job: Job) -> tuple[str, ...]:
    figures = _figures(job)
    directory = None if job.directory is None else relative_to_here(job.directory)
    cells = (job.number, " ".join(job.overrides), *(figures.get(name) for name in _COLUMNS), job.status, directory)
    return tuple(map(_cell, cells))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.2f}"
    return "-" if value in (None, "") else str(value)


def _figures(job: Job) -> dict[str, Any]:
    result = job.result
    if result is None:
        return {"ended": "not started" if job.directory is None else "no result"}
    scores = result.scores.model_dump() if result.scores else {}
    total = result.usage.total
    return {
        "ended": result.termination_reason,
        "converged": result.converged,
        **{name: scores.get(f"{name}_score") for name in SCORES},
        "passes": result.passes,
        "calls": total.requests,
        "saved": result.parent.saved.model_calls if result.parent else 0,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cost": total.cost,
        "seconds": result.timings.total_seconds,
    }


def write_csv(jobs: Sequence[Job], directory: Path) -> None:
    """Write the jobs as `summary.csv`: a line for each, a column for each key that was swept over. Raises
    ArtefactError."""
    keys = list(dict.fromkeys(_key(text) for job in jobs for text in job.overrides))
    text = StringIO(newline="")
    writer = csv.DictWriter(text, ["job", *keys, *_FIGURES, "exit", "directory"], restval="")
    writer.writeheader()
    for job in jobs:
        given = {_key(text): text.partition("=")[2] for text in job.overrides}
        figures = {
            name: str(value).lower() if isinstance(value, bool) else value for name, value in _figures(job).items()
        }
        writer.writerow({"job": job.number, **given, **figures, "exit": job.status, "directory": job.directory})
    replace_file(directory / CSV, text.getvalue().encode("utf-8", "backslashreplace"))


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")
