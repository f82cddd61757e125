"""The format of a workflow file, as values; docs/workflows.md explains it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, JsonValue

from aeon.domain.checks import OuterCheck
from aeon.domain.values import JsonObject, Value
from aeon.files.located_yaml import Position

DEFAULT_ITEM = "item"
DEFAULT_AT_MOST = 5


class WorkflowStep(Value):
    """One step of the plan: done by a tool, or by the model."""

    id: str = Field(
        min_length=1, description="The step's name, unique in the file; other steps refer to it."
    )
    description: str = Field(
        min_length=1,
        description="What the step does, in plain words. May hold `${inputs.NAME}` for "
        "short values.",
    )
    depends_on: tuple[str, ...] = Field(
        default=(),
        description="Ids of the steps that come first; their outputs are given to this one.",
    )
    provides: tuple[str, ...] = Field(default=(), description="Names of what the step makes.")
    handoff: str | None = Field(
        default=None, description="What the step is to hand on to the next ones, in words."
    )
    tool: str | None = Field(
        default=None, min_length=1, description="The tool that does it; `aeon tools` lists them."
    )
    arguments: dict[str, JsonValue] | None = Field(
        default=None,
        description="The tool's arguments; texts may hold `${inputs.NAME}` and "
        "`${steps.ID.output}`, also with a path "
        "into the output: `${steps.ID.output.total}`. Left out, the model is asked for them.",
    )
    agent: Literal["llm", "person"] | None = Field(
        default=None,
        description="`llm`: the model does it; `person`: a person does it, and is asked for its "
        "output (`interaction=ask` or `interaction=defer`).",
    )
    inputs: tuple[str, ...] | None = Field(
        default=None,
        description="The inputs that the model is shown, by name, texts and files alike; `[]` for "
        "none. Left out, all of them.",
    )
    tools: tuple[str, ...] | None = Field(
        default=None,
        description="With `agent: llm`: the tools that the model may call "
        "while it does the step, by name or pattern (`db_*`); "
        "`[]` for none. Left out, `execution.step_tools` decides.",
    )
    output_schema: dict[str, JsonValue] | None = Field(
        default=None,
        description="A JSON Schema, of which the model's output is JSON: "
        "`${steps.ID.output}` is then its value, not a text.",
    )
    when: str | None = Field(
        default=None,
        min_length=1,
        description="The condition under which the step is carried out, over inputs and outputs of "
        "steps that it depends on: `steps.check.output.ok == true`. Else it is skipped.",
    )
    for_each: str | None = Field(
        default=None,
        min_length=1,
        description="A list: `inputs.NAME` or `steps.ID.output`, with "
        "a path. The step is carried out for each of its "
        "items, side by side, as `ID[0]`, `ID[1]` and so on.",
    )
    item_name: str | None = Field(
        default=None,
        alias="as",
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description="What an item is called in the step's texts: `${row}` or `${row.key}`, by "
        "default `${item}`.",
    )
    repeat_until: str | None = Field(
        default=None,
        min_length=1,
        description="The condition until which the step is carried out again, over its own output, "
        "inputs and outputs of steps that it depends on.",
    )
    at_most: int | None = Field(
        default=None, ge=1, le=100, description="How often it is carried out at most, by default 5."
    )
    checks: dict[str, OuterCheck] = Field(
        default_factory=dict,
        description="Checks of the step's output, by name: one that compares, or `{}` for the "
        "configured check of this name.",
    )


class WorkflowFile(Value):
    """A plan for `python -m aeon plan_file=...`: a goal and the steps that lead to it."""

    schema_uri: str | None = Field(
        default=None, alias="$schema", description="Where this schema is, for editors."
    )
    goal: str = Field(min_length=1, description="What the plan as a whole is for.")
    task: str | None = Field(
        default=None,
        min_length=1,
        description="The task as a person would put it, verbatim; what the answer is "
        "judged by. `task=` on the command "
        "line goes before it; without either it is the goal.",
    )
    inputs: dict[str, str | dict[str, JsonValue]] = Field(
        default_factory=dict,
        description="The material it works on, by name: a few words on what each is, or a JSON "
        "Schema with its `type`, `default` and `description`. What has no default must be given: "
        "inputs.NAME=... or input_files.NAME=...",
    )
    steps: tuple[WorkflowStep, ...] = Field(min_length=1, description="The steps, in any order.")


class Problem(Value):
    """An error or a warning about a workflow file; `line` and `column` count from 1."""

    line: int = Field(ge=1)
    column: int = Field(ge=1)
    severity: Literal["error", "warning"]
    message: str


def problem_at(
    position: Position, message: str, severity: Literal["error", "warning"] = "error"
) -> Problem:
    """Create a problem at a position of a file; non-printable characters of the message are
    escaped."""
    text = "".join(
        ch if ch.isprintable() else ch.encode("unicode_escape").decode() for ch in message
    )
    return Problem(line=position.line, column=position.column, severity=severity, message=text)


def workflow_json_schema() -> JsonObject:
    """Return the format as JSON Schema; published as schemas/workflow.json."""
    schema: JsonObject = _without_titles(WorkflowFile.model_json_schema())
    definitions = schema.pop("$defs")
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Aeon workflow"}
    return {**head, **schema, "$defs": definitions}


def _without_titles(schema: object) -> Any:
    """Remove titles: pydantic repeats each name as a title, and editors would show it instead of
    the description."""
    if isinstance(schema, dict):
        shown = (
            (name, each)
            for name, each in schema.items()
            if name != "title" or isinstance(each, dict)
        )
        return {name: _without_titles(each) for name, each in shown}
    return [_without_titles(item) for item in schema] if isinstance(schema, list) else schema
