"""Plans, their steps, and possible changes to them. Declarative values only (FR-014, FR-052)."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from operator import is_
from typing import Literal

from pydantic import AwareDatetime, Field, model_validator

from aeon.domain.values import JsonObject, Value

StepStatus = Literal["pending", "running", "complete", "failed", "invalid", "skipped"]
ClarityState = Literal["CLEAR", "PARTIALLY_CLEAR", "BLOCKED"]
Standing = Literal[StepStatus, "BLOCKED"]
StepState = Literal[StepStatus, "blocked", "replaced"]

EXECUTED: frozenset[StepStatus] = frozenset({"complete", "failed"})


class ForEach(Value):
    """`for_each` of a plan file: one step per item of the list `items`; the step's texts call the
    item `name`."""

    items: str
    name: str


class Repeat(Value):
    """`repeat_until` of a plan file: the step is repeated until the condition holds, at most
    `at_most` times in all. `done` counts the unsuccessful times so far."""

    until: str
    at_most: int = Field(ge=1)
    done: int = Field(default=0, ge=0)


class PlanStep(Value):
    """One step of a plan.

    With an `output_schema` of a plan file, its output is JSON of that schema. `handoff_to_next` is
    what it is asked to prepare for the next steps, `provides` names its artefacts. `tools` are
    those that the model may call during the step; None leaves them to `execution.step_tools`.
    `tool_calls` are the calls made, as text. `inputs` are the inputs of a plan file that it sees;
    None: all. `when` is the condition of a plan file: the step is skipped if it is false.
    `incomplete`: a budget ended before it was done; its status stays pending (FR-064).
    `manual_intervention`: left to a person, and its dependents do not wait for it (FR-065).
    """

    step_id: str = Field(min_length=1)
    description: str = Field(min_length=1)
    step_index: int = Field(default=1, ge=1)
    total_steps: int = Field(default=1, ge=1)
    status: StepStatus = "pending"
    dependencies: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    incoming_context: str | None = None
    handoff_to_next: str | None = None
    step_output: str | None = None
    clarity_state: ClarityState | None = None
    clarity_reason: str | None = None
    tool: str | None = None
    agent: Literal["llm", "person"] | None = None
    inputs: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    tool_calls: tuple[str, ...] = ()
    arguments: JsonObject | None = None
    output_schema: JsonObject | None = None
    errors: tuple[str, ...] = ()
    parent_step_id: str | None = None
    replaced_by: str | None = None
    when: str | None = None
    for_each: ForEach | None = None
    repeat: Repeat | None = None
    incomplete: bool = False
    manual_intervention: bool = False

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> PlanStep:
        if self.clarity_state == "BLOCKED" and self.status not in ("invalid", "pending", "running"):
            raise ValueError("a step whose clarity_state is BLOCKED must have status invalid")
        if "total_steps" in self.model_fields_set and self.step_index > self.total_steps:
            raise ValueError(
                f"step_index must be at most total_steps, {self.total_steps}, not {self.step_index}"
            )
        return self

    @cached_property
    def view(self) -> JsonObject:
        """The step as prompts show it, without its output and empty fields; shared, so it must not
        be changed."""
        shown = {name: getattr(self, name) for name in _SHOWN}
        if self.blocked:
            shown |= {"status": "BLOCKED", "clarity_state": None}
        if self.status == "pending":
            shown |= {"clarity_reason": None, "tool_calls": ()}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in shown.items()
            if value not in (None, (), False) or name == "dependencies"
        }

    def __copy__(self) -> PlanStep:
        """Copy without the cached view, because a transition changes the copy."""
        copied = super().__copy__()
        copied.__dict__.pop("view", None)
        return copied

    @property
    def standing(self) -> Standing:
        """Its status, or BLOCKED."""
        return "BLOCKED" if self.blocked else self.status

    @property
    def state(self) -> StepState:
        """Its status, or `blocked`, or `replaced` if another step took its place."""
        if self.replaced_by is not None:
            return "replaced"
        return "blocked" if self.blocked else self.status

    @property
    def blocked(self) -> bool:
        """Whether it is invalid because its worker could not continue. Such a step never counts as
        complete; refinement may make it pending again."""
        return self.status == "invalid" and self.clarity_state == "BLOCKED"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do: it is complete or was skipped."""
        return self.status in ("complete", "skipped")

    @property
    def is_for_person(self) -> bool:
        """Whether a person does it, as a plan file says."""
        return self.agent == "person" and self.tool is None

    @property
    def unfinished(self) -> bool:
        """Whether it is left to a person without being complete: its dependents work with what
        exists (FR-065)."""
        return (
            self.manual_intervention
            and self.status in ("failed", "invalid")
            and self.replaced_by is None
        )


