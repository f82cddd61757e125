"""The jobs of a multirun side by side: what each was given, how it ended, what it took and where its artefacts are."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from rich.cells import cell_len, chop_cells

from aeon.app.artefacts import RESULT, replace
from aeon.app.directory import shown
from aeon.cli.terminal.status import DONE, read_status
from aeon.cli.terminal.text import counted, one_line
from aeon.config.compose.compose import is_sweep
from aeon.domain.assessment import ConvergenceScores
from aeon.domain.result import ParentRun, Timings, UsageReport

CSV = "summary.csv"
"""The file in a multirun's directory."""
_SCORES = ("completeness", "coherence", "consistency")
_HEAD = ("job", "overrides", "ended", "converged", *_SCORES, "passes", "calls", "saved", "exit", "directory")
_SHORT = {"completeness": "compl.", "coherence": "coher.", "consistency": "consist."}
_FIGURES = (
    *("ended", "converged", *_SCORES, "passes", "calls", "saved"),
    *("input_tokens", "output_tokens", "cost", "seconds"),
)
_NONE = "-"


class Outcome(BaseModel, frozen=True):
    """What is told here of a job's `result.json`; `scores` None when nothing was assessed, `parent` None when nothing
    could be saved."""

    termination_reason: str
    converged: bool
    scores: ConvergenceScores | None = None
    passes: int
    usage: UsageReport
    timings: Timings
    parent: ParentRun | None = None


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a multirun, from what it left: `overrides` are those that were swept over, `directory` is None when it
    never began, `status` its exit status, `result` None when it left none that can be read."""

    number: int
    overrides: tuple[str, ...]
    directory: Path | None = None
    status: int | None = None
    result: Outcome | None = None


def swept_keys(overrides: Iterable[str], params: Iterable[str]) -> frozenset[str]:
    """The keys that a multirun sweeps over: those given several values, and those of the sweeper's own `params`."""
    return frozenset(map(_key, [*(text for text in overrides if is_sweep(text)), *params]))


def swept(overrides: Iterable[str], keys: Collection[str]) -> tuple[str, ...]:
    """Of one job's overrides those of `keys`, the last one for each, on one line and without control characters."""
    last = {_key(text): text.lstrip("+") for text in overrides}
    return tuple(one_line(text) for key, text in last.items() if key in keys)


def header(number: int, overrides: Sequence[str]) -> str:
    """The line that a job's own lines follow: `job 2  provider.seed=2`."""
    return "  ".join([f"job {number}", *([" ".join(overrides)] if overrides else [])])


def read_jobs(sweep_directory: Path, keys: Collection[str], planned: Sequence[Sequence[str]] = ()) -> list[Job]:
    """The jobs of a multirun in their order, each from its own directory: they may have run in other processes.

    `planned` are the overrides of each job that was to run, where they are known beforehand: one of them that left no
    directory is there too.
    """
    made = [_read(path.parent, keys) for path in sorted(sweep_directory.rglob(".hydra"))]
    there = {job.number for job in made}
    missing = [Job(number, swept(texts, keys)) for number, texts in enumerate(planned) if number not in there]
    return sorted([*made, *missing], key=lambda job: job.number)


def summary(jobs: Sequence[Job], status: int, width: int | None = None) -> str:
    """A table with a line for each job, and below it the multirun's exit status and which job it comes from.

    Where it is wider than `width` terminal columns, what a job was given stands above its figures, and its directory in
    none.
    """
    rows = [_row(job) for job in jobs]
    lines = _table(_HEAD, rows)
    if width is not None and max(map(cell_len, lines)) > width:
        lines = _narrow(jobs, rows, width)
    return "\n".join([*lines, *_folded(_total(jobs, status), width)])


