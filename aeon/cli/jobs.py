"""The jobs of a multirun side by side: what each was given, how it ended, what it took and where its artefacts are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import BaseModel, ValidationError
from rich.cells import cell_len

from aeon.artefacts import RESULT
from aeon.cli.directory import shown
from aeon.cli.progress_view import counted, one_line
from aeon.cli.status import DONE, read_status
from aeon.config_compose import is_sweep
from aeon.convergence.models import ConvergenceScores
from aeon.result import ParentRun, UsageReport

_HEAD = ("job", "overrides", "ended", "converged", "completeness", "coherence", "consistency", "passes", "calls")
_NONE = "-"


class Outcome(BaseModel, frozen=True):
    """What is told here of a job's `result.json`; `scores` None when nothing was assessed, `parent` None when nothing
    could be saved."""

    termination_reason: str
    converged: bool
    scores: ConvergenceScores | None = None
    passes: int
    usage: UsageReport
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


def summary(jobs: Sequence[Job], status: int) -> str:
    """A table with a line for each job, and below it the multirun's exit status and which job it comes from."""
    saving = any(job.result and job.result.parent for job in jobs)
    rows = [(*_HEAD, *(["saved"] if saving else []), "exit", "directory"), *(_row(job, saving) for job in jobs)]
    widths = [max(cell_len(cell) for cell in column) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(_padded, row, widths)).rstrip() for row in rows]
    return "\n".join([*lines, _total(jobs, status)])


def _total(jobs: Sequence[Job], status: int) -> str:
    converged = sum(1 for job in jobs if job.result and job.result.converged)
    first = next((job.number for job in jobs if job.status == status != DONE), None)
    whence = "" if first is None else f", the worst of the jobs, that of job {first}"
    return f"{counted(len(jobs), 'job')}, {converged} converged. Exit status {status}{whence}."


def _row(job: Job, saving: bool) -> tuple[str, ...]:
    tail = (
        _NONE if job.status is None else str(job.status),
        _NONE if job.directory is None else str(shown(job.directory)),
    )
    given = " ".join(job.overrides) or _NONE
    if job.result is None:
        ended = "not started" if job.directory is None else "no result"
        return (str(job.number), given, ended, *[_NONE] * (6 + saving), *tail)
    return (str(job.number), given, *_outcome(job.result), *([_saved(job.result)] if saving else []), *tail)


def _outcome(result: Outcome) -> tuple[str, ...]:
    scores = result.scores
    figures = (scores.completeness_score, scores.coherence_score, scores.consistency_score) if scores else ()
    return (
        result.termination_reason,
        "yes" if result.converged else "no",
        *([f"{figure:.2f}" for figure in figures] or [_NONE] * 3),
        str(result.passes),
        str(result.usage.total.requests),
    )


def _saved(result: Outcome) -> str:
    return str(result.parent.saved.model_calls) if result.parent else _NONE


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
