"""The state of a run and its history, as values without decisions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, model_validator

from aeon.domain.assessment import (
    SCORE_CODES,
    AnswerComparison,
    ConvergenceAssessment,
    ConvergenceScores,
    SpentReason,
    TTLExpirationResponse,
)
from aeon.domain.checks import CheckOutcome, ToolResult
from aeon.domain.graph import answer_text
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.profile import AdaptiveDepthConfiguration, TaskProfile
from aeon.domain.refinement import RefinementAction, RefinementRecord, RefusedAction, RepairRecord
from aeon.domain.report import SemanticValidationReport, ValidationIssue
from aeon.domain.values import Frame, JsonObject, Value, as_frame, as_html, as_text

Phase = Literal["PLAN", "EXECUTE", "EVALUATE", "REFINE", "RE_EXECUTE"]
TerminationReason = Literal[
    SpentReason,
    "converged",
    "completed",
    "step_failed",
    "check_failed",
    "stalled",
    "plateau",
    "interrupted",
    "waiting",
    "failed",
]
GOOD_ENDS: tuple[TerminationReason, ...] = ("converged", "completed")
AdvisoryKind = Literal[
    "manual_intervention",
    "refused_action",
    "conflict",
    "unanswered_issue",
    "set_back",
    "profile_fallback",
    "evaluation_unavailable",
    "refinement_unavailable",
    "refinement_limit",
    "not_calibrated",
    "unknown_tool",
    "repaired_step",
    "fallback_step",
    "repaired_arguments",
    "repeated_tool",
    "memory_failure",
    "lost_samples",
    "lost_comparisons",
    "tools_ended",
]


class SampleRecord(Value):
    """How one of several answers to a step was chosen: `asked` were requested, `usable` could be
    used; `chosen` is the number of the sample, from 0; `reason` says what decided."""

    asked: int
    usable: int
    chosen: int
    select: str
    reason: str


class ToolCallRecord(Value):
    """A tool call that the model requested in a round of its step. `characters` is the length of
    the result it received; `repeated`: equal to an earlier call, whose result was reused."""

    tool: str
    arguments: str
    characters: int = 0
    error: str | None = None
    repeated: bool = False


class ToolUseRecord(Value):
    """How a step used tools: the calls of each round, none where the model gave neither calls nor an
    answer; and why there was no further round: the model gave its `answer`, `max_tool_rounds` were
    made, the `budget` had no cycle for more, a call was requested a third time (`repeated`), or a
    request failed (`error`)."""

    rounds: tuple[tuple[ToolCallRecord, ...], ...]
    ended_by: Literal["answer", "max_tool_rounds", "budget", "repeated", "error"]


class StepResult(Value):
    """The result of executing a step: the output, the worker's clarity, its hand-off (FR-091), and
    its use of tools. `is_json`: the output is JSON of a schema."""

    step_id: str
    step_output: str | None = None
    is_json: bool = False
    clarity_state: str | None = None
    clarity_reason: str | None = None
    handoff: str | None = None
    tool_result: JsonObject | None = None
    error: str | None = None
    samples: SampleRecord | None = None
    tool_use: ToolUseRecord | None = None


class Advisory(Value):
    """A message to the user that stops nothing (FR-065, FR-079)."""

    kind: AdvisoryKind
    message: str
    pass_number: int
    step_id: str | None = None


class PhaseRecord(Value):
    """One phase of a pass: its times and outcome. Times are ISO 8601, UTC."""

    phase: Phase
    start_time: str
    end_time: str | None = None
    outcome: Literal["done", "skipped", "unavailable", "abandoned"] = "done"


class ProfileTransition(Value):
    """A change of the task's profile between passes, and its reason (FR-NEW-002)."""

    pass_number: int
    from_version: int
    to_version: int
    reason: str
    before: TaskProfile
    after: TaskProfile
    ttl_before: int
    ttl_after: int


class EvaluationResults(Value):
    """The results of evaluating a pass; None for parts not reached or not available. `checks` are
    those of the pass's answer, in the order of their names in the configuration."""

    validation_report: SemanticValidationReport | None = None
    convergence: ConvergenceAssessment | None = None
    comparison: AnswerComparison | None = None
    checks: tuple[CheckOutcome, ...] = ()


