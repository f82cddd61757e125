"""One batch: its steps carried out at the same time (FR-087)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from aeon.errors import AeonError, LimitReached, StopRequested, StoreFailed, StoreMiss
from aeon.events import Emit, StepFinished, StepStarted, ignore
from aeon.execution.worker import CycleNeeded, Situation, StepWorker, Worked
from aeon.kernel.control import Workers, as_done
from aeon.llm.interface import CallSite, at_site
from aeon.plan.models import PlanStep
from aeon.plan.transitions import abandoned


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A step that was charged and numbered, ready to be carried out in its situation."""

    step: PlanStep
    site: CallSite
    situation: Situation


@dataclass(frozen=True, slots=True)
class Executed:
    """A step after its execution: `worked` is None when it was abandoned or put off, `ended_by` the error that must
    end the run."""

    step: PlanStep
    worked: Worked | None = None
    ended_by: AeonError | None = None


class StepExecutor:
    """Runs batches of steps on a pool of threads; what a step is, its worker knows."""

    def __init__(self, worker: StepWorker, emit: Emit = ignore) -> None:
        self.worker = worker
        self._emit = emit

    def run_batch(
        self, batch: Sequence[Dispatch], workers: Workers, stopping: Callable[[], bool], grace_seconds: float
    ) -> Iterator[Executed]:
        """Every step of a batch when it is done; last, as abandoned, those that a stop left unfinished (FR-064)."""
        for dispatch in batch:
            self._emit(_started(dispatch), dispatch.site)
        running = {workers.submit(partial(self._carry_out, dispatch)): dispatch for dispatch in batch}
        for future in as_done(list(running), stopping, grace_seconds):
            del running[future]
            yield future.result()
        for dispatch in running.values():
            yield self._finished(dispatch, Executed(abandoned(dispatch.step)))

    def _carry_out(self, dispatch: Dispatch) -> Executed:
        with at_site(dispatch.site):
            try:
                worked = self.worker.work(dispatch.step, dispatch.situation)
                executed = Executed(worked.step, worked, worked.ended_by)
            except CycleNeeded:
                executed = Executed(dispatch.step.model_copy(update={"status": "pending"}))
            except (LimitReached, StopRequested, StoreFailed, StoreMiss) as error:
                executed = Executed(abandoned(dispatch.step), ended_by=error)
        return self._finished(dispatch, executed)

    def _finished(self, dispatch: Dispatch, executed: Executed) -> Executed:
        site = dispatch.site
        self._emit(StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=executed.step), site)
        return executed


def _started(dispatch: Dispatch) -> StepStarted:
    return StepStarted(pass_number=dispatch.site.pass_number, cycle=dispatch.site.cycle, step=dispatch.step)
