"""`aeon check FILE...`: the problems of workflow files, or a summary of each, its steps drawn."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aeon.app.tools import build, build_run_registry
from aeon.cli.job.arguments import read_composition
from aeon.cli.progress.dag import draw
from aeon.cli.terminal.status import DONE, USAGE
from aeon.cli.terminal.streams import put, say, stdout
from aeon.config.environment import environment
from aeon.config.load import compose_settings, find_recorded_origin, read_inputs
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError, PlanError
from aeon.domain.graph import final_steps, layers
from aeon.domain.plan import Plan, PlanStep
from aeon.domain.request import show_inputs
from aeon.domain.values import JsonMapping, JsonObject
from aeon.execution.forecast import cycles, forecast
from aeon.execution.tool_steps import select_tools
from aeon.memory.run_memory import InMemory
from aeon.plan.workflow.inputs import describe_input, make_input_schema
from aeon.plan.workflow.load import Workflow, format_problem, inspect_workflow
from aeon.plan.workflow.models import Problem
from aeon.plan.workflow.references import resolve_arguments
from aeon.plan.workflow.unfolding import settle_inputs
from aeon.report.words import count_noun, is_utf
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry


def check(given: Namespace) -> int:
    """Check each file as a run with these settings would and print the findings; inputs only when
    some are given. 2 when a file cannot be used, else 0. Raises ConfigError for a bad
    configuration."""
    paths = _take_files(given)
    settings = compose_settings(read_composition(given))
    # Once their tools are listed, servers need not run: nothing is called.
    with closing(build(settings.tools, environment(settings), report=say)) as registry:
        tools = build_run_registry(registry, InMemory(), settings=settings.tools)
    is_ascii = given.ascii or not is_utf(getattr(stdout(), "encoding", None) or "ascii")
    found = [_check(path, settings, tools, is_ascii) for path in paths]
    is_fine = all(facts["ok"] for facts, _ in found)
    if given.json:
        document = {"ok": is_fine, "files": [facts for facts, _ in found]}
        put(json.dumps(document, indent=2))
    else:
        put("\n\n".join(text for _, text in found))
    return DONE if is_fine else USAGE


def _take_files(given: Namespace) -> list[Path]:
    """Return the files that are named. Raises ConfigError when there is none."""
    # A file's name may look like an override.
    named = [word for word in given.overrides if _is_there(word)]
    given.overrides = [word for word in given.overrides if word not in named]
    if not given.file and not named:
        raise ConfigError("which file?", hint="`aeon check workflow.yaml`")
    return [Path(word) for word in (*given.file, *named)]


def _is_there(word: str) -> bool:
    # An override may be longer than a file's name can be.
    with suppress(OSError, ValueError):
        return Path(word).exists()
    return False


@dataclass(frozen=True, slots=True)
class _Inspected:
    """A plan file with its problems. `settled` is the plan as it begins with the given `inputs`;
    without it the file cannot be run."""

    problems: tuple[Problem, ...]
    workflow: Workflow | None = None
    settled: Plan | None = None
    inputs: JsonMapping = field(default_factory=dict)


def _check(
    path: Path, settings: Settings, tools: ToolRegistry, is_ascii: bool
) -> tuple[JsonObject, str]:
    inspected = _inspect(path, settings, tools)
    problems = inspected.problems
    found: JsonObject = {"file": str(path), "ok": inspected.settled is not None, "summary": None}
    found["problems"] = [problem.model_dump() for problem in problems]
    lines = [format_problem(path, problem) for problem in problems]
    if inspected.workflow is None or inspected.settled is None:
        errors = sum(problem.severity == "error" for problem in problems)
        return found, "\n".join((*lines, f"{path}: {count_noun(errors, 'error')}, cannot be run"))
    plan = inspected.workflow.plan()
    found["summary"] = facts = _summarise(plan, settings, tools) | {
        "expected_llm_calls": _forecast(inspected.settled, settings, tools, inspected.inputs),
        "inputs": list(inspected.workflow.input_names),
        "input_schema": make_input_schema(inspected.workflow.content.inputs),
    }
    steps = count_noun(facts["steps"], "step")
    layered = count_noun(len(facts["layers"]), "layer")
    calls = facts["expected_llm_calls"]
    lines += [
        f"{path}: {steps} in {layered}, ending with {', '.join(facts['final_steps'])}",
        f"Calls to the model: about {calls['adaptive']} "
        f"with mode=adaptive, {calls['core']} with mode=core",
        f"Tools: {', '.join(facts['tools']) or 'none'}",
        f"Inputs: {', '.join(_describe_inputs(inspected.workflow)) or 'none'}\n",
        draw(plan, ascii_only=is_ascii),
    ]
    return found, "\n".join(lines)


def _inspect(path: Path, settings: Settings, tools: ToolRegistry) -> _Inspected:
    problems: tuple[Problem, ...] = ()
    try:
        workflow, problems = inspect_workflow(
            path,
            tool_names={tool.name: tool.input_schema for tool in tools.list()},
            input_names={*settings.inputs, *settings.input_files} or None,
            texts=_find_texts(settings),
            max_steps=settings.execution.max_steps,
            one_final_step=settings.answer.json_schema is not None,
            unavailable=tools.unavailable,
        )
        if workflow is None:
            return _Inspected(problems)
        inputs = workflow.read_inputs(workflow.complete_inputs(_find_texts(settings)))
        settled = _settle(workflow, inputs, settings.execution.max_steps)
    except (ConfigError, PlanError) as error:
        message = error.message.removeprefix(f"{path}: ")
        problem = Problem(line=1, column=1, severity="error", message=message)
        return _Inspected((*problems, problem))
    return _Inspected(problems, workflow, settled, inputs)


def _settle(workflow: Workflow, values: JsonMapping, max_steps: int) -> Plan:
    """Return the plan as it begins with these inputs, or as the file has it while one is missing.
    Raises PlanError for inputs with which a condition or a list fails."""
    if not values.keys() >= set(workflow.needed_inputs):
        return workflow.plan()
    return settle_inputs(workflow.plan(inputs=values), values, max_steps)


def _list_tools(plan: Plan, settings: Settings, tools: ToolRegistry) -> list[str]:
    """List the tools that steps name, and those that the model may call itself during a step."""
    patterns = settings.execution.step_tools
    called = {
        tool.name for step in plan.steps for tool in select_tools(step, patterns, tools.list())
    }
    return sorted(called | {step.tool for step in plan.steps if step.tool})


def _describe_inputs(workflow: Workflow) -> Iterator[str]:
    declared = workflow.content.inputs
    for name in workflow.input_names:
        yield describe_input(name, declared[name]) if name in declared else name


def _find_texts(settings: Settings) -> dict[str, str]:
    """Return the given inputs, as far as they can be read."""
    with suppress(ConfigError):
        return show_inputs(read_inputs(settings, find_recorded_origin(settings)))
    return dict(settings.inputs)


def _summarise(plan: Plan, settings: Settings, tools: ToolRegistry) -> JsonObject:
    return {
        "goal": plan.goal,
        "task": plan.task,
        "steps": len(plan.steps),
        "layers": [list(layer) for layer in layers(plan)],
        "final_steps": [step.step_id for step in final_steps(plan)],
        "tools": _list_tools(plan, settings, tools),
    }


def _forecast(
    plan: Plan, settings: Settings, tools: ToolRegistry, inputs: JsonMapping
) -> dict[str, int]:
    """Estimate the LLM cycles of the plan by mode."""
    invoker = ToolInvoker(tools, settings.tools)

    def cost(step: PlanStep) -> int:
        if step.status == "skipped":
            return 0
        return cycles(
            step, tools, invoker, lambda: resolve_arguments(step.arguments or {}, inputs, {})
        )

    return {mode: forecast(plan, cost, core=mode == "core") for mode in ("adaptive", "core")}
