"""Jobs under way: a limited number at once, a queue, and the resumption after a stop or a kill.

with Jobs.open(folder, configurations, Capacity(parallel=4, queue=16)) as jobs:
    job_id = jobs.submit(JobRequest("aeon", "name three rivers", background=True))
    jobs.find(job_id).state
"""

from __future__ import annotations

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pydantic import JsonValue

from aeon.app.attendance import Attendance
from aeon.app.run import RunPlace
from aeon.domain.errors import AeonError, ArtefactError, ConfigError
from aeon.domain.events import Recorded
from aeon.domain.plan import OpenQuestion
from aeon.domain.result import RunResult
from aeon.interaction.desk import Desk
from aeon.kernel.control import RunControl
from aeon.llm.watching import Piece, Waiting, Watcher
from aeon.service.configurations import Configurations
from aeon.service.folder import JobFolder, JobStatus
from aeon.service.record import JobEnd, JobProblem, JobRecord, JobState, make_id

_log = logging.getLogger("aeon")
_SECONDS_BETWEEN_LOOKS = 1.0
_STOPPED = "the server was stopped, and the program that waited for it is gone"


class QueueFull(AeonError):
    """No more jobs may run or wait."""


class JobNotFound(AeonError):
    """No job has this id."""


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A program's request for a run, by the name of a configuration. Without a `task` the plan file
    has it. In the `background` the run continues without that program. `note` is returned
    unchanged. `files` are inputs as well, whose names may stand in a path."""

    configuration: str
    task: str | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    background: bool = False
    note: Mapping[str, JsonValue] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Follower:
    """A follower of a job under way, called from threads of its run; each call must return at once.
    `watch` gets the text of answers as it comes, if it is set when the run starts. `end` is called
    once the job has ended, waits for a person, or was stopped with its server."""

    see: Callable[[Recorded], None] | None = None
    watch: Callable[[Waiting | Piece], None] | None = None
    end: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many jobs run at once, and how many more may wait."""

    parallel: int = 4
    queue: int = 16


@dataclass(slots=True)
class _UnderWay:
    """A job that is queued or running."""

    job_id: str
    control: RunControl = field(default_factory=RunControl)
    followers: list[Follower] = field(default_factory=list)
    state: JobState = "queued"

    def see(self, recorded: Recorded) -> None:
        for follower in tuple(self.followers):
            if follower.see is not None:
                follower.see(recorded)

    def watch(self, seen: Waiting | Piece) -> None:
        for follower in tuple(self.followers):
            if follower.watch is not None:
                follower.watch(seen)

    def attend(self) -> Attendance:
        """Return the attendance of the run."""
        wants_text = any(follower.watch is not None for follower in self.followers)
        watcher = Watcher(self.watch, stream=True) if wants_text else None
        return Attendance(control=self.control, observers=[self.see], watcher=watcher)


