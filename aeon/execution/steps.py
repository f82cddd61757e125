"""One step carried out at its place in a run, and what that leaves of it, whatever ended the run
meanwhile."""

from __future__ import annotations

from typing import NamedTuple

from aeon.domain.errors import AeonError, LimitReached, StopRequested, StoreFailed, StoreMiss
from aeon.domain.events import Emit, StepFinished, ignore
from aeon.domain.plan import PlanStep
from aeon.domain.request import CallSite, at_site
from aeon.execution.outcome import Worked, find_outage
from aeon.execution.worker import Situation, StepWorker
from aeon.plan.transitions import abandon_step


class Executed(NamedTuple):
    """A step after its execution, `worked` None when it was abandoned; `ended_by` must end the
    run."""

    step: PlanStep
    worked: Worked | None = None
    ended_by: AeonError | None = None


class StepExecutor:
    """Carries out steps with a worker, and emits an event when each ends."""

    def __init__(self, worker: StepWorker, emit: Emit = ignore) -> None:
        self.worker = worker
        self.emit = emit

    def carry_out(self, step: PlanStep, site: CallSite, situation: Situation) -> Executed:
        """A step, charged and numbered, after its execution; abandoned when something ended the run
        meanwhile."""
        with at_site(site):
            try:
                worked = self.worker.work(step, situation)
                executed = Executed(worked.step, worked, find_outage(worked.error))
            except (LimitReached, StopRequested, StoreFailed, StoreMiss) as error:
                executed = Executed(abandon_step(step), ended_by=error)
        self.emit(
            StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=executed.step), site
        )
        return executed
