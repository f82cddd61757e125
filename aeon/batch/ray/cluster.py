"""The backend `ray`: rows run on the nodes of a cluster, their answers stored on the node of the
batch."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from aeon.batch.dataset import Row
from aeon.batch.ray.answers import Answers
from aeon.batch.ray.connect import connect
from aeon.batch.ray.limits import Limits
from aeon.batch.ray.nodes import Member, Nodes, start_actor
from aeon.batch.ray.worker import BatchJob, hash_files
from aeon.batch.run import AttendRow, Ended, RowRunner
from aeon.batch.runner import GroupControl
from aeon.config.settings import BatchSettings
from aeon.config.state import state_folder
from aeon.domain.errors import AeonError, Unexpected

_POLL_SECONDS = 0.2  # how soon a stop and a lost node are noticed
_MOST_ATTEMPTS = 16
_Task = tuple[Row, int]  # a row, and how often its actor has died


class Cluster:
    """A `Backend` of many nodes. `runner` is the batch's own; workers run its rows with runners
    like it. Raises ConfigError where Ray is missing, or a node cannot run the batch."""

    def __init__(self, runner: RowRunner, settings: BatchSettings) -> None:
        self._runner = runner
        self._running = runner.running
        self._ended = SimpleQueue[tuple[_Task, Member, Future[Ended | None]]]()
        self._again = deque[_Task]()
        self._has_more = True
        job = BatchJob(
            composition=runner.composition,
            hashes=dict(runner.aeon.hashes),
            of=runner.of,
            configuration=runner.configuration,
            settings=settings,
            working_directory=Path.cwd(),
            opened_with=runner.opened_with,
            file_digests=hash_files(runner.aeon),
        )
        self._ray = ray = connect(settings.ray.address)
        try:
            here = ray.get_runtime_context().get_node_id()
            of_batch = self._running.folder, runner.aeon.settings.store.own_backend, state_folder()
            self._answers = start_actor(ray, Answers, here, *of_batch, num_cpus=0)
            self._limits = start_actor(ray, Limits, here, settings.caps, num_cpus=0)
            self._of_actor(self._answers.open)
            self._nodes = Nodes(ray, job, settings.ray.actors_per_node, self._answers, self._limits)
        except BaseException:
            ray.shutdown()
            raise

    def run(
        self,
        rows: Iterator[Row],
        control: GroupControl,
        attend: AttendRow,  # noqa: ARG002  # nobody is on a node
    ) -> Generator[Ended, None, None]:
        """See `Backend`."""
        under_way = 0
        is_stopping = False
        self._has_more = True
        while True:
            if control.stop_requested and not is_stopping:
                is_stopping = True
                self._nodes.stop()
            under_way += 0 if is_stopping else self._submit(rows)
            if not under_way and (is_stopping or not self._has_rows_left):
                return
            self._nodes.look()
            try:
                task, member, outcome = self._ended.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            under_way -= 1
            member.free += 1
            ended = self._read_end(task, member, outcome, control)
            if ended is not None:
                yield ended

    @property
    def _has_rows_left(self) -> bool:
        return self._has_more or bool(self._again)

    def _read_end(
        self, task: _Task, member: Member, outcome: Future[Ended | None], control: GroupControl
    ) -> Ended | None:
        """Return the end of a row; None for one that was asked to stop, or is run again."""
        try:
            ended = outcome.result()
        except self._ray.exceptions.RayError as error:
            return self._try_again(task, member, error)
        if ended is None and not control.stop_requested:
            self._stop(control)
        return ended

    def _stop(self, control: GroupControl) -> None:
        """Stop all rows, because a worker has stopped."""
        if failure := self._of_actor(self._limits.fail):
            control.fail(failure)
        reached = self._of_actor(self._limits.end)
        control.request_stop(reached or "batch.backend=ray: no answers can be kept")

    def forget(self, key: str) -> None:
        """See `Backend`."""
        self._answers.forget.remote(key)
        self._running.drop(key)

    def close(self) -> None:
        """See `Backend`."""
        self._nodes.close()
        with suppress(AeonError):
            self._of_actor(self._answers.close)
        self._ray.shutdown()
        self._running.close()

    def _submit(self, rows: Iterator[Row]) -> int:
        """Submit rows as long as there is room, and return how many."""
        count = 0
        while member := self._nodes.roomiest():
            task = self._again.popleft() if self._again else next(((row, 0) for row in rows), None)
            if task is None:
                self._has_more = False
                break
            member.free -= 1
            run = member.actor.run.remote(*task, self._running.pack_all(task[0].key))
            run.future().add_done_callback(
                lambda outcome, of=(task, member): self._ended.put((*of, outcome))
            )
            count += 1
        return count

    def _try_again(self, task: _Task, member: Member, error: Any) -> Ended | None:
        """Run the row of a lost actor again, from its stored answers."""
        if isinstance(error, self._ray.exceptions.RayTaskError):
            raise _own(error)
        self._nodes.remove(member)
        row = task[0]
        attempt = task[1] + 1
        if attempt == _MOST_ATTEMPTS:
            message = (
                f"{attempt} times its process or its node died: {str(error).partition(chr(10))[0]}"
            )
            return self._runner.end_without_result(row, "failed", message)
        self._of_actor(self._answers.begin_again, row.key, attempt)
        self._again.append((row, attempt))
        return None

    def _of_actor(self, method: Any, *given: Any) -> Any:
        """Call a method of an actor on this node. Raises the actor's own error."""
        try:
            return self._ray.get(method.remote(*given))
        except self._ray.exceptions.RayError as error:
            raise _own(error) from None


def _own(error: Any) -> AeonError:
    """Convert an error raised in an actor to an AeonError."""
    cause = getattr(error, "cause", error)
    return cause if isinstance(cause, AeonError) else Unexpected(f"{type(cause).__name__}: {cause}")
