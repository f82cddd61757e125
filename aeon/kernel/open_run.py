"""The run that is under way: its state, its budget, its calls and its records. It decides nothing but when to stop."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Literal, TypeVar

from aeon.domain import events
from aeon.domain.errors import LimitReached, LLMError, StopRequested
from aeon.domain.history import Advisory, AdvisoryKind, Phase, RunState
from aeon.domain.plan import Plan
from aeon.domain.request import CallName, CallSite, at_site
from aeon.kernel.control import RunControl, Workers, as_done
from aeon.kernel.recorder import OpenPass, OpenPhase, Stopwatch
from aeon.kernel.settings import ExecutionSettings
from aeon.kernel.ttl import TTL
from aeon.llm.stack.limits import LimitSettings
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.transitions import cut_off
from aeon.plan.triggers import WHOLE, fragment_of
from aeon.refinement.models import Refined

T = TypeVar("T")


class OpenRun:
    """One run, from its first call to its last record. Changed by the kernel's thread alone; `state` may be read from
    any. `small` says that its task is to cost no more than it must."""

    def __init__(
        self,
        stream: events.EventStream,
        control: RunControl,
        execution: ExecutionSettings,
        limits: LimitSettings,
        answer_mark: str = "",
    ) -> None:
        self.stream, self.workers = stream, Workers(execution.max_parallel)
        self.state, self.ttl = RunState(answer_mark=answer_mark), TTL(allocated=0)
        self.attempts = RefinementAttempts()
        self.small = False
        self.watch, self.grace_seconds = Stopwatch(), execution.grace_seconds
        self._control, self._max_seconds = control, limits.max_seconds
        self.step_errors: list[LLMError | None] = []
        self._pass: OpenPass | None = None

    @property
    def plan(self) -> Plan:
        """The plan in force, from phase B on."""
        plan = self.state.plan
        if plan is None:
            raise AssertionError("there is no plan before phase B")
        return plan

    def update(self, **changes: Any) -> None:
        """Change fields of the state."""
        self.state = self.state.model_copy(update=changes)

    def allocate(self, ttl: TTL, **changes: Any) -> None:
        """Take another budget, and change fields of the state with it."""
        self.ttl = ttl
        self.update(ttl_allocated=ttl.allocated, **changes)

    def advise(self, kind: AdvisoryKind, message: str, step_id: str | None = None) -> None:
        """Tell a person something, once."""
        advisory = Advisory(kind=kind, message=message, pass_number=self.state.pass_number, step_id=step_id)
        # A tool is missing from the plan on, and again when its step is carried out.
        again = {"pass_number"} if kind == "unknown_tool" else set()
        known = (told.model_dump(exclude=again) for told in self.state.advisories)
        if advisory.model_dump(exclude=again) not in known:
            self.update(advisories=(*self.state.advisories, advisory))
            self.stream.emit(events.AdvisoryRaised(advisory=advisory))

    def cut_off(self) -> None:
        """Mark the steps that ran, or could have run, as incomplete."""
        if self.state.plan is not None:
            self.update(plan=cut_off(self.state.plan))

    def take(self, refined: Refined) -> None:
        """Go on with the plan of a refinement; what it left to a person is not refined again (FR-065)."""
        state = self.state
        self.attempts = refined.attempts
        self.update(
            plan=refined.plan,
            refused=(*state.refused, *(refined.record.refused if refined.record else ())),
            attempts=dict(refined.attempts.by_fragment),
            refinements=refined.attempts.total,
        )
        for remark in refined.remarks:
            self.advise(remark.kind, remark.message, remark.step_id)
        for step_id in refined.handed_over:
            self._leave_to_person(step_id, f"Step {step_id} needs a person's attention.")
        for issue in refined.conflicts:
            self.update(conflicts=(*self.state.conflicts, issue))
            fragment = fragment_of(issue)
            said = f"A contradiction that refinement leaves alone needs a person's attention, at {fragment}: "
            self._leave_to_person(fragment, said + issue.description)

    def _leave_to_person(self, fragment: str, message: str) -> None:
        if fragment not in self.state.manual_intervention:
            self.update(manual_intervention=(*self.state.manual_intervention, fragment))
            self.advise("manual_intervention", message, fragment if fragment != WHOLE else None)

    def common_error(self) -> LLMError | None:
        """The error that every step so far has failed with, the last of its kind; None if there is no such."""
        kinds = {(type(error), getattr(error, "status", None)) for error in self.step_errors}
        return self.step_errors[-1] if len(kinds) == 1 else None

    def affordable(self) -> bool:
        """Whether the TTL allows one more call."""
        return self.ttl.remaining > 0

    def call(self, name: CallName, ask: Callable[[], T]) -> T:
        """One structured call: charged to the TTL, numbered, dispatched, waited for."""
        self.check_stop()
        self.ttl = self.ttl.charged()
        self.update(ttl_used=self.ttl.used)
        return self.dispatch(self.site(), name, ask)

    def dispatch(self, site: CallSite, call: CallName, ask: Callable[[], T]) -> T:
        """Make a call at its site, in a thread of the pool, and wait for it."""

        def at() -> T:
            with at_site(site):
                return ask()

        self.announce(site, call)
        for future in as_done([self.workers.submit(at)], self.stopping, self.grace_seconds):
            return future.result()
        self.check_stop()
        raise AssertionError("a call is only abandoned when the run is stopping")

    def site(self, step_id: str | None = None, free: bool = False) -> CallSite:
        """The place of the call that is dispatched next, numbered; a free one was not charged."""
        return CallSite(
            pass_number=self.state.pass_number,
            phase=self.state.phase,
            cycle=0 if free else self.ttl.used,
            sequence=self.stream.reserve(),
            step_id=step_id,
            mode=self.state.depth.reasoning_mode if self.state.depth else None,
        )

    def announce(self, site: CallSite, call: str) -> None:
        """Tell of a dispatch."""
        used = site.cycle or self.ttl.used
        remaining = self.ttl.allocated - used if self.ttl.allocated else None
        self.stream.emit(events.CycleStarted(site=site, call=call, ttl_remaining=remaining, plan=self.state.plan), site)

    def stopping(self) -> bool:
        """Whether nothing new may start."""
        return self._control.stop_requested or self._out_of_time()

    def check_stop(self) -> None:
        """A safe boundary: nothing is under way here. Raises StopRequested or LimitReached."""
        if self._control.stop_requested:
            raise StopRequested("the run was asked to stop")
        if self._out_of_time():
            raise LimitReached("max_seconds", f"the run has taken {self._max_seconds:g} seconds")

    def _out_of_time(self) -> bool:
        return self._max_seconds is not None and self.watch.seconds >= self._max_seconds

    @contextmanager
    def open_pass(self, number: int, ready: tuple[str, ...], *, brief: bool) -> Iterator[OpenPass]:
        """A pass, recorded however it ends; one that is not completed cuts off the steps that were running."""
        state = self.state
        self._pass = this = OpenPass(number, state.plan, self.ttl, state.profile, state.depth, brief)
        self.update(pass_number=number)
        self.stream.emit(events.PassStarted(pass_number=number, ttl_remaining=self.ttl.remaining, ready=ready))
        try:
            yield this
        finally:
            if not this.complete:
                self.cut_off()
            self.update(passes=(*self.state.passes, this.closed(self.state.plan, self.ttl)))
            self.stream.emit(
                events.PassFinished(pass_number=number, ttl_remaining=self.ttl.remaining, complete=this.complete)
            )

    def record_start(self) -> None:
        """Record pass 0 of a run that ended before it began: what was called belongs to a pass."""
        if not self.state.passes:
            this = OpenPass(0, None, self.ttl, self.state.profile, self.state.depth, watch=self.watch)
            self.update(passes=(this.closed(None, self.ttl),))

    @contextmanager
    def phase(self, stage: str, phase: Phase | Literal["PROFILE"]) -> Iterator[OpenPhase]:
        """A phase, told of, and timed where it belongs to a pass."""
        number = self.state.pass_number
        self.update(phase=phase)
        self.stream.emit(events.PhaseStarted(stage=stage, phase=phase, pass_number=number))
        timed = self._pass.phase(phase) if self._pass and phase != "PROFILE" else nullcontext(OpenPhase())
        note = OpenPhase("abandoned")
        try:
            with timed as note:
                yield note
        finally:
            self.stream.emit(events.PhaseFinished(stage=stage, phase=phase, pass_number=number, outcome=note.outcome))
