"""Loads workflow files, which are plans written by people; docs/workflows.md explains the
format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

import pydantic

from aeon.domain.checks import OuterCheck
from aeon.domain.errors import ConfigError
from aeon.domain.graph import sort_by_dependencies
from aeon.domain.plan import ForEach, Plan, PlanStep, Repeat
from aeon.domain.values import JsonMapping, JsonObject
from aeon.files.explain import explain
from aeon.files.located_yaml import LocatedYaml, LongestList, UnreadableFile
from aeon.plan.structural import MOST_TIMES_TOO_LARGE
from aeon.plan.workflow.check import MAX_STEPS, Checks, content_problems
from aeon.plan.workflow.conditions import find_named
from aeon.plan.workflow.inputs import complete_inputs, find_needed, read_inputs
from aeon.plan.workflow.models import (
    DEFAULT_AT_MOST,
    DEFAULT_ITEM,
    Problem,
    WorkflowFile,
    WorkflowStep,
    problem_at,
)
from aeon.plan.workflow.references import Reference, references, resolve_text

# What the same keys are called in results, and in the plans of other tools.
_OTHER_SPELLINGS = {
    "step_id": "id",
    "name": "id",
    "dependencies": "depends_on",
    "needs": "depends_on",
    "requires": "depends_on",
    "args": "arguments",
    "params": "arguments",
    "parameters": "arguments",
    "with": "arguments",
    "handoff_to_next": "handoff",
    "uses": "tool",
    "prompt": "description",
}


@dataclass(frozen=True, slots=True)
class Workflow:
    """A valid workflow file, with its warnings (Sprint 1 FR-071)."""

    path: Path
    content: WorkflowFile
    warnings: tuple[Problem, ...] = ()

    @property
    def task(self) -> str:
        """The task in the file, or else its goal."""
        return self.content.task or self.content.goal

    @property
    def checks(self) -> dict[str, dict[str, OuterCheck]]:
        """The checks of each step that has any, by step id."""
        return {step.id: step.checks for step in self.content.steps if step.checks}

    @property
    def lists_tools(self) -> bool:
        """Whether a step lists tools for the model to call."""
        return any(step.tools for step in self.content.steps)

    def describe_warnings(self) -> list[str]:
        """Return the warnings, one line each."""
        return [format_problem(self.path, problem) for problem in self.warnings]

    def find_person_step(self) -> str | None:
        """Return the id of the first step left to a person; None if there is none."""
        steps = (step.id for step in self.content.steps if step.agent == "person" and not step.tool)
        return next(steps, None)

    @property
    def input_names(self) -> tuple[str, ...]:
        """The inputs of the workflow, declared ones first."""
        found = references(
            [[step.description, step.handoff, step.arguments] for step in self.content.steps]
        )
        used = [each.name for each in found if isinstance(each, Reference) and each.kind == "input"]
        for step in self.content.steps:
            used += step.inputs or ()
            for text in filter(None, (step.when, step.for_each, step.repeat_until)):
                used += [each.name for each in find_named(text) if each.kind == "input"]
        return tuple(dict.fromkeys((*self.content.inputs, *used)))

    @property
    def needed_inputs(self) -> tuple[str, ...]:
        """The inputs without a default, which must be given."""
        declared = self.content.inputs
        needed = find_needed(declared)
        return tuple(name for name in self.input_names if name not in declared or name in needed)

    def complete_inputs(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the given inputs, with the defaults of the others, as texts."""
        return complete_inputs(self.content.inputs, texts)

    def read_inputs(self, texts: Mapping[str, str]) -> JsonObject:
        """Return the values of the inputs in their declared types. Raises ConfigError."""
        return read_inputs(self.content.inputs, texts)

    def plan(self, task: str | None = None, inputs: JsonMapping | None = None) -> Plan:
        """Build the sorted plan (Sprint 1 FR-007), with `inputs` filled into descriptions and
        hand-offs. Raises PlanError."""

        def fill(step: WorkflowStep, text: str) -> str:
            # Those of a list's step are filled in with each item.
            return text if inputs is None or step.for_each else resolve_text(text, inputs)

        steps = [
            PlanStep(
                step_id=step.id,
                description=fill(step, step.description),
                dependencies=tuple(dict.fromkeys(step.depends_on)),
                incoming_context="",
                handoff_to_next=step.handoff and fill(step, step.handoff),
                provides=step.provides,
                tool=step.tool,
                agent=step.agent,
                inputs=step.inputs,
                tools=step.tools,
                arguments=step.arguments,
                output_schema=step.output_schema,
                when=step.when,
                for_each=read_for_each(step),
                repeat=read_repeat(step),
            )
            for step in self.content.steps
        ]
        return Plan(
            goal=self.content.goal, steps=sort_by_dependencies(steps), task=task or self.task
        )


def read_for_each(step: WorkflowStep) -> ForEach | None:
    """Return the list that a step runs for, if there is one."""
    if step.for_each is None:
        return None
    return ForEach(items=step.for_each, name=step.item_name or DEFAULT_ITEM)


def read_repeat(step: WorkflowStep) -> Repeat | None:
    """Return the condition for repeating a step, if there is one."""
    if step.repeat_until is None:
        return None
    return Repeat(until=step.repeat_until, at_most=step.at_most or DEFAULT_AT_MOST)


def load_workflow(path: Path, **checks: Unpack[Checks]) -> Workflow:
    """Read and check a workflow file, YAML or JSON. Raises ConfigError listing all errors."""
    workflow, problems = inspect_workflow(path, **checks)
    if workflow is None:
        errors = [problem for problem in problems if problem.severity == "error"]
        raise ConfigError(
            "\n".join(format_problem(path, problem) for problem in errors),
            hint=f"`aeon check {path}` reports the same without a run; `aeon docs "
            "workflows` explains the format.",
        )
    return workflow


def inspect_workflow(
    path: Path, **checks: Unpack[Checks]
) -> tuple[Workflow | None, tuple[Problem, ...]]:
    """Read a workflow file. Returns the workflow, or None if it has errors, and all problems in
    order."""
    try:
        document = LocatedYaml(path, longest=_longest_steps(checks.get("max_steps", MAX_STEPS)))
    except UnreadableFile as error:
        message = f"{error.problem}. {error.hint}" if error.hint else error.problem
        return None, (problem_at(error.position, message),)
    found = content_problems(document, **checks)
    content: WorkflowFile | None = None
    try:
        content = WorkflowFile.model_validate(document.value)
    except pydantic.ValidationError as error:
        mistakes = explain(error, document.value, WorkflowFile, _OTHER_SPELLINGS)
        found += [
            problem_at(mistake.position(document), mistake.sentence()) for mistake in mistakes
        ]
    problems = tuple(
        sorted(dict.fromkeys(found), key=lambda p: (p.line, p.column, p.severity, p.message))
    )
    if content is None or any(problem.severity == "error" for problem in problems):
        return None, problems
    return Workflow(path, content, problems), problems


def _longest_steps(max_steps: int) -> LongestList:
    hint = f"A plan has at most {max_steps:,} steps (execution.max_steps)"
    return LongestList("steps", MOST_TIMES_TOO_LARGE * max_steps, hint)


def format_problem(path: Path, problem: Problem) -> str:
    """Format a problem as one line that editors and terminals can jump to."""
    return f"{path}:{problem.line}:{problem.column}: {problem.severity}: {problem.message}"
