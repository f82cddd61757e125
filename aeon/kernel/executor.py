"""Batches: which steps start, and one batch's steps carried out at the same time (FR-087)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from aeon.domain.events import StepFinished, StepStarted
from aeon.domain.graph import find_pending_steps, ready_steps
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite
from aeon.execution.recorder import OpenPass
from aeon.execution.steps import Executed, StepExecutor
from aeon.execution.threads import as_done
from aeon.execution.worker import Situation
from aeon.kernel.budget import batch_size
from aeon.kernel.run import OpenRun
from aeon.memory.interface import Memory
from aeon.plan.transitions import abandon_step, collect_incoming_context, start_step
from aeon.plan.views import step_key


class Batches:
    """A run's batches: which steps start, what they are charged, and what follows when they end."""

    def __init__(self, executor: StepExecutor, run: OpenRun, memory: Memory, *, core: bool) -> None:
        self.executor = executor
        self._run = run
        self._memory = memory
        self._core = core
        self.worker = executor.worker

    def runnable(self, plan: Plan) -> Sequence[PlanStep]:
        """The steps that may start now: all that are ready, or in core mode the next one, whatever
        came before it."""
        return find_pending_steps(plan)[:1] if self._core else ready_steps(plan)

    def carry_out(self, this: OpenPass) -> None:
        """The batch of a pass, from its charge to its records; what a stop leaves unfinished is
        abandoned (FR-064). Raises what must end the run."""
        run = self._run
        executor = self.executor
        batch = self._start()
        for step, site, _ in batch:
            executor.emit(
                StepStarted(pass_number=site.pass_number, cycle=site.cycle, step=step), site
            )
        running = {
            run.workers.submit(partial(executor.carry_out, *dispatch)): dispatch
            for dispatch in batch
        }
        ended: dict[str, Executed] = {}
        for future in as_done(list(running), run.is_ending, run.grace_seconds):
            step_id = running.pop(future)[0].step_id
            ended[step_id] = executed = future.result()
            run.update(plan=run.plan.with_steps(executed.step))
            if executed.worked is not None:
                run.step_errors.append(executed.worked.error)
                this.results[step_id] = executed.worked.result
                run.update(results={**run.state.results, step_id: executed.worked.result})
        for step, site, _ in running.values():
            left = abandon_step(step)
            ended[step.step_id] = Executed(left)
            executor.emit(
                StepFinished(pass_number=site.pass_number, cycle=site.cycle, step=left), site
            )
            run.update(plan=run.plan.with_steps(left))
        self._conclude([ended[step.step_id] for step, _, _ in batch])
        run.check_end()

    def _start(self) -> list[tuple[PlanStep, CallSite, Situation]]:
        run = self._run
        run.check_end()
        plan = run.plan
        results = run.state.results
        allowed = batch_size(run.state.ttl_remaining, run.assessment_cycles)
        chosen: list[tuple[PlanStep, CallSite]] = []
        for step in self.runnable(plan):
            cost = self.worker.cost(step, results)
            if cost <= allowed:
                allowed -= cost
                context = ""
                if not self._core:
                    context = self.worker.context(collect_incoming_context(plan, step, results))
                chosen.append((start_step(step, context), run.charge(cost, step.step_id)))
        plan = plan.with_steps(*(step for step, _ in chosen))
        run.update(plan=plan)
        for _, site in chosen:
            run.announce(site, self.worker.call if site.cycle else "tool")
        left = run.state.ttl_remaining if self._core else None
        memory = self.worker.recall()
        return [
            (step, site, Situation(plan, results, left, free=not site.cycle, memory=memory))
            for step, site in chosen
        ]

    def _conclude(self, batch: Sequence[Executed]) -> None:
        """What follows from a batch, in step order, whichever of its steps ended first (FR-053)."""
        for executed in batch:
            step_id = executed.step.step_id
            worked = executed.worked
            if worked is not None:
                self._memory.write(step_key(step_id, "output"), worked.remembered)
                self._memory.write(step_key(step_id, "handoff"), worked.result.handoff)
                for kind, message in worked.remarks:
                    self._run.advise(kind, message, step_id)
        for executed in batch:
            if executed.ended_by is not None:
                raise executed.ended_by
