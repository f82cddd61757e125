"""The jobs of a multirun side by side: overrides, ending, figures and directory of each."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from io import StringIO
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from aeon.cli.terminal.status import DONE, FAILED
from aeon.files.fast_yaml import read_yaml
from aeon.files.text import load_json
from aeon.observability.artefacts import RESULT, replace_file
from aeon.report.words import count_noun, one_line, relative_to_here

BEFORE = ".before"
"""Where a multirun that goes on keeps what its jobs had left that are run again."""
_STATUS = Path(".hydra") / "exit_status"
_FIGURES = {
    "ended": "termination_reason",
    "converged": "converged",
    "completeness": "scores.completeness_score",
    "coherence": "scores.coherence_score",
    "consistency": "scores.consistency_score",
    "passes": "passes",
    "calls": "usage.total.requests",
    "saved": "parent.saved.model_calls",
    "input_tokens": "usage.total.input_tokens",
    "output_tokens": "usage.total.output_tokens",
    "cost": "usage.total.cost",
    "seconds": "timings.total_seconds",
}
"""The columns of `summary.csv`, and where `result.json` has them; the table shows the first eight."""
_SHOWN = tuple(_FIGURES)[:8]
_HEADS = {"ended": "ended by"}
_SHORT = {
    **_HEADS,
    "converged": "conv.",
    "completeness": "compl.",
    "coherence": "coher.",
    "consistency": "consist.",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A job of a multirun, read from its directory: `overrides` are its values by key, `directory` is None when the job
    never began, `status` its exit status, `figures` the values of the columns of `summary.csv`; in core mode, where
    nothing is judged, `converged` is None. `without`: how many tools, servers and reviews the job did without.
    `unusable_calls` names the calls whose answers could not be used."""

    number: int
    overrides: dict[str, str]
    directory: Path | None = None
    status: int | None = None
    figures: dict[str, Any] = field(default_factory=lambda: {"ended": "not started"})
    without: int = 0
    unusable_calls: tuple[str, ...] = ()

    @property
    def is_core(self) -> bool:
        """Whether it has a result, and nothing in it was judged."""
        return "converged" in self.figures and self.figures["converged"] is None


def write_status(directory: Path, status: int) -> None:
    """Write a job's status into its directory; one that cannot be written counts as FAILED."""
    with suppress(OSError):
        (directory / _STATUS).parent.mkdir(exist_ok=True)
        (directory / _STATUS).write_text(f"{status}\n", encoding="ascii")


def statuses_of(jobs: Iterable[Job]) -> set[int]:
    """The exit statuses of the jobs that began; FAILED when there are none."""
    return {job.status for job in jobs if job.status is not None} or {FAILED}


def read_jobs(sweep_directory: Path, planned: Sequence[Sequence[str]] = ()) -> list[Job]:
    """The jobs of a multirun in their order, each from its own directory: they may have run in other processes; of
    those `planned`, by their overrides, also the ones that left no directory."""
    jobs = {number: Job(number, _by_key(overrides)) for number, overrides in enumerate(planned)}
    for path in sweep_directory.rglob(".hydra"):
        if BEFORE in path.relative_to(sweep_directory).parts:
            continue
        job = _read(path.parent)
        jobs[job.number] = job
    return [jobs[number] for number in sorted(jobs)]


def _read(directory: Path) -> Job:
    told, overrides = re.match(r"\d+(?=-|$)", directory.name), list[str]()
    number = int(told[0]) if told else -1
    status = FAILED
    without = 0
    unusable: tuple[str, ...] = ()
    figures: dict[str, Any] = {"ended": "no result"}
    with suppress(OSError, ValueError):
        hydra = read_yaml(directory / ".hydra" / "hydra.yaml")["hydra"]
        number, overrides = hydra["job"]["num"], hydra["overrides"]["task"]
    with suppress(OSError, ValueError):
        status = int((directory / _STATUS).read_text(encoding="ascii"))
    with suppress(OSError, ValueError):
        result = load_json((directory / RESULT).read_bytes())
        figures = {
            name: reduce(lambda found, key: (found or {}).get(key), path.split("."), result)
            for name, path in _FIGURES.items()
        }
        without = len(result.get("degraded") or ())
        unusable = tuple(result.get("unusable_calls") or ())
        if result["configuration"]["mode"]["kind"] == "core":
            figures["converged"] = None
    return Job(number, _by_key(overrides), directory, status, figures, without, unusable)


