"""The backend `ray`: rows run on the nodes of a cluster, their answers kept on the node of the batch."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from aeon.batch.dataset import Row
from aeon.batch.ray.answers import Answers
from aeon.batch.ray.connect import connect
from aeon.batch.ray.limits import Limits
from aeon.batch.ray.nodes import Member, Nodes
from aeon.batch.ray.worker import Job
from aeon.batch.results import problem_line
from aeon.batch.run import Ended, RowRunner
from aeon.config.settings import BatchSettings
from aeon.domain.errors import AeonError, Unexpected
from aeon.kernel.control import RunControl
from aeon.llm.stack.limits import LimitSettings

_POLL_SECONDS = 0.2
_MOST_ATTEMPTS = 16
_log = logging.getLogger("aeon")


@dataclass(eq=False, slots=True)
class Task:
    """A row on its way; each attempt ended with the death of an actor."""

    row: Row
    attempt: int = 0


class Cluster:
    """A `Backend` of many nodes. `runner` is the batch's own; its rows are run by others like it. Raises ConfigError
    where there is no Ray, or a node cannot run the batch."""

    def __init__(self, runner: RowRunner, settings: BatchSettings) -> None:
        self._runner, self._running = runner, runner.running
        self._ended = SimpleQueue[tuple[Task, Member, Future[Ended | None]]]()
        self._again = deque[Task]()
        self._ray = ray = connect(settings.ray.address)
        try:
            self._answers = self._start(Answers, runner.running.folder)
            self._limits = self._start(
                Limits, LimitSettings.model_construct(max_cost=settings.max_cost, max_llm_calls=settings.max_llm_calls)
            )
            try:
                ray.get(self._answers.open.remote())
            except ray.exceptions.RayTaskError as error:
                raise _own(error) from None
            hashes, here = dict(runner.aeon.hashes), Path.cwd()
            of, configuration = runner.of, runner.configuration
            job = Job(runner.composition, hashes, of, configuration, settings.parallel, here)
            self._nodes = Nodes(ray, job, settings.ray.actors_per_node, self._answers, self._limits)
            self._nodes.open()
        except BaseException:
            ray.shutdown()
            raise

    def run(self, rows: Iterator[Row], control: RunControl) -> Iterator[Ended]:
        """See `Backend`."""
        under_way, is_told, self._has_more = 0, False, True
        while True:
            if control.stop_requested and not is_told:
                is_told = True
                self._nodes.stop()
            under_way += 0 if is_told else self._submit(rows)
            if not under_way and (is_told or not (self._has_more or self._again)):
                return
            self._nodes.look()
            try:
                task, member, outcome = self._ended.get(timeout=_POLL_SECONDS)
            except Empty:
                continue
            under_way -= 1
            if (ended := self._take(task, member, outcome)) is not None:
                yield ended
            elif not is_told and (reached := self._ray.get(self._limits.end.remote())):
                _log.warning(reached)
                control.request_stop()

    def forget(self, number: int) -> None:
        """See `Backend`."""
        self._answers.forget.remote(number)
        self._running.drop(number)

    def close(self) -> None:
        """See `Backend`."""
        self._nodes.close()
        with suppress(self._ray.exceptions.RayError):
            self._ray.get(self._answers.close.remote())
        self._ray.shutdown()
        self._running.close()

    def _start(self, kind: type, *given: Any) -> Any:
        """Start an actor on this node."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(self._ray.get_runtime_context().get_node_id(), soft=False)
        return self._ray.remote(kind).options(num_cpus=0, scheduling_strategy=here).remote(*given)

    def _submit(self, rows: Iterator[Row]) -> int:
        """Hand out rows as long as there is room. Returns how many."""
        count = 0
        while member := self._nodes.roomiest():
            task = self._again.popleft() if self._again else next((Task(row) for row in rows), None)
            if task is None:
                self._has_more = False
                break
            member.free -= 1
            saved = self._running.pack_all(task.row.number)
            run = member.actor.run.remote(task.row, task.attempt, saved)
            run.future().add_done_callback(partial(self._note, task, member))
            count += 1
        return count

    def _note(self, task: Task, member: Member, outcome: Future[Ended | None]) -> None:
        self._ended.put((task, member, outcome))

    def _take(self, task: Task, member: Member, outcome: Future[Ended | None]) -> Ended | None:
        """What a row has come to; one whose actor is gone is run again, from what it was answered."""
        member.free += 1
        try:
            return outcome.result()
        except self._ray.exceptions.RayTaskError as error:
            raise _own(error) from None
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().partition("\n")[0]
        self._nodes.remove(member)
        task.attempt += 1
        if task.attempt == _MOST_ATTEMPTS:
            message = f"{_MOST_ATTEMPTS} times its process or its node died: {reason}"
            return Ended(problem_line(task.row, self._runner.of, self._runner.configuration, "failed", message))
        self._ray.get(self._answers.begin_again.remote(task.row.number, task.attempt))
        self._again.append(task)
        return None


def _own(error: Any) -> Exception:
    """The error that an actor has raised, as one of Aeon's."""
    cause = error.cause
    return cause if isinstance(cause, AeonError) else Unexpected(f"{type(cause).__name__}: {cause}")