class Timing(Value):
    """Start and end in ISO 8601, UTC, the end after the start; the duration is measured by a
    monotonic clock."""

    start_time: str
    end_time: str
    duration_seconds: float = Field(ge=0)

    @model_validator(mode="after")
    def _ends_after_its_start(self) -> Timing:
        if datetime.fromisoformat(self.end_time) <= datetime.fromisoformat(self.start_time):
            raise ValueError(
                f"end_time {self.end_time} must come after start_time {self.start_time}"
            )
        return self


class ExecutionPass(Value):
    """One pass of the loop (FR-071 to FR-078): pass 0 plans, the others execute. `plan_state` is
    the plan at its start, `steps` are those at its end; in core mode `steps` has only the executed
    step, in the last pass all."""

    pass_number: int = Field(ge=0)
    phase: Phase
    phases: tuple[PhaseRecord, ...]
    plan_state: Plan | None
    steps: tuple[PlanStep, ...] = ()
    execution_results: dict[str, StepResult] = Field(default_factory=dict)
    evaluation_results: EvaluationResults = Field(default_factory=EvaluationResults)
    refinement: RefinementRecord | None = None
    refinement_changes: tuple[RefinementAction, ...] = ()
    clarity_states: dict[str, str] = Field(default_factory=dict)
    taskprofile: TaskProfile | None = None
    adaptive_depth: AdaptiveDepthConfiguration | None = None
    ttl_remaining: int = Field(ge=0)
    ttl_used: int = Field(default=0, ge=0)
    answer: str = ""
    answer_complete: bool = False
    complete: bool = False
    timing_information: Timing

    @property
    def is_set_back(self) -> bool:
        """Whether its changed answer was not accepted, so that it has an earlier one."""
        comparison = self.evaluation_results.comparison
        return comparison is not None and not comparison.is_accepted

    @property
    def figures(self) -> JsonObject:
        """The pass as a table row: its steps, scores and missed codes, refined steps, TTL,
        seconds."""
        assessment = self.evaluation_results.convergence
        missed = assessment.reason_codes if assessment and not assessment.converged else ()
        refined = self.refinement.accepted if self.refinement else ()
        scores = assessment.scores if assessment else ConvergenceScores()
        return {
            "pass_number": self.pass_number,
            "complete_steps": sum(step.status == "complete" for step in self.steps),
            "steps": len(self.steps),
            **{name: scores[f"{name}_score"] for name in SCORE_CODES},
            "missed": ", ".join(missed),
            "refined": ", ".join(action.fragment for action in refined),
            "ttl_used": self.ttl_used,
            "seconds": round(self.timing_information.duration_seconds, 3),
        }

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield what `repr` and `print` show: the pass in figures."""
        yield from self.figures.items()


class BestPass(Value):
    """The best pass by complete answer, required checks passed, weight of passed checks,
    comparisons won, fewest failed codes, scores, and latest. A score is None if it was not
    given."""

    pass_number: int
    completeness_score: float | None = None
    coherence_score: float | None = None
    consistency_score: float | None = None
    answer: str


class Statistics(Value):
    """Totals over the passes, and patterns for tuning (FR-076)."""

    total_passes: int
    total_refinements: int
    convergence_achieved: bool
    total_time_seconds: float
    fragments_refined: dict[str, int] = Field(default_factory=dict)
    convergence_blockers: dict[str, int] = Field(default_factory=dict)
    issues_by_type: dict[str, int] = Field(default_factory=dict)
    scores_by_pass: dict[int, dict[str, float | None]] = Field(default_factory=dict)
    depth_adjustments: tuple[str, ...] = ()


class FinalResult(Value):
    """The end of a run, inside its history."""

    converged: bool
    result_type: TerminationReason
    output: str
    metadata: JsonObject = Field(default_factory=dict)


class ExecutionHistory(Value):
    """Everything a run did, pass by pass, numbered from 0 without gaps (FR-071 to FR-076,
    FR-095); `final_convergence` is the assessment of the answer, `final_output`."""

    execution_id: str
    task_input: str
    configuration: JsonObject
    passes: tuple[ExecutionPass, ...] = Field(min_length=1)
    profile_transitions: tuple[ProfileTransition, ...] = ()
    final_convergence: ConvergenceAssessment | None = None
    final_output: str = ""
    final_result: FinalResult
    overall_statistics: Statistics

    @model_validator(mode="after")
    def _agrees_with_its_passes(self) -> ExecutionHistory:
        numbers = [record.pass_number for record in self.passes]
        if numbers != list(range(len(numbers))):
            raise ValueError(f"passes must be numbered from 0 without gaps, not {numbers}")
        counted = self.overall_statistics
        if counted.total_passes != len(numbers) - 1:
            raise ValueError(
                f"total_passes is {counted.total_passes}, but {len(numbers) - 1} passes executed"
            )
        if counted.convergence_achieved != self.final_result.converged:
            raise ValueError(
                "overall_statistics and final_result must agree whether the run converged"
            )
        return self

    def to_frame(self, of: Literal["passes", "steps"] = "passes") -> Frame:
        """Return a pandas frame with a row for each pass, or for each step as it was at the end of
        each pass. Raises ConfigError without pandas."""
        if of == "passes":
            return as_frame(passed.figures for passed in self.passes)
        steps = ((passed.pass_number, step) for passed in self.passes for step in passed.steps)
        return as_frame({"pass_number": number, **step.model_dump()} for number, step in steps)

    def __repr_args__(self) -> Iterator[tuple[str, Any]]:
        """Yield what `repr` shows: how the run ended, and its number of passes."""
        yield "execution_id", self.execution_id
        yield "result_type", self.final_result.result_type
        yield "passes", self.overall_statistics.total_passes

    def __str__(self) -> str:
        """Return a table of the passes."""
        return f"{self!r}\n{as_text([passed.figures for passed in self.passes])}"

    def _repr_html_(self) -> str:
        return as_html([passed.figures for passed in self.passes])


class RunState(Value):
    """The current state of a run; `answer_mark` precedes every answer and says that no model was
    called."""

    pass_number: int = 0
    phase: str = "PROFILE"
    plan: Plan | None = None
    profile: TaskProfile | None = None
    depth: AdaptiveDepthConfiguration | None = None
    results: dict[str, StepResult] = Field(default_factory=dict)
    passes: tuple[ExecutionPass, ...] = ()
    assessment: ConvergenceAssessment | None = None
    advisories: tuple[Advisory, ...] = ()
    refused: tuple[RefusedAction, ...] = ()
    transitions: tuple[ProfileTransition, ...] = ()
    manual_intervention: tuple[str, ...] = ()
    conflicts: tuple[ValidationIssue, ...] = ()
    attempts: dict[str, int] = Field(default_factory=dict)
    refinements: int = 0
    unavailable_evaluations: int = 0
    ttl_allocated: int = 0
    ttl_used: int = 0
    answer_mark: str = ""
    llm_outputs: tuple[LLMOutput, ...] = ()
    supervisor_actions: tuple[RepairRecord, ...] = ()
    tool_history: tuple[ToolResult, ...] = ()

    @property
    def answer(self) -> str:
        """The current answer (FR-062)."""
        return self.answer_mark + (answer_text(self.plan) if self.plan else "")

    @property
    def ttl_remaining(self) -> int:
        """LLM cycles left; never negative."""
        return max(0, self.ttl_allocated - self.ttl_used)

    @property
    def raised(self) -> frozenset[str]:
        """The triggers of all refinements so far."""
        records = (past.refinement for past in self.passes)
        return frozenset().union(*(record.triggers for record in records if record))

    @property
    def current_steps(self) -> tuple[str, ...]:
        """The ids of the running steps, in plan order; in core mode at most one."""
        steps = self.plan.steps if self.plan else ()
        return tuple(step.step_id for step in steps if step.status == "running")


class RunError(Value):
    """Why a run failed: the error's class, message and hint; for a replay, the `call` without a
    recorded answer, and the parts of its request that differ from the recording."""

    type: str
    message: str
    hint: str = ""
    call: str = ""
    differs: tuple[str, ...] = ()


class Outcome(Value):
    """The result of the kernel. `checks` are those of the answer."""

    answer: str
    answer_pass: int | None = None
    checks: tuple[CheckOutcome, ...] = ()
    converged: bool
    termination_reason: TerminationReason
    history: ExecutionHistory
    state: RunState
    best_pass: BestPass | None = None
    ttl_expiration: TTLExpirationResponse | None = None
    error: RunError | None = None


class LLMOutput(Value):
    """One unprocessed answer of the model, repairs included; `cycle` is 0 for the profile call."""

    call: str
    cycle: int
    step_id: str | None = None
    text: str
