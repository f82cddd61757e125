"""The folder of jobs: a folder for each job, with `job.json` and the directories of its runs."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

import pydantic

from aeon.config.origin import FILE as ORIGIN
from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.values import JsonMapping
from aeon.files.text import encode_json, hold
from aeon.observability.artefacts import HISTORY, RESULT, as_artefact_error, replace_file
from aeon.report.runs import JOB, read_document
from aeon.service.record import JobRecord, JobState, is_id

_log = logging.getLogger("aeon")
_LOCK = ".lock"
_RUN = "run-"
_INPUTS = "inputs"
_OTHER_FOLDER = "Name a folder of its own: mcp.folder=DIR or serve.folder=DIR."


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The present state of a job. `run` is the directory of its latest run, None before the first;
    `result` is that run's `result.json`, empty while there is none."""

    record: JobRecord
    state: JobState
    run: Path | None = None
    result: JsonMapping = field(default_factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether the job has reached its final state."""
        return self.record.ended is not None


class UnreadableJob(AeonError):
    """The record of a job cannot be read."""


class JobFolder:
    """Reads and writes jobs in a folder that only its owner can access. Ids come from programs: a
    text without the form of an id belongs to no job."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser().absolute()

    def hold(self) -> AbstractContextManager[None]:
        """Create the folder, and lock it against other servers while the block lasts. Raises
        ConfigError."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            problem = f"the folder of jobs {self.path} cannot be made: {error.strerror or error}"
            raise ConfigError(problem, hint=_OTHER_FOLDER) from None
        hint = f"{_OTHER_FOLDER} One server over HTTP serves several clients."
        return hold(self.path / _LOCK, f"the folder of jobs {self.path}", hint)

    def create(self, record: JobRecord, files: Mapping[str, bytes]) -> None:
        """Create the folder of a job, with its files by their names. Raises ArtefactError."""
        folder = self.path / record.id
        with as_artefact_error(folder):
            folder.mkdir(mode=0o700)
            if files:
                (folder / _INPUTS).mkdir()
            for name, content in files.items():
                (folder / _INPUTS / name).write_bytes(content)
        # Last, since it marks a job that can be resumed.
        self.write(record)

    def locate_inputs(self, record: JobRecord) -> dict[str, str | Path]:
        """Return the inputs of a job: texts, and the paths of its files."""
        folder = self.path / record.id / _INPUTS
        return {**record.inputs, **{name: folder / name for name in record.files}}

    def write(self, record: JobRecord) -> None:
        """Write the record of a job. Raises ArtefactError."""
        content = encode_json(record.model_dump(mode="json"), indent=2) + b"\n"
        replace_file(self.path / record.id / JOB, content)

    def read(self, job_id: str) -> JobRecord | None:
        """Read the record of a job; None for an unknown id. Raises UnreadableJob."""
        path = self.path / job_id / JOB
        if not is_id(job_id) or not path.is_file():
            return None
        try:
            return JobRecord.model_validate(read_document(path))
        except pydantic.ValidationError as error:
            problem = f"job {job_id}: its {JOB} cannot be read: {error.errors()[0]['msg']}"
            raise UnreadableJob(problem) from None

    def list_ids(self, most: int, before: str = "") -> list[str]:
        """Return the ids of the latest jobs, newest first; with `before`, of those older than that
        id."""
        names = (each.name for each in self.path.iterdir())
        ids = (name for name in names if is_id(name) and (not before or name < before))
        return heapq.nlargest(most, ids)

    def list_open(self) -> Iterator[JobRecord]:
        """Return the jobs that have not ended, oldest first; unreadable ones are reported and left
        unchanged."""
        for path in sorted(self.path.glob(f"*/{JOB}")):
            if read_document(path).get("ended"):
                continue
            try:
                record = self.read(path.parent.name)
            except UnreadableJob as error:
                _log.warning("%s; it is left as it is", error.message)
                continue
            if record is not None:
                yield record

    def list_runs(self, job_id: str) -> list[Path]:
        """Return the directories of a job's runs, in their order."""
        found = (each.parent for each in (self.path / job_id).glob(f"{_RUN}*/{ORIGIN}"))
        numbered = (path for path in found if path.name.removeprefix(_RUN).isdecimal())
        return sorted(numbered, key=lambda path: int(path.name.removeprefix(_RUN)))

    def find_next_run(self, job_id: str) -> Path:
        """Return the directory of a job's next run."""
        return self.path / job_id / f"{_RUN}{len(self.list_runs(job_id)) + 1}"

    def describe(self, record: JobRecord, under_way: JobState | None) -> JobStatus:
        """Return the present state of a job; `under_way` tells whether this process runs it."""
        runs = self.list_runs(record.id)
        run = runs[-1] if runs else None
        # A kill can come between the two files: a run without its history has not ended.
        result = read_document(run / RESULT) if run and (run / HISTORY).is_file() else {}
        state = record.ended or under_way
        if state is None:
            is_waiting = result.get("termination_reason") == "waiting"
            state = "waiting" if is_waiting else "queued"
        return JobStatus(record, state, run, result)
