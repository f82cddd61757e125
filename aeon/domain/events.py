"""The events of a run, as frozen values. `sequence` numbers dispatches and the kernel's own events,
`part` the events that follow one: the numbers depend only on answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import dataclass_transform

from aeon.domain.assessment import AnswerComparison, ConvergenceAssessment
from aeon.domain.checks import CheckOutcome, ToolResult
from aeon.domain.history import Advisory, ProfileTransition
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.profile import AdaptiveDepthConfiguration, TaskProfile
from aeon.domain.refinement import RefinementRecord, RepairRecord
from aeon.domain.report import SemanticValidationReport
from aeon.domain.request import CallSite, LLMRequest, Usage
from aeon.domain.values import JsonObject


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
@dataclass(frozen=True, kw_only=True)
class Event:
    """Base of all events. Every subclass is a frozen dataclass with keyword-only fields."""

    # An event is written as its fields alone.
    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An event with its number and the time it happened (ISO 8601, UTC)."""

    sequence: int
    part: int
    time: str
    event: Event


Subscriber = Callable[[Recorded], None]
Emit = Callable[[Event, CallSite | None], None]


def ignore(event: Event, site: CallSite | None = None) -> None:
    """Ignore an event; the default `Emit` of components used on their own."""


class RunStarted(Event):
    """A run began. `provider` is its endpoint's name. `synthetic`: no model will be called."""

    run_id: str
    task: str
    provider: str
    synthetic: bool


class PhaseStarted(Event):
    """A phase began. `stage` is A (profile), B (plan), C (passes) or D (profile update)."""

    stage: str
    phase: str
    pass_number: int


class PhaseFinished(Event):
    """A phase ended; `outcome` as in PhaseRecord."""

    stage: str
    phase: str
    pass_number: int
    outcome: str


class ProfileInferred(Event):
    """Phase A returned a profile, or the default one (`fallback`)."""

    profile: TaskProfile
    depth: AdaptiveDepthConfiguration
    fallback: bool


class ProfileUpdated(Event):
    """The profile changed at a pass boundary."""

    transition: ProfileTransition


class PlanMade(Event):
    """The plan that execution starts with; `layers` is its depth, `expected_calls` an estimate of
    its TTL."""

    plan: Plan
    layers: int
    expected_calls: int


class PassStarted(Event):
    """A pass began. `ready` are the steps it will start, in order."""

    pass_number: int
    ttl_remaining: int
    ready: tuple[str, ...]


class PassFinished(Event):
    """A pass ended. `complete` is False if a budget ended it before its assessment."""

    pass_number: int
    ttl_remaining: int
    complete: bool


FREE_WORK = ("tool", "person")
"""The names under which steps without a cycle are dispatched."""


class CycleStarted(Event):
    """A structured call was dispatched and charged to the TTL, or work without a cycle;
    `ttl_remaining` is None for the profile call."""

    site: CallSite
    call: str
    ttl_remaining: int | None
    plan: Plan | None = field(default=None, repr=False)


class CallAnswered(Event):
    """The provider's `endpoint` answered a request. `usage_reported`: the server reported the
    answer's tokens."""

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
    endpoint: str = ""
    usage_reported: bool = True


class CallFailed(Event):
    """A request finally failed, or the answer of `model` was unusable; `asked` is the model that
    the request named."""

    site: CallSite
    call: str
    role: str
    error: str
    message: str
    usage: Usage
    seconds: float
    model: str = ""
    asked: str = ""
    endpoint: str = ""
    usage_reported: bool = True


class RepairFinished(Event):
    """The supervisor was asked to repair an answer; the record has the outcome."""

    site: CallSite
    record: RepairRecord


class CycleFinished(Event):
    """A structured call ended, with a value or an error; the last event of its cycle."""

    site: CallSite
    call: str
    error: str | None = None
    message: str = ""


class StepStarted(Event):
    """A step was dispatched."""

    pass_number: int
    cycle: int
    step: PlanStep


class StepFinished(Event):
    """A step ended: complete, failed, invalid, or still pending when it was abandoned."""

    pass_number: int
    cycle: int
    step: PlanStep


class StepSkipped(Event):
    """A step is not executed because its condition is false (`when` of a plan file)."""

    pass_number: int
    step: PlanStep
    reason: str


class StepUnfolded(Event):
    """A step became one step per item of a list (`for_each` of a plan file)."""

    pass_number: int
    step_id: str
    instances: tuple[str, ...]
    plan: Plan = field(repr=False)


class ToolStarted(Event):
    """A tool is about to be called for a step; ToolCalled follows, unless the step is abandoned
    meanwhile. `number` counts the calls that the model requested in a round, from 1; 0 for a
    planned call."""

    site: CallSite
    step_id: str
    tool: str
    arguments: JsonObject
    number: int = 0


class ToolCalled(Event):
    """A tool was called for a step; `result` has its arguments, output and error. `number` is that
    of its ToolStarted."""

    site: CallSite
    step_id: str
    result: ToolResult
    number: int = 0


class Validated(Event):
    """A validation report is available."""

    pass_number: int
    cycle: int
    report: SemanticValidationReport


class ChecksDone(Event):
    """The checks have run on a pass's answer."""

    pass_number: int
    checks: tuple[CheckOutcome, ...]


class Assessed(Event):
    """A convergence assessment is available, or was unavailable."""

    pass_number: int
    cycle: int
    assessment: ConvergenceAssessment


class AnswerCompared(Event):
    """Two answers were compared: a changed one with the previous one, or another one with the
    run's."""

    pass_number: int
    comparison: AnswerComparison


class Refined(Event):
    """A refinement was decided on."""

    pass_number: int
    refinement: RefinementRecord
    plan: Plan = field(repr=False)


class AdvisoryRaised(Event):
    """An advisory for the user."""

    advisory: Advisory


class RetryScheduled(Event):
    """A failed request is retried after `seconds`. `error` is its class, a colon and its
    message."""

    site: CallSite
    call: str
    attempt: int
    seconds: float
    error: str


class FallbackUsed(Event):
    """`endpoint` answered what the endpoint `failed` could not; emitted once per run for each such
    pair."""

    site: CallSite
    call: str
    failed: str
    endpoint: str
    error: str


class RunFinished(Event):
    """A run ended."""

    termination_reason: str
    converged: bool
    passes: int
    ttl_used: int
    ttl_allocated: int
    answer: str = field(default="", repr=False)
