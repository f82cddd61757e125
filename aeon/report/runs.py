"""The runs under a folder: how each one ended, its cost, its size; and the removal of a run's
files."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import AwareDatetime, Field

from aeon.config.origin import FILE
from aeon.domain.assessment import SCORE_CODES
from aeon.domain.errors import ConfigError
from aeon.domain.result import RunResult
from aeon.domain.values import JsonMapping, Value
from aeon.files.inputs.stored import remove_stored
from aeon.files.text import load_json, lock_file, open_linked_file, read_linked_file
from aeon.interaction.desk import Desk
from aeon.interaction.models import ANSWERS, QUESTIONS
from aeon.observability.artefacts import ANSWER, BASELINE, HISTORY, RESULT
from aeon.store.settings import SQLITE, read_store_settings

LEFT_BY_RUNS = (
    *(ANSWER, RESULT, HISTORY, FILE, "events.jsonl", "cycles.jsonl", "report.html", ".hydra"),
    *(QUESTIONS, ANSWERS),
    *("store.sqlite", "store.sqlite-wal", "store.sqlite-shm"),
)
LEFT_BY_MULTIRUNS = (
    "multirun.yaml",
    "multirun.json",
    "summary.csv",
    "compare.html",
    "compare.csv",
    "store.sqlite",
    ".hydra",
    ".before",
)
"""What a run, and a multirun, makes in its directory; all else there is somebody's own."""
JOB = "job.json"
"""What a server has in the folder above the runs of a job."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_FORMATS = {RESULT: "aeon.domain.result/", FILE: "aeon.run/"}


class Listed(Value):
    """A run in a list. `ended` is its termination reason, or `running`, `cut off` (there is no
    result, and no program writes there any more), `unfinished` (the same, where that cannot be
    told), `plan` (of `aeon plan`), `cancelled` (it waits no more: see `find_cancellation`) or
    `unreadable`, also for another version. `cost` is None where
    it is unknown, `bytes` the size of its directory, `waits_for` counts its open questions,
    `stands_on` are the runs that it resumes."""

    directory: Path
    started: AwareDatetime
    ended: str
    bytes: int
    task: str = ""
    scores: dict[str, float] = Field(default_factory=dict)
    passes: int = 0
    tokens: int = 0
    cost: float | None = None
    synthetic: bool = False
    waits_for: int = 0
    stands_on: tuple[Path, ...] = ()

    @property
    def is_resumable(self) -> bool:
        """Whether it was stopped before its end, by a kill or by a person, or to wait for one."""
        return self.ended in ("cut off", "unfinished", "interrupted", "waiting")

    @property
    def may_go_on(self) -> bool:
        """Whether a program may still write to the run's directory; if unknown, for a day after it
        began."""
        return self.ended == "running" or (
            self.ended == "unfinished" and self.started > datetime.now(UTC) - timedelta(1)
        )


def find_runs(folder: Path) -> list[Listed]:
    """Return the runs in a folder and below it, newest first, without hidden folders, links, rows
    of batches, and the baselines of runs."""
    return sorted(
        (_read(path) for path in _directories(folder)), key=lambda run: run.started, reverse=True
    )


def _directories(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name[0] != "." and name.removesuffix(".running") not in files
        ]
        if _holds_run(Path(path), files):
            yield Path(path)
            folders[:] = [name for name in folders if not is_of_baseline(name)]


def _holds_run(directory: Path, files: Sequence[str]) -> bool:
    return any(
        str(read_document(directory / name).get("format")).startswith(_FORMATS[name])
        for name in _FORMATS
        if name in files
    )


def find_resuming(directory: Path) -> Listed | None:
    """Return the newest run that resumes the one in `directory`, found beside it or in the folders
    by date of the default configuration; None where there is none."""
    directory = directory.resolve()
    above = directory.parent
    found = set(above.glob(f"*/{FILE}"))
    if _DATE.fullmatch(above.name):
        found.update(above.parent.glob(f"*/*/{FILE}"))
    resuming = [_read(path.parent) for path in found if _stands_on(path, directory)]
    return max(resuming, key=lambda run: run.started, default=None)


def _stands_on(origin: Path, directory: Path) -> bool:
    document = read_document(origin)
    ancestors = document.get("ancestors")
    earlier = [document.get("parent"), *(ancestors if isinstance(ancestors, list) else ())]
    paths = [each.get("path") for each in earlier if isinstance(each, dict)]
    return any(isinstance(path, str) and Path(path).resolve() == directory for path in paths)


def is_of_baseline(name: str) -> bool:
    """Check whether a folder in a run's directory is called as that of a direct call."""
    return re.fullmatch(rf"{BASELINE}(-\d+)?", name) is not None