_SHOWN = (
    "step_id",
    "step_index",
    "description",
    "dependencies",
    "provides",
    "handoff_to_next",
    "tool",
    "tools",
    "arguments",
    "when",
    "status",
    "clarity_state",
    "clarity_reason",
    "tool_calls",
    "errors",
    "parent_step_id",
    "replaced_by",
    "manual_intervention",
)


class FollowUpQuestion(Value):
    """A question of the planner to the user, its assumption meanwhile, and the user's answer
    (FR-011)."""

    question: str = Field(min_length=1)
    assumption: str
    step_id: str | None = None
    answer: str | None = None


class OpenQuestion(Value):
    """What a run waits for from a person (`interaction=defer`): the answer to a `question` of the
    planner, approval of a tool call (`approval`), or the output of a `step`. After the `deadline`,
    the `assumption` holds. Times are ISO 8601, UTC."""

    id: str = Field(pattern="^[A-Za-z0-9._-]{1,64}$")
    kind: Literal["question", "approval", "step"]
    text: str = Field(min_length=1)
    assumption: str | None = None
    step_id: str | None = None
    asked_at: AwareDatetime
    deadline: AwareDatetime | None = None


class SubplanOrigin(Value):
    """A subplan without its steps. `depth_level` is 1 for the first level of nesting."""

    parent_step_id: str
    subplan_goal: str = Field(min_length=1)
    depth_level: int = Field(ge=1, le=5)
    created_by: str = "recursive_planner"


class Plan(Value):
    """A declarative plan. `task` is the user's text, `goal` the planner's reading of it. Steps
    without indices are numbered by position. Raises pydantic's ValidationError for repeated ids or
    inconsistent indices."""

    goal: str
    steps: tuple[PlanStep, ...]
    task: str = ""
    questions: tuple[FollowUpQuestion, ...] = ()
    subplans: tuple[SubplanOrigin, ...] = ()

    @model_validator(mode="after")
    def _number_steps(self) -> Plan:
        total = len(self.steps)
        counts = Counter(step.step_id for step in self.steps)
        if len(counts) < total:
            repeated = sorted(counts - Counter(counts.keys()))
            raise ValueError(f"step_id must be unique: {', '.join(repeated)} repeated")
        if not any("step_index" in step.model_fields_set for step in self.steps):
            # Frozen, but still being made.
            object.__setattr__(self, "steps", renumber_steps(self.steps))
            return self
        indices = [step.step_index for step in self.steps]
        if sorted(indices) != list(range(1, total + 1)):
            raise ValueError(f"step_index must run from 1 to {total} without gaps, not {indices}")
        if any(step.total_steps != total for step in self.steps):
            raise ValueError(f"total_steps must be {total}, the number of steps")
        return self

    def step(self, step_id: str) -> PlanStep:
        """Return the step of that id. Raises KeyError if there is none."""
        for step in self.steps:
            if step.step_id == step_id:
                return step
        raise KeyError(step_id)

    def subplan_of(self, step: PlanStep) -> SubplanOrigin | None:
        """Return the subplan that a step belongs to; None for a top-level step."""
        return next(
            (each for each in self.subplans if each.parent_step_id == step.parent_step_id), None
        )

    def with_steps(self, *steps: PlanStep) -> Plan:
        """Return this plan with the steps of the same ids replaced; the others are shared, not
        copied. Without a change, return the plan itself."""
        new = {step.step_id: step for step in steps}
        replaced = tuple(new.get(step.step_id, step) for step in self.steps)
        if all(map(is_, replaced, self.steps)):
            return self
        return self.model_copy(update={"steps": replaced})


def plan_one_step(description: str, answer: str | None = None) -> Plan:
    """Make a plan of one step that gives the answer; with an `answer`, the step is complete."""
    step = PlanStep(step_id="answer", description=description, agent="llm")
    if answer is not None:
        done = {"status": "complete", "step_output": answer}
        step = step.model_copy(update=done)
    return Plan(goal=description, steps=(step,))


def renumber_steps(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """Return the steps with `step_index` 1..n by position and `total_steps` n; correct steps are
    shared."""
    total = len(steps)
    return tuple(
        step
        if (step.step_index, step.total_steps) == (index, total)
        else step.model_copy(update={"step_index": index, "total_steps": total})
        for index, step in enumerate(steps, start=1)
    )


class Subplan(SubplanOrigin):
    """The steps into which a step is decomposed (FR-009)."""

    substeps: tuple[PlanStep, ...] = Field(min_length=1)

    @property
    def origin(self) -> SubplanOrigin:
        """The subplan without its steps."""
        return SubplanOrigin(**self.model_dump(exclude={"substeps"}))
