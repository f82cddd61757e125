"""What happened in a run, as frozen values. `sequence` counts dispatches and the kernel's own
events, `part` the events that follow one: the numbers depend on answers alone."""

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
    """Base of all events. Every subclass is a frozen dataclass whose fields are given by name."""

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
    """An `Emit` for components used on their own."""


class RunStarted(Event):
    """A run began. `provider` is what its endpoint goes by. `synthetic`: no model will be
    called."""

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
    """Phase A gave a profile, or the default one (`fallback`)."""

    profile: TaskProfile
    depth: AdaptiveDepthConfiguration
    fallback: bool


class ProfileUpdated(Event):
    """The profile changed at a pass boundary."""

    transition: ProfileTransition


class PlanMade(Event):
    """The plan that execution starts with; `layers` is its depth, `expected_calls` a forecast of
    the TTL it needs."""

    plan: Plan
    layers: int
    expected_calls: int


class PassStarted(Event):
    """A pass began. `ready` are the steps it will start, in order."""

    pass_number: int
    ttl_remaining: int
    ready: tuple[str, ...]


class PassFinished(Event):
    """A pass ended. `complete` is False when a budget ended it before its assessment."""

    pass_number: int
    ttl_remaining: int
    complete: bool


FREE_WORK = ("tool", "person")
"""What steps that take no cycle are dispatched as."""


class CycleStarted(Event):
    """A structured call was dispatched, charged to the TTL, or work that takes no cycle;
    `ttl_remaining` is None for the profile call."""

    site: CallSite
    call: str
    ttl_remaining: int | None
    plan: Plan | None = field(default=None, repr=False)


class CallAnswered(Event):
    """The provider's `endpoint` answered a request. `usage_reported`: the server reported the
    tokens of the answer."""

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
    """A request failed for good, or what `model` answered could not be used as an answer; `asked`
    is the model that the request named."""

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
    """The supervisor was asked to repair an answer; see the record for how it ended."""

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
    """A step is not carried out, since its condition does not hold (`when` of a plan file)."""

    pass_number: int
    step: PlanStep
    reason: str


class StepUnfolded(Event):
    """A step has become one step for each item of a list (`for_each` of a plan file)."""

    pass_number: int
    step_id: str
    instances: tuple[str, ...]
    plan: Plan = field(repr=False)


class ToolStarted(Event):
    """A tool is about to be called for a step; ToolCalled follows, unless the step is abandoned
    meanwhile. `number` counts the calls that the model asked for in a round, from 1; 0 for a
    planned call."""

    site: CallSite
    step_id: str
    tool: str
    arguments: JsonObject
    number: int = 0


class ToolCalled(Event):
    """A tool was called for a step; `result` says with what, what came of it, and what went
    wrong. `number` is that of its ToolStarted."""

    site: CallSite
    step_id: str
    result: ToolResult
    number: int = 0


class Validated(Event):
    """A validation report is there."""

    pass_number: int
    cycle: int
    report: SemanticValidationReport


class ChecksDone(Event):
    """The checks have been run on the answer of a pass."""

    pass_number: int
    checks: tuple[CheckOutcome, ...]


class Assessed(Event):
    """A convergence assessment is there, or it was unavailable."""

    pass_number: int
    cycle: int
    assessment: ConvergenceAssessment


class AnswerCompared(Event):
    """Two answers were compared: a changed one with the one before it, or another one with the
    run's."""

    pass_number: int
    comparison: AnswerComparison


class Refined(Event):
    """A refinement was decided on."""

    pass_number: int
    refinement: RefinementRecord
    plan: Plan = field(repr=False)


class AdvisoryRaised(Event):
    """Something a person should know."""

    advisory: Advisory


class RetryScheduled(Event):
    """A request that failed is tried again after `seconds`. `error` is its class, a colon and its
    message."""

    site: CallSite
    call: str
    attempt: int
    seconds: float
    error: str


class FallbackUsed(Event):
    """Another `endpoint` answered what the endpoint `failed` could not; emitted once in a run for
    each pair of them."""

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
