"""One run's state, budget, calls and records."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from aeon.domain import events
from aeon.domain.errors import AeonError, LimitReached, LLMError, StopRequested
from aeon.domain.plan import Plan
from aeon.domain.request import CallName, CallSite, at_site
from aeon.execution.event_stream import EventStream
from aeon.execution.recorder import RunRecorder
from aeon.execution.threads import Workers, as_done
from aeon.execution.tool_rounds.allowance import RoundAllowance
from aeon.kernel.budget import TTLExpired
from aeon.kernel.control import RunControl
from aeon.kernel.settings import RunOptions
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.triggers import WHOLE
from aeon.refinement.models import RefinementOutcome

T = TypeVar("T")


class OpenRun(RunRecorder):
    """The shared record and budget of one run. Changed only by the kernel's thread; `state` may be
    read from any thread."""

    def __init__(
        self,
        stream: EventStream,
        control: RunControl,
        options: RunOptions,
        *,
        assessment_cycles: int = 1,
    ) -> None:
        super().__init__(stream, answer_mark=options.answer_mark)
        self.assessment_cycles = assessment_cycles
        self.workers = Workers(options.execution.max_parallel)
        self.grace_seconds = options.execution.grace_seconds
        self._control = control
        self._max_seconds = options.limits.max_seconds
        self.attempts = RefinementAttempts()
        self.refinement_error: AeonError | None = None
        """Why the latest refinement was unavailable or unusable."""
        self.step_errors: list[LLMError | None] = []

    def close(self) -> None:
        """Let the threads end, and stop listening."""
        self.workers.close()
        self.stop_listening()

    def affordable(self, cycles: int = 1) -> bool:
        """Whether the TTL allows one more call that costs `cycles`."""
        return self.state.ttl_remaining >= cycles

    def take(self, refined: RefinementOutcome) -> None:
        """Continue with a refined plan; fragments it left to a person are not refined again
        (FR-065)."""
        self.attempts = refined.attempts
        self.refinement_error = refined.error
        self.update(**refined.changes_of(self.state))
        for remark in refined.remarks:
            self.advise(remark.kind, remark.message, remark.step_id)
        for fragment, message in refined.list_fragments_for_person():
            if fragment not in self.state.manual_intervention:
                self.update(manual_intervention=(*self.state.manual_intervention, fragment))
                self.advise("manual_intervention", message, fragment if fragment != WHOLE else None)

    def call(self, name: CallName, ask: Callable[[], T], *, cycles: int = 1) -> T:
        """Make one structured call: charged, numbered, announced, run in a pool thread and
        awaited."""
        self.check_end()
        site = self.charge(cycles)
        self.announce(site, name)
        return self.wait_for(at_site(site)(ask))

    def wait_for(self, work: Callable[[], T]) -> T:
        """Run `work` in a pool thread and return its result, waiting until the run must stop."""
        submitted = [self.workers.submit(work)]
        for future in as_done(submitted, self.is_ending, self.grace_seconds):
            return future.result()
        self.check_end()
        raise AssertionError("a call is only abandoned when the run is stopping")

    def check_end(self) -> None:
        """Raise StopRequested or LimitReached if nothing new may start."""
        if self._control.stop_requested:
            raise StopRequested("the run was asked to stop")
        if self._is_out_of_time():
            message = f"the run has taken {self._max_seconds:g} seconds"
            raise LimitReached(message, limit="max_seconds")

    def is_ending(self) -> bool:
        """Whether nothing new may start."""
        return self._control.stop_requested or self._is_out_of_time()

    def _is_out_of_time(self) -> bool:
        return self._max_seconds is not None and self.watch.seconds >= self._max_seconds

    def charge(self, cycles: int, step_id: str | None = None) -> CallSite:
        """Charge the next dispatch and return its numbered place: the only place where a run is
        charged. Raises TTLExpired if `cycles` are not affordable."""
        if not self.affordable(cycles):
            raise TTLExpired
        self.update(ttl_used=self.state.ttl_used + cycles)
        state = self.state
        return CallSite(
            pass_number=state.pass_number,
            phase=state.phase,
            cycle=state.ttl_used if cycles else 0,
            sequence=self.stream.reserve(),
            step_id=step_id,
            mode=state.depth.reasoning_mode if state.depth else None,
        )

    def charge_units(self, cycles: int, step_id: str) -> tuple[CallSite, ...]:
        """Charge a step's dispatches of one cycle each and return their numbered places; a free
        step has one."""
        units = [1] * cycles or [0]
        return tuple(self.charge(unit, step_id) for unit in units)

    def charge_rounds(self, allowances: Iterable[RoundAllowance]) -> None:
        """Charge the further rounds of steps that used tools, set aside at their dispatch."""
        taken = sum(allowance.taken for allowance in allowances)
        self.update(ttl_used=self.state.ttl_used + taken)

    def announce(self, site: CallSite, call: str, *, plan: Plan | None = None) -> None:
        """Announce a dispatch; in a batch, with the `plan` at its start."""
        state = self.state
        used = site.cycle + site.round if site.cycle else state.ttl_used
        left = state.ttl_allocated - used if state.ttl_allocated else None
        self.stream.emit(
            events.CycleStarted(site=site, call=call, ttl_remaining=left, plan=plan or state.plan),
            site,
        )