def _by_key(overrides: Iterable[str]) -> dict[str, str]:
    parts = (text.partition("=") for text in overrides)
    return {
        key.lstrip("+"): one_line(value) for key, _, value in parts if not key.startswith("hydra.")
    }


def _swept_keys(jobs: Sequence[Job]) -> list[str]:
    keys = dict.fromkeys(key for job in jobs for key in job.overrides)
    return [key for key in keys if len({job.overrides.get(key) for job in jobs}) > 1]


def summary(jobs: Sequence[Job], status: int, width: int | None = None) -> str:
    """A table with a line for each job, and the multirun's exit status. Where it is wider than `width` columns, a job's
    overrides stand above its figures, and no directory."""
    swept = _describe_overrides(jobs)
    rows = [[job.number, *(job.figures.get(name) for name in _SHOWN), job.status] for job in jobs]
    places = [relative_to_here(job.directory) if job.directory else None for job in jobs]
    wide = [
        [row[0], overrides, *row[1:], place]
        for row, overrides, place in zip(rows, swept, places, strict=True)
    ]
    lines = _table([["job", "overrides", *_heads(_HEADS), "exit", "directory"], *wide])
    if width is not None and max(map(cell_len, lines)) > width:
        head, *figures = _table([["job", *_heads(_SHORT), "exit"], *rows])
        lines = [head, *(line for pair in zip(swept, figures, strict=True) for line in pair)]
    return "\n".join((*lines, f"{_total(jobs)}. Exit status {status}, the worst of the jobs."))


def _heads(names: Mapping[str, str]) -> Iterator[str]:
    return (names.get(name, name) for name in _SHOWN)


def _describe_overrides(jobs: Sequence[Job]) -> list[str]:
    keys = _swept_keys(jobs)
    return [
        " ".join(f"{key}={job.overrides[key]}" for key in keys if key in job.overrides) or "-"
        for job in jobs
    ]


def _total(jobs: Sequence[Job]) -> str:
    """How many jobs there are, how many converged of those that can, and how many completed in core mode."""
    core = [job for job in jobs if job.is_core]
    converged = sum(bool(job.figures.get("converged")) for job in jobs)
    completed = sum(job.figures["ended"] == "completed" for job in core)
    without = sum(job.status == DONE and job.without > 0 for job in jobs)
    said = [count_noun(len(jobs), "job")]
    if len(core) < len(jobs):
        said.append(f"{converged} converged")
    if core:
        said.append(f"{completed} completed")
    if without:
        said.append(f"{without} of them without a tool, a server or a review")
    return ", ".join(said)


def _table(rows: Sequence[Sequence[object]]) -> list[str]:
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(set_cell_size, row, widths)).rstrip() for row in cells]


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.2f}" if isinstance(value, float) else "-" if value is None else str(value)


def write_csv(jobs: Sequence[Job], directory: Path) -> None:
    """Write the jobs as `summary.csv`: a line for each, a column for each key that was swept over. Raises
    ArtefactError."""
    keys, text = _swept_keys(jobs), StringIO(newline="")
    writer = csv.DictWriter(
        text, ["job", *keys, *_FIGURES, "exit", "directory"], extrasaction="ignore"
    )
    writer.writeheader()
    for job in jobs:
        figures = {k: str(v).lower() if isinstance(v, bool) else v for k, v in job.figures.items()}
        fixed = {"job": job.number, "exit": job.status, "directory": job.directory}
        writer.writerow({**job.overrides, **figures, **fixed})
    replace_file(directory / "summary.csv", text.getvalue().encode("utf-8", "backslashreplace"))
