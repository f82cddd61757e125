"""Calls the tools of one round of a step, concurrently as far as the tools allow it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from contextvars import copy_context
from functools import partial

from aeon.domain.checks import ToolResult
from aeon.domain.errors import PersonAwaited
from aeon.domain.events import ToolCalled, ToolStarted
from aeon.domain.plan import PlanStep
from aeon.domain.request import current_site
from aeon.execution.threads import Workers
from aeon.execution.tool_rounds.allowance import EmitAt, RoundAllowance
from aeon.execution.tool_rounds.calls import NewCall
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import on_behalf_of


class SideBySide:
    """Makes the calls of tool rounds. A call that may have effects, or that a person must approve,
    runs alone, in its step's thread: after all earlier calls of its round and before all later
    ones. The others run concurrently: at most `most` at once in all steps, not counting calls that
    have no other beside them."""

    def __init__(self, invoker: ToolInvoker, most: int) -> None:
        self._invoker = invoker
        self._most = most
        self._places = threading.BoundedSemaphore(most)

    def call_all(
        self, step: PlanStep, allowance: RoundAllowance, new: Sequence[NewCall]
    ) -> list[ToolResult]:
        """Return the results of a round's calls, in order. Once a call waits for a person, all
        later ones are left to the resumed run, but a person is asked about them now, so that all
        can be approved together. Then raises PersonAwaited; and errors that must end the run."""
        results: list[ToolResult] = []
        awaited: PersonAwaited | None = None
        for group in self._group(new):
            try:
                if awaited is None:
                    results += self._call_group(step, allowance, group)
                else:
                    self._ask_ahead(step, group)
            except PersonAwaited as waits:
                awaited = waits
        if awaited is not None:
            raise awaited
        return results

    def _ask_ahead(self, step: PlanStep, group: Sequence[NewCall]) -> None:
        # A call that a person must approve is alone in its group.
        _, tool, arguments = group[0]
        with on_behalf_of(step):
            self._invoker.ask_ahead(tool, arguments)

    def _group(self, new: Sequence[NewCall]) -> Iterator[list[NewCall]]:
        together: list[NewCall] = []
        for call in new:
            if self._most > 1 and not self._invoker.must_be_alone(call.tool):
                together.append(call)
                continue
            if together:
                yield together
                together = []
            yield [call]
        if together:
            yield together

    def _call_group(
        self, step: PlanStep, allowance: RoundAllowance, group: Sequence[NewCall]
    ) -> list[ToolResult]:
        # Places of events are reserved, so that they do not depend on which call is faster.
        emit_at = allowance.reserve_events(current_site(), 2 * len(group))

        def call(place: int, new: NewCall) -> ToolResult:
            allowance.check_end()
            places = place, len(group) + place
            return self._call(step, new, emit_at, places)

        # Each call gets its own context: spans and values that a tool sets belong to that call
        # alone.
        work = [partial(copy_context().run, call, place, new) for place, new in enumerate(group)]
        if len(work) == 1:
            return [work[0]()]
        workers = Workers(min(len(work), self._most))
        futures = [workers.submit(partial(self._work_in_turn, each)) for each in work]
        workers.close()
        wait(futures)
        return [future.result() for future in futures]

    def _work_in_turn(self, work: partial[ToolResult]) -> ToolResult:
        with self._places:
            return work()

    def _call(
        self, step: PlanStep, new: NewCall, emit_at: EmitAt, places: tuple[int, int]
    ) -> ToolResult:
        number, tool, arguments = new
        site = current_site()
        step_id = step.step_id
        started = ToolStarted(
            site=site, step_id=step_id, tool=tool, arguments=arguments, number=number
        )
        emit_at(places[0], started)
        with on_behalf_of(step):
            result = self._invoker.invoke(tool, arguments)
        called = ToolCalled(site=site, step_id=step_id, result=result, number=number)
        emit_at(places[1], called)
        return result
