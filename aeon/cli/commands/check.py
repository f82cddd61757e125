"""`aeon check FILE...`: everything that is wrong with workflow files, or what they come to and their steps drawn."""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aeon.app.tools import build, build_run_registry
from aeon.cli.job.arguments import parse
from aeon.cli.progress.dag import draw
from aeon.cli.terminal.glyphs import is_utf
from aeon.cli.terminal.status import DONE, USAGE
from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.streams import answer_alone_on_stdout, put, stdout
from aeon.cli.terminal.text import count_noun
from aeon.config.load import environment, read_inputs
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.graph import final_steps, layers
from aeon.domain.plan import Plan, PlanStep
from aeon.execution.forecast import cycles, forecast
from aeon.memory.run_memory import InMemory
from aeon.plan.workflow.load import Workflow, format_problem, inspect_workflow
from aeon.plan.workflow.models import Problem
from aeon.plan.workflow.references import resolve_arguments
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import ToolRegistry

_WIDEST = 120


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked file: the workflow, None when it has errors, all problems, and by mode the calls that a run expects."""

    path: Path
    workflow: Workflow | None
    problems: tuple[Problem, ...]
    calls: Mapping[str, int] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Check the files and print the findings on standard output; 2 when one of them cannot be used, else 0.

    Raises ConfigError for a bad configuration.
    """
    parser = argparse.ArgumentParser(prog="aeon check", add_help=False)
    parser.add_argument("words", nargs="+", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--config-dir", metavar="DIR")
    parser.add_argument("--no-project", action="store_true")
    given = parser.parse_intermixed_args(list(arguments))
    overrides = [word for word in given.words if "=" in word and not Path(word).exists()]
    files = [Path(word) for word in given.words if word not in overrides]
    if not files:
        raise ConfigError("which file?", hint="aeon check workflow.yaml")
    folder = ["--config-dir", given.config_dir] if given.config_dir else []
    composed = parse([*overrides, *folder, *(["--no-project"] if given.no_project else [])])
    settings = composed.settings()
    with answer_alone_on_stdout():
        checked = check_files(files, settings)
        put(_as_json(checked) if given.json else _as_text(checked, given.ascii))
    return DONE if all(one.workflow for one in checked) else USAGE


def check_files(files: Sequence[Path], settings: Settings) -> list[Checked]:
    """Check each file as a run with these settings would; inputs only when some are given.

    Raises ConfigError when the tools cannot be had.
    """
    registry = build(settings.tools, environment(), report=say)
    try:
        tools = build_run_registry(registry, InMemory(), settings=settings.tools)
    finally:
        registry.close()  # No tool is called, so their descriptions are enough.
    return [_check(path, settings, tools) for path in files]


def _check(path: Path, settings: Settings, tools: ToolRegistry) -> Checked:
    try:
        workflow, problems = inspect_workflow(
            path,
            tool_names={tool.name: tool.input_schema for tool in tools.list()},
            input_names={*settings.inputs, *settings.input_files} or None,
            max_steps=settings.execution.max_steps,
            one_final_step=settings.answer.json_schema is not None,
            unavailable=tools.unavailable,
        )
    except ConfigError as error:
        message = error.message.removeprefix(f"{path}: ")
        return Checked(path, None, (Problem(line=1, column=1, severity="error", message=message),))
    return Checked(path, workflow, problems, _calls(workflow.plan(), settings, tools) if workflow else {})


def _calls(plan: Plan, settings: Settings, tools: ToolRegistry) -> dict[str, int]:
    """About how many calls to the model a run expects, by mode."""
    invoker, texts = ToolInvoker(tools, settings.tools), dict(settings.inputs)
    with suppress(ConfigError):
        texts = read_inputs(settings)

    def cost(step: PlanStep) -> int:
        return cycles(step, tools, invoker, lambda: resolve_arguments(step.arguments or {}, texts, {}))

    return {mode: forecast(plan, cost, core=mode == "core") for mode in ("adaptive", "core")}


def _as_text(checked: Sequence[Checked], ascii_only: bool) -> str:
    ascii_only = ascii_only or not is_utf(getattr(stdout(), "encoding", None) or "ascii")
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    parts = []
    for one in checked:
        lines = [format_problem(one.path, problem) for problem in one.problems]
        if one.workflow is None:
            errors = sum(problem.severity == "error" for problem in one.problems)
            lines += [f"{one.path}: {count_noun(errors, 'error')}, cannot be run"]
        else:
            drawing = draw(one.workflow.plan(), width=width, ascii_only=ascii_only)
            lines += [*_summary_lines(one, one.workflow), "", drawing]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _summary_lines(one: Checked, workflow: Workflow) -> list[str]:
    facts, calls = _summary(one, workflow), one.calls
    final = ", ".join(facts["final_steps"])
    return [
        f"{workflow.path}: {count_noun(facts['steps'], 'step')} in {count_noun(len(facts['layers']), 'layer')},"
        f" ending with {final}",
        f"Calls to the model: about {calls['adaptive']} with mode=adaptive, {calls['core']} with mode=core",
        f"Tools: {', '.join(facts['tools']) or 'none'}",
        f"Inputs: {', '.join(facts['inputs']) or 'none'}",
    ]


def _summary(one: Checked, workflow: Workflow) -> dict[str, Any]:
    plan = workflow.plan()
    return {
        "goal": plan.goal,
        "task": plan.task,
        "steps": len(plan.steps),
        "layers": [list(layer) for layer in layers(plan)],
        "final_steps": [step.step_id for step in final_steps(plan)],
        "tools": sorted({step.tool for step in plan.steps if step.tool}),
        "inputs": list(workflow.input_names),
        "expected_llm_calls": dict(one.calls),
    }


def _as_json(checked: Sequence[Checked]) -> str:
    files = [
        {
            "file": str(one.path),
            "ok": one.workflow is not None,
            "problems": [problem.model_dump() for problem in one.problems],
            "summary": _summary(one, one.workflow) if one.workflow else None,
        }
        for one in checked
    ]
    return json.dumps({"ok": all(one.workflow for one in checked), "files": files}, indent=2)
