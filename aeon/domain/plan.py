"""Plans, their steps, and the changes that may be made to them. Declarative values only (FR-014,
FR-052)."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Literal

from pydantic import AwareDatetime, Field, model_validator

from aeon.domain.values import JsonObject, Value

StepStatus = Literal["pending", "running", "complete", "failed", "invalid", "skipped"]
ClarityState = Literal["CLEAR", "PARTIALLY_CLEAR", "BLOCKED"]
Standing = Literal[StepStatus, "BLOCKED"]
StepState = Literal[StepStatus, "blocked", "replaced"]

EXECUTED: frozenset[StepStatus] = frozenset({"complete", "failed"})


class ForEach(Value):
    """`for_each` of a plan file: the list that `items` names has a step for each of its items,
    which the step's texts call `name`."""

    items: str
    name: str


class Repeat(Value):
    """`repeat_until` of a plan file: the step is carried out again until the condition holds, at
    most so many times in all. `done` counts the times that came to nothing yet."""

    until: str
    at_most: int = Field(ge=1)
    done: int = Field(default=0, ge=0)


class PlanStep(Value):
    """One step of a plan. With an `output_schema` of a plan file its output is JSON of that schema.
    `handoff_to_next` is what it is asked to prepare for the next ones, `provides` names its
    artefacts. `tools` are those that the model may call while it carries the step out; None
    leaves them to `execution.step_tools`. `tool_calls` are the calls that it made, in words.
    `inputs` are those of a plan file that it is shown; None: all of them.
    `when` is the condition of a plan file: where it does not hold, the step is skipped.
    `incomplete`: a budget ended before it was done; its status stays pending (FR-064).
    `manual_intervention`: left to a person, and its dependents do not wait for it (FR-065)."""

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
        """The step as prompts show it, without its output and fields that say nothing; shared, not
        to be changed."""
        shown = {name: getattr(self, name) for name in _SHOWN}
        if self.blocked:
            shown |= {"status": "BLOCKED", "clarity_state": None}
        if self.status == "pending":
            shown |= {"clarity_reason": None, "tool_calls": ()}
        values = {
            name: v
            for name, v in shown.items()
            if v not in (None, (), False) or name == "dependencies"
        }
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    def __copy__(self) -> PlanStep:
        """A copy, which a transition changes: it has no view yet."""
        copied = super().__copy__()
        copied.__dict__.pop("view", None)
        return copied

    @property
    def standing(self) -> Standing:
        """Its status, or BLOCKED."""
        return "BLOCKED" if self.blocked else self.status

    @property
    def state(self) -> StepState:
        """Its status, or `blocked`, or `replaced` where another step stands in its place."""
        if self.replaced_by is not None:
            return "replaced"
        return "blocked" if self.blocked else self.status

    @property
    def blocked(self) -> bool:
        """Invalid because its worker could not go on, and never complete: refinement may make it
        pending again."""
        return self.status == "invalid" and self.clarity_state == "BLOCKED"

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do of it: it is complete, or was skipped."""
        return self.status in ("complete", "skipped")

    @property
    def is_for_person(self) -> bool:
        """Whether a person does it: a plan file says so."""
        return self.agent == "person" and self.tool is None

    @property
    def unfinished(self) -> bool:
        """Left to a person without being complete: its dependents work with what there is
        (FR-065)."""
        return (
            self.manual_intervention
            and self.status in ("failed", "invalid")
            and self.replaced_by is None
        )


_SHOWN = (
    *(
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
    ),
    *(
        "status",
        "clarity_state",
        "clarity_reason",
        "tool_calls",
        "errors",
        "parent_step_id",
        "replaced_by",
        "manual_intervention",
    ),
)


class FollowUpQuestion(Value):
    """What the planner would ask the person, what it assumes meanwhile, and the person's answer
    (FR-011)."""

    question: str = Field(min_length=1)
    assumption: str
    step_id: str | None = None
    answer: str | None = None


class OpenQuestion(Value):
    """What a run waits for a person to say (`interaction=defer`): the answer to a `question` of the
    planner, yes or no to a tool call (`approval`), or the output of a `step`. Once the `deadline`
    has passed, the `assumption` holds. Times are ISO 8601, UTC."""

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
    """A declarative plan. `task` is the person's text, `goal` the planner's reading of it. Steps
    without indices are numbered by position. Raises pydantic's ValidationError when ids repeat or
    indices do not fit."""

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
            object.__setattr__(self, "steps", renumber_steps(self.steps))
            return self
        indices = [step.step_index for step in self.steps]
        if sorted(indices) != list(range(1, total + 1)):
            raise ValueError(f"step_index must run from 1 to {total} without gaps, not {indices}")
        if any(step.total_steps != total for step in self.steps):
            raise ValueError(f"total_steps must be {total}, the number of steps")
        return self

    def step(self, step_id: str) -> PlanStep:
        """The step of that id; KeyError when there is none."""
        for step in self.steps:
            if step.step_id == step_id:
                return step
        raise KeyError(step_id)

    def subplan_of(self, step: PlanStep) -> SubplanOrigin | None:
        """The subplan that a step belongs to; None for a step of the plan's own."""
        return next(
            (each for each in self.subplans if each.parent_step_id == step.parent_step_id), None
        )

    def with_steps(self, *steps: PlanStep) -> Plan:
        """This plan with the steps of the same ids exchanged; the others are shared, not copied."""
        new = {step.step_id: step for step in steps}
        return self.model_copy(
            update={"steps": tuple(new.get(step.step_id, step) for step in self.steps)}
        )


def plan_one_step(description: str, answer: str | None = None) -> Plan:
    """A plan of one step, which gives the answer; with an `answer` it has been carried out."""
    step = PlanStep(step_id="answer", description=description, agent="llm")
    if answer is not None:
        done = {"status": "complete", "step_output": answer}
        step = step.model_copy(update=done)
    return Plan(goal=description, steps=(step,))


def renumber_steps(steps: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """The steps with `step_index` 1..n by position and `total_steps` n; a step already right is
    shared."""
    total = len(steps)
    return tuple(
        step
        if (step.step_index, step.total_steps) == (index, total)
        else step.model_copy(update={"step_index": index, "total_steps": total})
        for index, step in enumerate(steps, start=1)
    )


class Subplan(SubplanOrigin):
    """The steps that a step is decomposed into (FR-009)."""

    substeps: tuple[PlanStep, ...] = Field(min_length=1)

    @property
    def origin(self) -> SubplanOrigin:
        """All of it but its steps."""
        return SubplanOrigin(**self.model_dump(exclude={"substeps"}))
