"""Batches: which steps start, and one batch's steps carried out at the same time (FR-087)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from aeon.domain.errors import AeonError, LimitReached, StopRequested, StoreFailed, StoreMiss
from aeon.domain.events import Emit, StepFinished, StepStarted, ignore
from aeon.domain.graph import pending_steps, ready_steps
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite, at_site
from aeon.execution.outcome import Worked
from aeon.execution.worker import Situation, StepWorker
from aeon.kernel.control import Workers, as_done
from aeon.kernel.recorder import OpenPass
from aeon.kernel.run import OpenRun
from aeon.memory.interface import Memory
from aeon.plan.transitions import abandon_step, incoming_context, start_step
from aeon.plan.views import step_key


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A step that was charged and numbered, ready to be carried out in its situation."""

    step: PlanStep
    site: CallSite
    situation: Situation


@dataclass(frozen=True, slots=True)
class Executed:
    """A step after its execution: `worked` is None when it was abandoned, `ended_by` the error that must
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
            self._emit(_start_event(dispatch), dispatch.site)
        running = {workers.submit(partial(self._carry_out, dispatch)): dispatch for dispatch in batch}
        for future in as_done(list(running), stopping, grace_seconds):
            del running[future]
            yield future.result()
        for dispatch in running.values():
            yield self._report_finished(dispatch, Executed(abandon_step(dispatch.step)))

    def _carry_out(self, dispatch: Dispatch) -> Executed:
        with at_site(dispatch.site):
            try:
                worked = self.worker.work(dispatch.step, dispatch.situation)
                executed = Executed(worked.step, worked, worked.ended_by)
            except (LimitReached, StopRequested, StoreFailed, StoreMiss) as error:
                executed = Executed(abandon_step(dispatch.step), ended_by=error)
        return self._report_finished(dispatch, executed)

    def _report_finished(self, dispatch: Dispatch, executed: Executed) -> Executed:
        site = dispatch.site
        self._emit(StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=executed.step), site)
        return executed


class Batches:
    """A run's batches: which steps start, what they are charged, and what follows when they end."""

    def __init__(self, executor: StepExecutor, run: OpenRun, memory: Memory, *, core: bool) -> None:
        self._executor, self._run, self._memory, self._core = executor, run, memory, core

    def runnable(self, plan: Plan) -> Sequence[PlanStep]:
        """The steps that may start now: all that are ready, or in core mode the next one, whatever came before it."""
        return pending_steps(plan)[:1] if self._core else ready_steps(plan)

    def carry_out(self, this: OpenPass) -> None:
        """The batch of a pass, from its charge to its records. Raises what must end the run."""
        run, batch = self._run, self._start()
        ended = self._executor.run_batch(batch, run.workers, run.boundary.is_reached, run.grace_seconds)
        done = {executed.step.step_id: self._store(this, executed) for executed in ended}
        self._conclude([done[dispatch.step.step_id] for dispatch in batch])
        run.boundary.check()

    def _start(self) -> list[Dispatch]:
        """Charge and number as many ready steps as the budget allows, in step order, and mark them running."""
        run, worker = self._run, self._executor.worker
        run.boundary.check()
        plan, results, allowed = run.plan, run.state.results, run.ttl.batch_size
        chosen: list[tuple[PlanStep, CallSite]] = []
        for step in self.runnable(plan):
            cost = worker.cost(step, results)
            if cost > allowed:
                continue
            allowed -= cost
            context = "" if self._core else worker.context(incoming_context(plan, step, results))
            chosen.append((start_step(step, context), run.charge(cost, step.step_id)))
        plan = plan.with_steps([step for step, _ in chosen])
        run.update(plan=plan)
        for _, site in chosen:
            run.announce(site, "step" if site.cycle else "tool")
        left = run.ttl.remaining if self._core else None
        memory = worker.recall()
        return [
            Dispatch(step, site, Situation(plan, results, left, free=not site.cycle, memory=memory))
            for step, site in chosen
        ]

    def _store(self, this: OpenPass, executed: Executed) -> Executed:
        run, step, worked = self._run, executed.step, executed.worked
        run.update(plan=run.plan.with_step(step))
        if worked is not None:
            run.step_errors.append(worked.error)
            this.results[step.step_id] = worked.result
            run.update(results={**run.state.results, step.step_id: worked.result})
        return executed

    def _conclude(self, batch: Sequence[Executed]) -> None:
        """What follows from a batch, in step order, whichever of its steps ended first (FR-053)."""
        for executed in batch:
            step_id, worked = executed.step.step_id, executed.worked
            if worked is not None:
                self._memory.write(step_key(step_id, "output"), worked.remembered)
                self._memory.write(step_key(step_id, "handoff"), worked.result.handoff)
            for kind, message in worked.remarks if worked else ():
                self._run.advise(kind, message, step_id)
        for executed in batch:
            if executed.ended_by is not None:
                raise executed.ended_by


def _start_event(dispatch: Dispatch) -> StepStarted:
    return StepStarted(pass_number=dispatch.site.pass_number, cycle=dispatch.site.cycle, step=dispatch.step)
