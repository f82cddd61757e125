"""What happened in a run, as frozen values. Values only: they do not know who listens.

An event is numbered when what it tells of is dispatched, not when it arrives: `sequence` counts the kernel's own
events and dispatches, `part` the events that follow a dispatch (a step's call, its repairs, its end). So the numbers
of a run depend on its answers alone, whatever order parallel steps finish in.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aeon.adaptive.models import AdaptiveDepthConfiguration, TaskProfile
from aeon.convergence.models import ConvergenceAssessment
from aeon.kernel.state import Advisory, ProfileTransition, RefinementRecord
from aeon.llm.interface import CallSite, LLMRequest, Usage
from aeon.plan.models import Plan, PlanStep
from aeon.supervisor.models import RepairRecord
from aeon.tools.models import ToolResult
from aeon.validation.models import SemanticValidationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run began. `synthetic`: no model will be called."""

    run_id: str
    task: str
    provider: str
    synthetic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """A phase began. `stage` is A (profile), B (plan), C (passes) or D (profile update)."""

    stage: str
    phase: str
    pass_number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseFinished(Event):
    """A phase ended; `outcome` as in PhaseRecord."""

    stage: str
    phase: str
    pass_number: int
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileInferred(Event):
    """Phase A gave a profile, or the default one (`fallback`)."""

    profile: TaskProfile
    depth: AdaptiveDepthConfiguration
    fallback: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileUpdated(Event):
    """The profile changed at a pass boundary."""

    transition: ProfileTransition


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade(Event):
    """The plan that execution starts with; `layers` is its depth, `expected_calls` a forecast of the TTL it needs."""

    plan: Plan
    layers: int
    expected_calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassStarted(Event):
    """A pass began. `ready` are the steps it will start, in order."""

    pass_number: int
    ttl_remaining: int
    ready: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PassFinished(Event):
    """A pass ended. `complete` is False when a budget ended it before its assessment."""

    pass_number: int
    ttl_remaining: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleStarted(Event):
    """A structured call was charged to the TTL and dispatched.

    `plan` is the plan at that moment; `ttl_remaining` is None for the profile call, which the TTL comes from.
    """

    site: CallSite
    call: str
    ttl_remaining: int | None
    plan: Plan | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAnswered(Event):
    """The provider answered one request (a call, or a repair of it)."""

    request: LLMRequest = field(repr=False)
    site: CallSite
    call: str
    role: str
    model: str
    text: str = field(repr=False)
    usage: Usage
    seconds: float
    synthetic: bool
    response_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailed(Event):
    """A request failed for good, or its answer was no answer; `model` is who gave that answer, if one came."""

    site: CallSite
    call: str
    role: str
    error: str
    message: str
    usage: Usage
    seconds: float
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairFinished(Event):
    """The supervisor was asked to repair an answer; see the record for how it ended."""

    site: CallSite
    record: RepairRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleFinished(Event):
    """A structured call ended, with a value or an error; the last event of its cycle."""

    site: CallSite
    call: str
    error: str | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStarted(Event):
    """A step was dispatched."""

    pass_number: int
    cycle: int
    step: PlanStep


@dataclass(frozen=True, slots=True, kw_only=True)
class StepFinished(Event):
    """A step ended: complete, failed, invalid, or still pending when it was abandoned."""

    pass_number: int
    cycle: int
    step: PlanStep


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(Event):
    """A tool is about to be called for a step; ToolCalled follows, unless the step is abandoned meanwhile."""

    site: CallSite
    step_id: str
    tool: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled(Event):
    """A tool was called for a step; `result` says with what, what came of it, and what went wrong."""

    site: CallSite
    step_id: str
    result: ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Validated(Event):
    """A validation report is there."""

    pass_number: int
    cycle: int
    report: SemanticValidationReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed(Event):
    """A convergence assessment is there, or it was unavailable."""

    pass_number: int
    cycle: int
    assessment: ConvergenceAssessment


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined(Event):
    """A refinement was decided on."""

    pass_number: int
    refinement: RefinementRecord
    plan: Plan = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdvisoryRaised(Event):
    """Something a person should know."""

    advisory: Advisory


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryScheduled(Event):
    """A request failed in a way that may pass; it is tried again after `seconds`."""

    site: CallSite
    call: str
    attempt: int
    seconds: float
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run ended."""

    termination_reason: str
    converged: bool
    passes: int
    ttl_used: int
    ttl_allocated: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number and the time it happened (ISO 8601, UTC)."""

    sequence: int
    part: int
    time: str
    event: Event


Subscriber = Callable[[Recorded], None]
Emit = Callable[[Event, CallSite | None], None]


class EventStream:
    """Numbers a run's events and hands each to its subscribers, one at a time, in the caller's thread.

    Subscribers are journals and in-memory views that must see everything: they are quick and their errors are the
    run's. Slow or unreliable observers belong behind `aeon.observability.observers.detached`.
    """

    def __init__(self, subscribers: Sequence[Subscriber] = ()) -> None:
        self._subscribers = tuple(subscribers)
        self._lock = threading.RLock()
        self._sequence = 0
        self._parts: dict[int, int] = {}

    def subscribe(self, subscriber: Subscriber) -> None:
        """Have a subscriber told of everything from now on."""
        with self._lock:
            self._subscribers = (*self._subscribers, subscriber)

    def reserve(self) -> int:
        """The next sequence number, for a dispatch whose events will follow."""
        with self._lock:
            self._sequence += 1
            return self._sequence

    def emit(self, event: Event, site: CallSite | None = None) -> None:
        """Tell what happened; with a `site`, as the next part of that dispatch."""
        with self._lock:
            sequence = site.sequence if site is not None and site.sequence else self.reserve()
            part = self._parts.get(sequence, -1) + 1
            self._parts[sequence] = part
            recorded = Recorded(sequence, part, datetime.now(UTC).isoformat(), event)
            for subscriber in self._subscribers:
                subscriber(recorded)


def ignore(event: Event, site: CallSite | None = None) -> Any:
    """An `Emit` for components used on their own."""
