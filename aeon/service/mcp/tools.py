"""The tools of the server: `run_task`, and one for each plan file of a folder."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from aeon.config.compose.literal import quote
from aeon.domain.errors import ConfigError
from aeon.domain.values import JsonMapping, JsonObject
from aeon.plan.workflow.inputs import make_input_schema, write_value
from aeon.plan.workflow.load import Workflow, load_workflow
from aeon.schema.validators import compile_schema, find_errors

RUN_TASK = "run_task"
_SUFFIXES = (".yaml", ".yml", ".json")
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_TASK_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "task": {
            "type": "string",
            "minLength": 1,
            "description": "What is to be done, in plain words.",
        },
        "inputs": {
            "type": "object",
            "additionalProperties": {"type": "string"},
            "description": "Material to work on: texts, each by a name.",
        },
    },
    "required": ["task"],
    "additionalProperties": False,
}
_TASK_DESCRIPTION = (
    "Have a task planned, carried out in steps, checked and refined until the answer is complete. "
    "It takes from half a minute to many minutes."
)


@dataclass(frozen=True, slots=True)
class Order:
    """A client's order: a task, unless the plan file has it, and the texts of inputs."""

    task: str | None
    inputs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool in the form for clients. `plan_file` is the plan that it runs; None for `run_task`."""

    name: str
    title: str
    description: str
    input_schema: JsonMapping
    plan_file: Path | None = None

    def list_overrides(self) -> tuple[str, ...]:
        """Return the overrides that the tool adds to the server's configuration."""
        return () if self.plan_file is None else (f"plan_file={quote(str(self.plan_file))}",)

    def read_order(self, arguments: JsonMapping) -> Order:
        """Return the order in the arguments of a call. Raises ConfigError for arguments that the
        schema of the tool refuses."""
        errors = find_errors(compile_schema(self.input_schema, self.name), arguments)
        if errors:
            shown = "; ".join(f"{each.pointer or 'arguments'}: {each.message}" for each in errors)
            raise ConfigError(f"{self.name}: {shown}")
        if self.plan_file is None:
            return Order(arguments["task"], arguments.get("inputs", {}))
        return Order(None, {name: write_value(value) for name, value in arguments.items()})


def list_tools(folder: Path | None) -> dict[str, ServedTool]:
    """Return the tools by their names: `run_task`, then those of the plan files in the folder.
    Raises ConfigError for a folder that cannot be read, a plan file with mistakes, and a file name
    that is not a tool's name."""
    run_task = ServedTool(
        name=RUN_TASK,
        title="Run a task",
        description=_TASK_DESCRIPTION,
        input_schema=_TASK_SCHEMA,
    )
    tools = {RUN_TASK: run_task}
    for path in _find_plan_files(folder) if folder is not None else ():
        name = path.stem
        if _NAME.fullmatch(name) is None:
            raise ConfigError(
                f"mcp.plans={folder}: {path.name} names no tool",
                hint="Name the file with ASCII letters, digits, _, - and . alone.",
            )
        if name in tools:
            raise ConfigError(
                f"mcp.plans={folder}: {path.name}: there is a tool {name} already",
                hint="Give the file another name.",
            )
        tools[name] = _describe_plan(name, load_workflow(path))
    return tools


def _find_plan_files(folder: Path) -> list[Path]:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        why = error.strerror or error
        raise ConfigError(f"mcp.plans={folder}: it cannot be read: {why}") from None
    # Files that editors and systems leave next to others are hidden.
    shown = (path for path in files if not path.name.startswith("."))
    plans = [path for path in shown if path.suffix in _SUFFIXES and path.is_file()]
    if not plans:
        raise ConfigError(
            f"mcp.plans={folder}: there is no plan file in it",
            hint="Plan files end with .yaml, .yml or .json; `aeon docs workflows` explains them.",
        )
    return plans


def _describe_plan(name: str, workflow: Workflow) -> ServedTool:
    content = workflow.content
    undeclared = {each: "" for each in workflow.input_names if each not in content.inputs}
    about = [content.goal]
    if content.task is not None and content.task != content.goal:
        about.append(content.task)
    return ServedTool(
        name=name,
        title=content.goal,
        description="\n\n".join(about),
        input_schema=make_input_schema({**content.inputs, **undeclared}),
        plan_file=workflow.path.absolute(),
    )
