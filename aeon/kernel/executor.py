"""Batches: select the steps to start and execute them concurrently (FR-087)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from aeon.domain.graph import find_pending_steps, ready_steps
from aeon.domain.history import StepResult
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import CallSite
from aeon.execution.forecast import batch_size, spare_cycles
from aeon.execution.outcome import remember_steps
from aeon.execution.recorder import OpenPass
from aeon.execution.steps import Executed, StepExecutor
from aeon.execution.threads import as_done
from aeon.execution.worker import Situation
from aeon.kernel.run import OpenRun
from aeon.memory.interface import Memory
from aeon.plan.transitions import collect_incoming_context, start_step


class Batches:
    """A run's batches: which steps start, what they are charged, and what happens when they end."""

    def __init__(self, executor: StepExecutor, run: OpenRun, memory: Memory, *, core: bool) -> None:
        self.executor = executor
        self._run = run
        self._memory = memory
        self._core = core
        self.worker = executor.worker

    def runnable(self, plan: Plan) -> Sequence[PlanStep]:
        """Return the steps that may start now: all ready ones, or in core mode the next one,
        whatever came before it."""
        return find_pending_steps(plan)[:1] if self._core else ready_steps(plan)

    def carry_out(self, this: OpenPass) -> None:
        """Execute the batch of a pass, from its charge to its records; steps unfinished at a stop
        are abandoned (FR-064). Raises errors that must end the run."""
        run = self._run
        executor = self.executor
        batch = self._start()
        for step, (site, *_), _ in batch:
            executor.begin(step, site)
        running = {
            run.workers.submit(partial(executor.carry_out, *dispatch, run)): dispatch
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
        for step, (site, *_), _ in running.values():
            ended[step.step_id] = left = executor.abandon(step, site)
            run.update(plan=run.plan.with_steps(left.step))
        run.charge_rounds(situation.allowance for _, _, situation in batch)
        self._conclude([ended[step.step_id] for step, _, _ in batch])
        run.check_end()

    def _start(self) -> list[tuple[PlanStep, tuple[CallSite, ...], Situation]]:
        run = self._run
        run.check_end()
        results = run.state.results
        chosen = list(self._choose(run.plan, results))
        plan = run.plan.with_steps(*(step for step, _ in chosen))
        run.update(plan=plan)
        for step, (site, *_) in chosen:
            run.announce(site, self.worker.name_work(step, site.cycle))
        left = run.state.ttl_remaining if self._core else None
        memory = self.worker.recall()
        assessment = 0 if self._core else run.assessment_cycles
        pending = len(find_pending_steps(plan))
        spare = spare_cycles(run.state.ttl_remaining, pending, assessment)
        rounds = self.executor.allow_rounds([step for step, _ in chosen], spare, run)
        return [
            (step, sites, Situation(plan, results, left, not sites[0].cycle, memory, allowed))
            for (step, sites), allowed in zip(chosen, rounds, strict=True)
        ]

    def _choose(
        self, plan: Plan, results: Mapping[str, StepResult]
    ) -> Iterator[tuple[PlanStep, tuple[CallSite, ...]]]:
        """Yield the steps of a batch, each charged; with as many samples as the budget allows."""
        run = self._run
        left = run.state.ttl_remaining
        allowed = left if self._core else batch_size(left, run.assessment_cycles)
        for step in self.runnable(plan):
            cost = min(self.executor.count_cycles(step, plan, results), max(1, allowed))
            if cost <= allowed:
                allowed -= cost
                parts = () if self._core else collect_incoming_context(plan, step, results)
                context = self.worker.context(parts) if parts else ""
                yield start_step(step, context), run.charge_units(cost, step.step_id)

    def _conclude(self, batch: Sequence[Executed]) -> None:
        """Record a batch in step order, whichever of its steps ended first (FR-053)."""
        for executed in batch:
            worked = executed.worked
            if worked is not None:
                remember_steps(self._memory, [worked.result])
                for kind, message in worked.remarks:
                    self._run.advise(kind, message, executed.step.step_id)
        self._run.update(plan=self.worker.settle_steps(self._run.plan, self._run.state))
        for executed in batch:
            if executed.ended_by is not None:
                raise executed.ended_by
