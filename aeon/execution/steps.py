"""Executes one step at its place in a run; its outcome is recorded even if something ends the run
meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from aeon.domain.errors import AeonError, LimitReached, StopRequested, StoreFailed, StoreMiss
from aeon.domain.events import Emit, StepFinished, StepStarted, ignore
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite, at_site
from aeon.execution.outcome import Worked, find_outage
from aeon.execution.samples import Dispatcher, Sampler
from aeon.execution.tool_rounds.allowance import (
    RoundAllowance,
    RoundDispatcher,
    share_rounds,
)
from aeon.execution.worker import Situation, StepWorker
from aeon.plan.transitions import abandon_step


class Executed(NamedTuple):
    """A step after its execution; `worked` is None if it was abandoned; `ended_by` is the error
    that must end the run."""

    step: PlanStep
    worked: Worked | None = None
    ended_by: AeonError | None = None


class StepExecutor:
    """Executes steps with a worker and emits an event when each ends; a `sampler` draws several
    answers to a step."""

    def __init__(
        self, worker: StepWorker, emit: Emit = ignore, sampler: Sampler | None = None
    ) -> None:
        self.worker = worker
        self.emit = emit
        self._sampler = sampler

    def count_cycles(
        self, step: PlanStep, plan: Plan, results: Mapping[str, StepResult] = MappingProxyType({})
    ) -> int:
        """Return the TTL cycles of a step, its samples included. A step that uses tools has no
        samples."""
        cost = self.worker.cost(step, plan, results)
        if self._sampler is None or not cost or self.worker.count_rounds(step):
            return cost
        return self._sampler.count_cycles(step, plan)

    def _has_samples(self, step: PlanStep, situation: Situation) -> bool:
        if self.worker.count_rounds(step):
            return False
        return self.count_cycles(step, situation.plan, situation.results) > 1

    def allow_rounds(
        self, batch: Sequence[PlanStep], spare: int, dispatcher: RoundDispatcher
    ) -> list[RoundAllowance]:
        """Return each batch step's share of the `spare` cycles for rounds of tool calls."""
        wanted = [self.worker.count_rounds(step) for step in batch]
        return [RoundAllowance(cycles, dispatcher) for cycles in share_rounds(wanted, spare)]

    def begin(self, step: PlanStep, site: CallSite) -> None:
        """Announce that a step is dispatched."""
        self.emit(StepStarted(pass_number=site.pass_number, cycle=site.cycle, step=step), site)

    def abandon(self, step: PlanStep, site: CallSite) -> Executed:
        """Abandon a step that is still running when its run ends."""
        left = abandon_step(step)
        self.emit(StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=left), site)
        return Executed(left)

    def carry_out(
        self,
        step: PlanStep,
        sites: Sequence[CallSite],
        situation: Situation,
        dispatcher: Dispatcher,
    ) -> Executed:
        """Execute a step that is charged and numbered at each of its `sites`; it is abandoned if
        something ends the run meanwhile."""
        site = sites[0]
        ask = partial(self.worker.work, step, situation)
        with at_site(site):
            try:
                dispatcher.check_end()  # it may have waited for a thread since it was dispatched
                # With one site left of its samples, too: the run has to say so.
                if self._sampler is not None and self._has_samples(step, situation):
                    call = self.worker.call
                    worked, ended_by = self._sampler.draw(
                        ask, sites, dispatcher, call, situation.plan
                    )
                else:
                    worked = ask()
                    ended_by = None
                ended_by = ended_by or find_outage(worked.error)
                executed = Executed(worked.step, worked, ended_by)
            # The step is not to blame: it stays pending, for a run that resumes this one.
            except (LimitReached, StopRequested, StoreFailed, StoreMiss) as error:
                executed = Executed(abandon_step(step), ended_by=error)
        self.emit(
            StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=executed.step), site
        )
        return executed