def _read(directory: Path) -> Listed:
    result = read_document(directory / RESULT)
    origin = read_document(directory / FILE)
    began = datetime.fromtimestamp(directory.stat().st_mtime, UTC)
    size = sum(map(_size, directory.rglob("*")))
    try:
        return _make_listed(directory, result, origin, began=began, size=size)
    except (AttributeError, LookupError, TypeError, ValueError):
        return Listed(directory=directory, started=began, ended="unreadable", bytes=size)


def _make_listed(
    directory: Path,
    result: JsonMapping,
    origin: JsonMapping,
    *,
    began: datetime,
    size: int,
) -> Listed:
    total = _mapping(_mapping(result.get("usage")).get("total"))
    started = _mapping(result.get("timings")).get("start_time") or origin.get("started")
    parents = (origin.get("parent"), *(origin.get("ancestors") or ()))
    ended = _read_end(directory, result)
    return Listed(
        directory=directory,
        bytes=size,
        started=started or began,
        task=result.get("task") or origin.get("task") or "",
        ended=ended,
        scores=_scores(result),
        passes=result.get("passes") or 0,
        tokens=total.get("total_tokens") or 0,
        cost=total.get("cost"),
        synthetic=bool(result.get("synthetic", origin.get("synthetic"))),
        waits_for=_count_open_questions(directory, ended),
        stands_on=tuple(each["path"] for each in parents if each),
    )


def _count_open_questions(directory: Path, ended: str) -> int:
    if ended == "cancelled" or not (directory / QUESTIONS).is_file():
        return 0
    with suppress(ConfigError):
        return len(Desk(directory).list_open())
    return 0


def _mapping(value: JsonMapping | None) -> JsonMapping:
    return value or {}


def _read_end(directory: Path, result: JsonMapping) -> str:
    is_known = result.get("format") == RunResult.model_fields["format"].default
    reason = str(result.get("termination_reason") or "") if is_known else ""
    if reason == "waiting" and find_cancellation(directory) is not None:
        return "cancelled"
    return reason or end_without_result(directory)


def find_cancellation(directory: Path) -> str | None:
    """Return why the client of a server cancelled the job of this run; None where it did not."""
    why = read_document(directory.parent / JOB).get("cancelled")
    return None if why is None else str(why)


def _scores(result: JsonMapping) -> dict[str, float]:
    given = result.get("scores") or {}
    scores = {name: given.get(f"{name}_score") for name in SCORE_CODES}
    return {name: score for name, score in scores.items() if score is not None}


def _size(path: Path) -> int:
    with suppress(OSError):  # it may be gone by now
        status = path.lstat()
        return status.st_size if stat.S_ISREG(status.st_mode) else 0
    return 0


def read_document(path: Path) -> JsonMapping:
    """Return the object in a JSON file; empty when there is none that can be read."""
    with suppress(OSError, ValueError):
        document = load_json(read_linked_file(path))
        return document if isinstance(document, dict) else {}
    return {}


def end_without_result(directory: Path) -> str:
    """Return how a run without a result ended, as in `Listed.ended`."""
    if (directory / RESULT).exists():
        return "unreadable"
    is_free = None
    with suppress(OSError), open_linked_file(directory / "events.jsonl") as journal:
        is_free = lock_file(journal, shared=True)
    if is_free is False:
        return "running"  # the program that writes the journal has it locked
    if (directory / "plan.yaml").is_file():
        return "plan"
    return "cut off" if is_free else "unfinished"


def remove_run(run: Listed, above: Path) -> list[Path]:
    """Remove a run's files, then the directories that this leaves empty below `above`, and a
    multirun's own files with its last job. Returns the user's own files, which stay. Raises
    OSError."""
    remove_stored(run.directory)
    own = _remove(run.directory, (*LEFT_BY_RUNS, *_list_more(run)))
    folder = run.directory
    while folder != above and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
        if (folder / "multirun.yaml").is_file() and not any(
            path.is_dir() for path in folder.glob("[!.]*")
        ):
            _remove(folder, LEFT_BY_MULTIRUNS)
    return own


def _list_more(run: Listed) -> Iterator[str]:
    """List files that some runs leave in addition to `LEFT_BY_RUNS`."""
    if run.ended == "plan":
        yield "plan.yaml"
    store = read_store_settings(read_document(run.directory / RESULT).get("configuration") or {})
    # A store that is not a SQLite file has this name; otherwise it is a user's own file.
    if store.own_backend != SQLITE and store.mode != "replay":
        yield "store"
    yield from (path.name for path in run.directory.iterdir() if is_of_baseline(path.name))


def _remove(directory: Path, names: tuple[str, ...]) -> list[Path]:
    for path in (directory / name for name in names):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return list(directory.iterdir())