def _narrow(jobs: Sequence[Job], rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    kept = [index for index, name in enumerate(_HEAD) if name not in ("overrides", "directory")]
    head, *lines = _table(
        [_SHORT.get(_HEAD[index], _HEAD[index]) for index in kept], [_pick(row, kept) for row in rows]
    )
    paired = zip(rows, lines, strict=True)
    body = [part for row, line in paired for part in (*_folded(row[1], width), *_folded(line, width))]
    folder = next((job.directory.parent for job in jobs if job.directory is not None), None)
    return [*_folded(head, width), *body, *(_folded(f"Directories: {shown(folder)}/JOB", width) if folder else [])]


def _pick(row: Sequence[str], kept: Sequence[int]) -> list[str]:
    return [row[index] for index in kept]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    whole = [head, *rows]
    widths = [max(map(cell_len, column)) for column in zip(*whole, strict=True)]
    return ["  ".join(map(_padded, row, widths)).rstrip() for row in whole]


def _folded(line: str, width: int | None) -> list[str]:
    return chop_cells(line, width) if width is not None and line else [line]


def write_csv(jobs: Sequence[Job], directory: Path) -> None:
    """Leave the jobs as `summary.csv`: a line for each, a column for each key that was swept over. Raises
    ArtefactError."""
    keys = list(dict.fromkeys(_key(text) for job in jobs for text in job.overrides))
    text = StringIO(newline="")
    writer = csv.DictWriter(text, ["job", *keys, *_FIGURES, "exit", "directory"], restval="")
    writer.writeheader()
    for job in jobs:
        given = {_key(text): text.partition("=")[2] for text in job.overrides}
        where = {"exit": job.status, "directory": job.directory}
        writer.writerow({"job": job.number, **given, **_figures(job), **where})
    replace(directory / CSV, text.getvalue().encode("utf-8", "backslashreplace"))


def _figures(job: Job) -> dict[str, object]:
    result = job.result
    if result is None:
        return {"ended": _ended(job)}
    scores = result.scores.model_dump() if result.scores else {}
    total = result.usage.total
    return {
        "ended": result.termination_reason,
        "converged": str(result.converged).lower(),
        **{name: scores.get(f"{name}_score") for name in _SCORES},
        "passes": result.passes,
        "calls": total.requests,
        "saved": result.parent.saved.model_calls if result.parent else 0,
        "input_tokens": total.input_tokens,
        "output_tokens": total.output_tokens,
        "cost": total.cost,
        "seconds": result.timings.total_seconds,
    }


def _total(jobs: Sequence[Job], status: int) -> str:
    converged = sum(1 for job in jobs if job.result and job.result.converged)
    first = next((job.number for job in jobs if job.status == status != DONE), None)
    whence = "" if first is None else f", the worst of the jobs, that of job {first}"
    return f"{counted(len(jobs), 'job')}, {converged} converged. Exit status {status}{whence}."


def _row(job: Job) -> tuple[str, ...]:
    tail = (
        _NONE if job.status is None else str(job.status),
        _NONE if job.directory is None else str(shown(job.directory)),
    )
    given = " ".join(job.overrides) or _NONE
    figures = (_ended(job), *[_NONE] * 7) if job.result is None else _outcome(job.result)
    return (str(job.number), given, *figures, *tail)


def _ended(job: Job) -> str:
    if job.result is not None:
        return job.result.termination_reason
    return "not started" if job.directory is None else "no result"


def _outcome(result: Outcome) -> tuple[str, ...]:
    scores = result.scores
    figures = (scores.completeness_score, scores.coherence_score, scores.consistency_score) if scores else ()
    return (
        result.termination_reason,
        "yes" if result.converged else "no",
        *([f"{figure:.2f}" for figure in figures] or [_NONE] * 3),
        str(result.passes),
        str(result.usage.total.requests),
        str(result.parent.saved.model_calls) if result.parent else _NONE,
    )


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def _read(directory: Path, keys: Collection[str]) -> Job:
    number, overrides = _composed(directory)
    return Job(number, swept(overrides, keys), directory, read_status(directory), _result(directory))


def _composed(directory: Path) -> tuple[int, list[str]]:
    """A job's number and overrides, as Hydra left them; by its directory's name where Hydra was told to leave none."""
    try:
        left = OmegaConf.load(directory / ".hydra" / "hydra.yaml")
        number = int(OmegaConf.select(left, "hydra.job.num"))
        texts = OmegaConf.to_container(OmegaConf.select(left, "hydra.overrides.task"), resolve=False)
    except (OSError, ValueError, TypeError, yaml.YAMLError, OmegaConfBaseException):
        return (int(directory.name) if directory.name.isdecimal() else -1), []
    return number, [str(text) for text in texts] if isinstance(texts, list) else []


def _result(directory: Path) -> Outcome | None:
    try:
        return Outcome.model_validate_json((directory / RESULT).read_bytes())
    except (OSError, ValidationError):
        return None


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")
