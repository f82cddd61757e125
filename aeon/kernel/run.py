"""One run's state, budget, calls and records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from operator import itemgetter
from typing import Any, Literal, TypeVar

from aeon.domain import events
from aeon.domain.errors import LimitReached, LLMError, StopRequested
from aeon.domain.history import Advisory, AdvisoryKind, LLMOutput, Phase, PhaseRecord, RunState
from aeon.domain.plan import Plan
from aeon.domain.request import CallName, CallSite, at_site
from aeon.kernel.budget import Stopwatch, TTLExpired
from aeon.kernel.control import RunControl, Workers, as_done
from aeon.kernel.event_stream import EventStream
from aeon.kernel.recorder import OpenPass, OpenPhase
from aeon.kernel.settings import RunOptions
from aeon.plan.attempts import RefinementAttempts
from aeon.plan.transitions import cut_off
from aeon.plan.triggers import WHOLE, fragment_of
from aeon.refinement.models import Refined

T = TypeVar("T")
_Answer = events.CallAnswered | events.RepairFinished | events.ToolCalled


class OpenRun:
    """What the parts of one run share. Changed by the kernel's thread alone; `state` may be read from any."""

    def __init__(
        self, stream: EventStream, control: RunControl, options: RunOptions, *, assessment_cycles: int = 1
    ) -> None:
        self.stream, self.assessment_cycles = stream, assessment_cycles
        self.workers, self.grace_seconds = Workers(options.execution.max_parallel), options.execution.grace_seconds
        self.watch, self._control, self._max_seconds = Stopwatch(), control, options.limits.max_seconds
        self.state = RunState(answer_mark=options.answer_mark)
        self.attempts = RefinementAttempts()
        self.step_errors: list[LLMError | None] = []
        self._advised: set[tuple[object, ...]] = set()
        self._pass: OpenPass | None = None
        self._answers: list[tuple[int, int, _Answer]] = []
        stream.subscribers.append(self._note)

    def _note(self, recorded: events.Recorded) -> None:
        if isinstance(recorded.event, _Answer):
            self._answers.append((recorded.sequence, recorded.part, recorded.event))

    def close(self) -> None:
        """Let the threads end, and listen no more."""
        self.workers.close()
        self.stream.subscribers.remove(self._note)

    def snapshot(self) -> RunState:
        """The state with what model, supervisor and tools answered, in order of dispatch."""
        found = [event for *_, event in sorted(self._answers, key=itemgetter(0, 1))]
        outputs = tuple(
            LLMOutput(call=event.call, cycle=event.site.cycle, step_id=event.site.step_id, text=event.text)
            for event in found
            if isinstance(event, events.CallAnswered)
        )
        repairs = tuple(event.record for event in found if isinstance(event, events.RepairFinished))
        tools = tuple(event.result for event in found if isinstance(event, events.ToolCalled))
        answers = {"llm_outputs": outputs, "supervisor_actions": repairs, "tool_history": tools}
        return self.state.model_copy(update=answers)

    def common_error(self) -> LLMError | None:
        """The error that every step has failed with in a run without any answer; None if there is no such."""
        kinds = {(type(error), getattr(error, "status", None)) for error in self.step_errors}
        is_answered = any(isinstance(event, events.CallAnswered) for *_, event in self._answers)
        return self.step_errors[-1] if len(kinds) == 1 and not is_answered else None

    @property
    def plan(self) -> Plan:
        """The plan in force, from phase B on."""
        assert self.state.plan is not None, "there is no plan before phase B"
        return self.state.plan

    def update(self, **changes: Any) -> None:
        """Change fields of the state."""
        self.state = self.state.model_copy(update=changes)

    def affordable(self, cycles: int = 1) -> bool:
        """Whether the TTL allows one more call, which costs so many cycles."""
        return self.state.ttl_remaining >= cycles

    def advise(self, kind: AdvisoryKind, message: str, step_id: str | None = None) -> None:
        """Advise the person, once a pass; of a missing tool once a run."""
        number = self.state.pass_number
        key = (kind, message, step_id, None if kind == "unknown_tool" else number)
        if key not in self._advised:
            self._advised.add(key)
            advisory = Advisory(kind=kind, message=message, pass_number=number, step_id=step_id)
            self.update(advisories=(*self.state.advisories, advisory))
            self.stream.emit(events.AdvisoryRaised(advisory=advisory))

    def take(self, refined: Refined) -> None:
        """Go on with the plan of a refinement; what it left to a person is not refined again (FR-065)."""
        state = self.state
        self.attempts = refined.attempts
        self.update(
            plan=refined.plan,
            refused=(*state.refused, *(refined.record.refused if refined.record else ())),
            attempts=dict(refined.attempts.by_fragment),
            refinements=refined.attempts.total,
            conflicts=(*state.conflicts, *refined.conflicts),
        )
        for remark in refined.remarks:
            self.advise(remark.kind, remark.message, remark.step_id)
        left = [(step_id, f"Step {step_id} needs a person's attention.") for step_id in refined.handed_over]
        for issue in refined.conflicts:
            where = fragment_of(issue)
            message = f"A contradiction that refinement leaves alone needs a person's attention, at {where}: "
            left.append((where, message + issue.description))
        for fragment, message in left:
            if fragment not in self.state.manual_intervention:
                self.update(manual_intervention=(*self.state.manual_intervention, fragment))
                self.advise("manual_intervention", message, fragment if fragment != WHOLE else None)

    def call(self, name: CallName, ask: Callable[[], T], *, cycles: int = 1) -> T:
        """One structured call: charged, numbered, announced, made in a thread of the pool and waited for."""
        self.check_end()
        site = self.charge(cycles)
        self.announce(site, name)

        def at() -> T:
            with at_site(site):
                return ask()

        for future in as_done([self.workers.submit(at)], self.is_ending, self.grace_seconds):
            return future.result()
        self.check_end()
        raise AssertionError("a call is only abandoned when the run is stopping")

    def check_end(self) -> None:
        """Raise StopRequested or LimitReached when nothing new may start."""
        if self._control.stop_requested:
            raise StopRequested("the run was asked to stop")
        if self._is_out_of_time():
            raise LimitReached(f"the run has taken {self._max_seconds:g} seconds", limit="max_seconds")

    def is_ending(self) -> bool:
        """Whether nothing new may start."""
        return self._control.stop_requested or self._is_out_of_time()

    def _is_out_of_time(self) -> bool:
        return self._max_seconds is not None and self.watch.seconds >= self._max_seconds

    def charge(self, cycles: int, step_id: str | None = None) -> CallSite:
        """The numbered place of the next dispatch, which costs so many `cycles`: the only place where a run is charged.
        Raises TTLExpired when they are not affordable."""
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

    def announce(self, site: CallSite, call: str) -> None:
        """Announce a dispatch."""
        state = self.state
        left = state.ttl_allocated - (site.cycle or state.ttl_used) if state.ttl_allocated else None
        self.stream.emit(events.CycleStarted(site=site, call=call, ttl_remaining=left, plan=state.plan), site)

    @contextmanager
    def open_pass(self, number: int, ready: tuple[str, ...], *, brief: bool) -> Iterator[OpenPass]:
        """A pass, recorded however it ends; one that is not completed cuts off the steps that were running."""
        self._pass = this = OpenPass(number, self.state, brief)
        self.update(pass_number=number)
        left = self.state.ttl_remaining
        self.stream.emit(events.PassStarted(pass_number=number, ttl_remaining=left, ready=ready))
        try:
            yield this
        finally:
            if not this.complete and self.state.plan is not None:
                self.update(plan=cut_off(self.state.plan))
            self.update(passes=(*self.state.passes, this.close(self.state)))
            left = self.state.ttl_remaining
            self.stream.emit(events.PassFinished(pass_number=number, ttl_remaining=left, complete=this.complete))

    @contextmanager
    def phase(self, stage: str, phase: Phase | Literal["PROFILE"]) -> Iterator[OpenPhase]:
        """A phase, announced, and recorded where it belongs to a pass; one that an exception leaves as abandoned."""
        number, watch, note = self.state.pass_number, Stopwatch(), OpenPhase()
        self.update(phase=phase)
        self.stream.emit(events.PhaseStarted(stage=stage, phase=phase, pass_number=number))
        try:
            yield note
        except BaseException:
            note.outcome = "abandoned"
            raise
        finally:
            if self._pass and phase != "PROFILE":
                took, outcome = watch.read(), note.outcome
                times = {"start_time": took.start_time, "end_time": took.end_time}
                self._pass.phases.append(PhaseRecord(phase=phase, outcome=outcome, **times))
            self.stream.emit(events.PhaseFinished(stage=stage, phase=phase, pass_number=number, outcome=note.outcome))
