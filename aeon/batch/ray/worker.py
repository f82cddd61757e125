"""Runs rows on a node: one actor with many slots, each row in its own thread."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import aeon
from aeon.app.aeon import Aeon
from aeon.batch.dataset import Row
from aeon.batch.passing import make_passing_folder
from aeon.batch.ray.answers import write_entry
from aeon.batch.ray.limits import WorkerEndpoints
from aeon.batch.records import Running
from aeon.batch.run import Ended, RowRunner, open_aeon
from aeon.batch.runner import patience_of
from aeon.config.compose.literal import Composition
from aeon.config.origin import FILE
from aeon.config.settings import BatchSettings
from aeon.domain.errors import AeonError, StopRequested, StoreFailed
from aeon.kernel.control import RunControl
from aeon.observability.artefacts import allow_files
from aeon.store.models import Entry

T = TypeVar("T")


class Either(RunControl):
    """A control that is stopped when one of two is."""

    def __init__(self, one: RunControl, other: RunControl) -> None:
        self._both = one, other

    @property
    def stop_requested(self) -> bool:  # type: ignore[override]
        """Whether one of them is stopped."""
        return any(control.stop_requested for control in self._both)


@dataclass(frozen=True, slots=True)
class BatchJob:
    """The description of a batch for every node. It holds no secret: a node reads its own
    environment."""

    composition: Composition
    hashes: dict[str, str]
    of: int
    configuration: str
    settings: BatchSettings
    working_directory: Path
    version: str = aeon.__version__
    opened_with: tuple[str, ...] = ()
    file_digests: Mapping[str, str] = field(default_factory=dict)


def hash_files(aeon: Aeon) -> dict[str, str]:
    """SHA-256, hex, of the files among the inputs of a batch, by name."""
    return {name: file.sha256 for name, file in aeon.job.files.items()}


class Worker:
    """Runs rows of a job, `batch.parallel` at once. The actor `answers` stores the answers of rows,
    `limits` is that of `Limits`."""

    def __init__(self, job: BatchJob, answers: Any, limits: Any) -> None:
        self._job = job
        self._answers = answers
        self._limits = limits
        self._control = RunControl()
        patience = patience_of(job.settings, self._fail)
        self._endpoints = WorkerEndpoints(uuid4().hex, self._ask, self._end, patience)
        self._pool = ThreadPoolExecutor(job.settings.parallel, thread_name_prefix="aeon-row")
        # The node of the batch has checked whatever arrives here.
        self._passing = ExitStack()
        folder = self._passing.enter_context(make_passing_folder())
        self._running = Running(folder, trusts_all=True)

    async def open(self) -> str:
        """Compose the configuration on this node. Returns its problem, or an empty text."""
        return await self._in_thread(self._open)

    async def run(self, row: Row, attempt: int, saved: bytes | None) -> Ended | None:
        """Run a row, resuming the files of earlier attempts (`Running.pack_all`); None when it was
        asked to stop."""
        return await self._in_thread(lambda: self._run(row, attempt, saved))

    async def stop(self) -> None:
        """Ask all rows to stop."""
        self._control.request_stop()

    async def close(self) -> None:
        """Remove the files of this node."""
        await self._in_thread(self._passing.close)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def _open(self) -> str:
        job = self._job
        if aeon.__version__ != job.version:
            return f"it has Aeon {aeon.__version__}, the batch is of Aeon {job.version}"
        allow_files(job.settings.parallel)
        with suppress(OSError):
            os.chdir(job.working_directory)
        try:
            opened = open_aeon(
                job.composition, *job.opened_with, open_endpoints=self._endpoints.open
            )
        except AeonError as error:
            return f"{error.message} {error.hint or ''}".strip()
        if differing := [
            name for name, digest in job.hashes.items() if opened.hashes[name] != digest
        ]:
            return f"it does not have the same {' and '.join(differing)} as the node of the batch"
        # A node reads the files of the inputs itself.
        if hash_files(opened) != job.file_digests:
            return "it does not have the same input_files as the node of the batch"
        self._runner = RowRunner(
            opened, job.composition, job.of, job.configuration, self._running, self._endpoints
        )
        return ""

    def _run(self, row: Row, attempt: int, saved: bytes | None) -> Ended | None:
        own = RunControl()
        begun = set[Path]()
        if saved is not None:
            self._running.unpack_all(saved)

        def keep(directory: Path, entry: Entry, _: StoreFailed | None) -> None:
            # Stored where it survives this node; the first carries the run's origin, to resume it.
            origin = None if directory in begun else (directory / FILE).read_text(encoding="utf-8")
            answer = row.key, attempt, entry.request.key, write_entry(entry), origin
            is_kept = False
            try:
                is_kept = _call(self._answers.put, *answer)
            finally:
                if not is_kept:
                    own.request_stop()  # nothing more is asked, by other threads of the row either
            if not is_kept:
                raise StopRequested("the row is run elsewhere, or the batch is over")
            begun.add(directory)

        either = Either(self._control, own)
        self._endpoints.wait_until_up(lambda: either.stop_requested)
        try:
            return None if either.stop_requested else self._runner.run(row, either, keep)
        finally:
            self._running.drop(row.key)

    def _ask(self, method: str, *given: Any, **named: Any) -> Any:
        return _call(getattr(self._limits, method), *given, **named)

    def _fail(self, reason: str) -> None:
        self._control.request_stop()
        _call(self._limits.fail, reason)

    def _end(self, reached: str) -> None:
        self._control.request_stop()
        _call(self._limits.end, reached)


def _call(method: Any, *given: Any, **named: Any) -> Any:
    """Call a method of an actor. Raises StopRequested when the actor is gone, and with it the
    batch."""
    import ray

    try:
        return ray.get(method.remote(*given, **named))
    except ray.exceptions.RayTaskError as error:
        raise StoreFailed(f"the node of the batch: {error.cause}") from None
    except ray.exceptions.RayError:
        raise StopRequested("the batch is over") from None