class Jobs:
    """Carries out jobs in threads of this process. Their folder is what lasts: ended jobs are read
    from it, and unfinished jobs of an earlier process are resumed. `ended` counts the jobs that
    have ended here, by configuration and end. Thread-safe."""

    def __init__(
        self, folder: JobFolder, configurations: Configurations, capacity: Capacity
    ) -> None:
        self.folder = folder
        self.configurations = configurations
        self.capacity = capacity
        self._lock = threading.RLock()
        self._under_way: dict[str, _UnderWay] = {}
        self._queue: deque[_UnderWay] = deque()
        self._waiting: set[str] = set()
        self._threads: set[threading.Thread] = set()
        self._stopping = threading.Event()
        # Clients that wait for these jobs learn their end even if the disk is full.
        self._unwritten: dict[str, JobRecord] = {}
        self.ended: Counter[tuple[str, JobEnd]] = Counter()

    @classmethod
    @contextmanager
    def open(cls, path: Path, configurations: Configurations, capacity: Capacity) -> Iterator[Jobs]:
        """Open the jobs of a folder, which only this process may have open; those that a stop or a
        kill has interrupted are resumed. At the end of the block, runs are stopped, to be resumed
        later. Raises ConfigError and ArtefactError."""
        folder = JobFolder(path)
        with folder.hold():
            jobs = cls(folder, configurations, capacity)
            try:
                jobs.go_on()
                yield jobs
            finally:
                jobs.close()

    @property
    def is_stopping(self) -> bool:
        """Whether all jobs are being stopped."""
        return self._stopping.is_set()

    def submit(self, request: JobRequest, follower: Follower | None = None) -> str:
        """Start a job, or queue it, and return its id. Raises ConfigError for a job that cannot be
        run, QueueFull, and ArtefactError when it cannot be recorded."""
        aeon = self.configurations.find(request.configuration)
        aeon.prepare_run(request.task, inputs={**request.inputs, **request.files} or None)
        record = JobRecord(
            id=make_id(),
            configuration=request.configuration,
            task=request.task,
            inputs=dict(request.inputs),
            files=tuple(request.files),
            background=request.background,
            note=dict(request.note),
            created_at=datetime.now(UTC),
        )
        with self._lock:
            if self._stopping.is_set():
                raise QueueFull("the server is being stopped", hint="Ask again later.")
            if len(self._under_way) >= self.capacity.parallel + self.capacity.queue:
                raise QueueFull(
                    f"{len(self._under_way)} jobs run and wait already", hint="Ask again later."
                )
            self.folder.create(record, request.files)
            self._begin(record.id, follower)
        return record.id

    def find(self, job_id: str) -> JobStatus:
        """Return the present state of a job. Raises JobNotFound, UnreadableJob."""
        with self._lock:
            record = self._read(job_id)
            under_way = self._under_way.get(job_id)
            state = under_way.state if under_way else None
        return self.folder.describe(record, state)

    def list_latest(self, most: int, before: str = "") -> list[JobStatus]:
        """Return the latest jobs, newest first; with `before`, those requested before that id."""
        found = []
        for job_id in self.folder.list_ids(most, before):
            with suppress(AeonError):
                found.append(self.find(job_id))
        return found

    def count(self) -> dict[JobState, int]:
        """Count the jobs that run, are queued and wait for a person."""
        with self._lock:
            running = sum(each.state == "running" for each in self._under_way.values())
            queued = len(self._under_way) - running
            return {"running": running, "queued": queued, "waiting": len(self._waiting)}

    def follow(self, job_id: str, follower: Follower) -> bool:
        """Follow a job from now on; False where it is not under way."""
        with self._lock:
            under_way = self._under_way.get(job_id)
            if under_way is not None:
                under_way.followers.append(follower)
            return under_way is not None

    def leave(self, job_id: str, follower: Follower) -> None:
        """Stop following a job."""
        with self._lock, suppress(ValueError):
            if under_way := self._under_way.get(job_id):
                under_way.followers.remove(follower)

    def cancel(self, job_id: str, reason: str) -> JobStatus:
        """Stop a job for good, at its next safe boundary; one that has ended is not changed. Raises
        JobNotFound and ArtefactError."""
        with self._lock:
            record = self._read(job_id)
            if record.ended is None and record.cancelled is None:
                record = record.model_copy(update={"cancelled": reason})
                self.folder.write(record)
                self._stop(record)
        return self.find(job_id)

    def list_open_questions(self, job_id: str) -> tuple[OpenQuestion, ...]:
        """Return the open questions of a job. Raises JobNotFound, ConfigError."""
        status = self.find(job_id)
        if status.state != "waiting" or status.run is None:
            return ()
        return Desk(status.run).list_open()

    def settle(self, job_id: str, answers: Mapping[str, str]) -> JobStatus:
        """Answer questions of a job, all of them or none; once none is open, it is resumed. Raises
        JobNotFound, ConfigError for answers that do not fit, ArtefactError."""
        status = self.find(job_id)
        if status.state != "waiting" or status.run is None:
            raise ConfigError("the job waits for no answer", hint=f"It is {status.state}.")
        Desk(status.run).settle(answers)
        self._go_on_if_answered(job_id)
        return self.find(job_id)

    def close(self) -> None:
        """Stop all jobs at their next safe boundary, to be resumed later, and wait for that."""
        with self._lock:
            self._stopping.set()
            queued = list(self._queue)
            self._queue.clear()
            for under_way in self._under_way.values():
                under_way.control.request_stop("the server is being stopped")
            for under_way in queued:
                self._under_way.pop(under_way.job_id, None)
            threads = tuple(self._threads)
        for under_way in queued:
            _tell_end(under_way)
        for thread in threads:
            thread.join()

    def _read(self, job_id: str) -> JobRecord:
        record = self._unwritten.get(job_id) or self.folder.read(job_id)
        if record is None:
            raise JobNotFound(f"there is no job {job_id[:64]!r}")
        return record

    def go_on(self) -> None:
        """Resume jobs that a stop or a kill has interrupted: background jobs continue, jobs that
        wait for a person keep waiting, and jobs whose program is gone are cancelled."""
        with self._lock:
            for record in self.folder.list_open():
                self._go_on_with(record)
        looking = threading.Thread(target=self._look_for_answers, daemon=True, name="aeon-answers")
        self._threads.add(looking)
        looking.start()

    def _go_on_with(self, record: JobRecord) -> None:
        status = self.folder.describe(record, None)
        if end := _find_end(record, status.result):
            self._end(record, end)
        elif status.state == "waiting":
            self._waiting.add(record.id)
        elif not record.background:
            self._end(record.model_copy(update={"cancelled": _STOPPED}), "cancelled")
        elif self._has_configuration(record):
            self._begin(record.id)

    def _has_configuration(self, record: JobRecord) -> bool:
        """Whether the configuration of a job is available; a warning where it is not, which it may
        be again at the next start."""
        is_available = record.configuration in self.configurations.names
        if not is_available:
            why = f"there is no configuration {record.configuration!r}"
            _log.warning("job %s does not go on: %s", record.id, why)
        return is_available

    def _look_for_answers(self) -> None:
        """Resume jobs that were answered elsewhere, and those whose deadline has passed."""
        while not self._stopping.wait(_SECONDS_BETWEEN_LOOKS):
            for job_id in tuple(self._waiting):
                with suppress(AeonError):
                    self._go_on_if_answered(job_id)

    def _go_on_if_answered(self, job_id: str) -> None:
        with self._lock:
            is_waiting = self.find(job_id).state == "waiting"
            if self._stopping.is_set() or not is_waiting or self.list_open_questions(job_id):
                return
            record = self._read(job_id)
            if self._has_configuration(record):
                # The client has received the questions, and no longer waits.
                self.folder.write(record.model_copy(update={"background": True}))
                self._begin(job_id)
            self._waiting.discard(job_id)

    def _begin(self, job_id: str, follower: Follower | None = None) -> None:
        under_way = _UnderWay(job_id, followers=[follower] if follower else [])
        self._under_way[job_id] = under_way
        self._queue.append(under_way)
        self._start_next()

    def _start_next(self) -> None:
        running = sum(each.state == "running" for each in self._under_way.values())
        while self._queue and running < self.capacity.parallel:
            under_way = self._queue.popleft()
            under_way.state = "running"
            thread = threading.Thread(
                target=self._carry_out, args=(under_way,), daemon=True, name="aeon-job"
            )
            self._threads.add(thread)
            thread.start()
            running += 1

    def _stop(self, record: JobRecord) -> None:
        """Stop a cancelled job: at once where it does not run."""
        under_way = self._under_way.get(record.id)
        if under_way is not None and under_way.state == "running":
            under_way.control.request_stop(record.cancelled or "")
            return
        if under_way is not None:
            self._queue.remove(under_way)
            del self._under_way[record.id]
        self._waiting.discard(record.id)
        self._end(record, "cancelled")
        if under_way is not None:
            _tell_end(under_way)

    def _carry_out(self, under_way: _UnderWay) -> None:
        problem = None
        result = None
        try:
            result = self._run(under_way)
        except AeonError as error:
            problem = JobProblem(kind=type(error).__name__, message=error.message, hint=error.hint)
        except Exception as error:
            _log.exception("job %s failed unexpectedly", under_way.job_id)
            message = f"Aeon failed unexpectedly: {type(error).__name__}: {error}"
            problem = JobProblem(kind=type(error).__name__, message=message)
        with self._lock:
            try:
                self._finish(under_way.job_id, result, problem)
            except AeonError as error:
                _log.error("job %s: %s", under_way.job_id, error.message)
            self._under_way.pop(under_way.job_id, None)
            self._threads.discard(threading.current_thread())
            if not self._stopping.is_set():
                self._start_next()
        _tell_end(under_way)

    def _run(self, under_way: _UnderWay) -> RunResult:
        record = self._read(under_way.job_id)
        runs = self.folder.list_runs(record.id)
        before = runs[-1] if runs else None
        with self.configurations.open_for(record.configuration, before) as aeon:
            run = aeon.prepare_run(record.task, inputs=self.folder.locate_inputs(record) or None)
            if before is None:
                run.run_id = record.id
            place = RunPlace(directory=self.folder.find_next_run(record.id))
            return run.to_end(under_way.attend(), place)

    def _finish(self, job_id: str, result: RunResult | None, problem: JobProblem | None) -> None:
        """Record how a run of a job has ended, unless the job will be resumed."""
        record = self._read(job_id).model_copy(update={"problem": problem})
        if result is None:
            self._end(record, "failed")
        elif result.termination_reason == "waiting" and record.cancelled is None:
            self._waiting.add(job_id)
        elif end := _find_end(record, {"termination_reason": result.termination_reason}):
            self._end(record, end)

    def _end(self, record: JobRecord, end: JobEnd) -> None:
        ended = record.model_copy(update={"ended": end, "ended_at": datetime.now(UTC)})
        self.ended[record.configuration, end] += 1
        try:
            self.folder.write(ended)
        except ArtefactError:
            self._unwritten[ended.id] = ended
            raise


def _find_end(record: JobRecord, result: Mapping[str, object]) -> JobEnd | None:
    """Return how a job has ended, by the result of its latest run; None where it will be
    resumed."""
    reason = result.get("termination_reason")
    if reason in (None, "interrupted", "waiting"):
        return "cancelled" if record.cancelled is not None else None
    return "failed" if reason == "failed" else "done"


def _tell_end(under_way: _UnderWay) -> None:
    for follower in tuple(under_way.followers):
        follower.end()
