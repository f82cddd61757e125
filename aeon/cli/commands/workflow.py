"""Files of plans: `aeon plan task=... [out=FILE]` makes one, `aeon check FILE...` says what is wrong with them, or what
they come to, their steps drawn; `aeon tools` lists what their steps may use."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon.app.directory import claim_run_directory, identify_start, relative_to_here
from aeon.app.tools import build, build_run_registry
from aeon.cli.job.arguments import parse
from aeon.cli.progress.dag import draw
from aeon.cli.terminal.status import DONE, INTERRUPTED, NOT_CONVERGED, USAGE
from aeon.cli.terminal.streams import put, say, stdout, warn
from aeon.cli.terminal.text import command_of, count_noun, is_utf, one_line
from aeon.config.compose import compose as config_compose
from aeon.config.load import compose_settings, environment, read_inputs
from aeon.config.settings import Settings
from aeon.domain.errors import AeonError, ConfigError
from aeon.domain.events import CycleStarted, Recorded
from aeon.domain.graph import final_steps, layers
from aeon.domain.plan import Plan, PlanStep
from aeon.execution.worker import cycles, forecast
from aeon.files.resources import resource_root
from aeon.files.text import unwritable_error
from aeon.memory.run_memory import InMemory
from aeon.plan.workflow.load import format_problem, inspect_workflow
from aeon.plan.workflow.models import Problem
from aeon.plan.workflow.references import resolve_arguments
from aeon.plan.workflow.write import workflow_text
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool, ToolRegistry

if TYPE_CHECKING:
    from aeon.app.aeon import Aeon
    from aeon.app.run import Planned, Run

_WIDEST = 120
PLAN = "plan.yaml"
"""The file in the run's directory."""
_OUT = "out="
# A run of the plan needs none of these: the task is in the plan, the others are about how the plan was made.
_FOR_PLANNING = re.compile(r"\+{0,2}(task|task_file|resume|store|store\.\w+|hydra\.run\.dir)=")


@dataclass(frozen=True, slots=True)
class _Request:
    """A plan to be made. `out` None is standard output; `arguments` are those that a run of the plan needs too, and
    `way_on` is the command that goes on with the making."""

    settings: Settings
    directory: Path
    out: Path | None
    arguments: tuple[str, ...]
    way_on: str

    def command(self, file: Path) -> str:
        """The command line that runs this plan, saved as `file`."""
        return command_of((f"plan_file={relative_to_here(file)}", *self.arguments))

    def text(self, plan: Plan, made: Planned, path: Path | None) -> str:
        """The text of a workflow file that is to stand at `path`, None if that is not known."""
        header = ["SIMULATED: no model was called, nothing here means anything."] if made.synthetic else []
        header += [
            "A plan made by `aeon plan`. Change it as you like; `aeon docs workflows` explains the format. Run it:",
            f"  {self.command(path or Path(PLAN))}",
        ]
        header += [f"Cut short: {made.cut_short}."] if made.cut_short else []
        header += [f"Note: {advisory.message}" for advisory in made.advisories]
        inputs = {name: f"The contents of {file.name}." for name, file in self.settings.input_files.items()}
        inputs |= dict.fromkeys(self.settings.inputs, "A text.")
        format_file = resource_root() / "schemas" / "workflow.json"
        schema = Path(os.path.relpath(format_file, path.resolve().parent)).as_posix() if path else None
        return workflow_text(plan, inputs=inputs, header=header, schema=schema)

    def save(self, plan: Plan, made: Planned) -> None:
        """Write the plan into the run's directory. Raises ArtefactError."""
        path = self.directory / PLAN
        from aeon.app.artefacts import replace_file

        replace_file(path, self.text(plan, made, path).encode())


def plan(arguments: Sequence[str]) -> int:
    """Make the plan and write it. 3 when the budget ended before it was reviewed and refined, 130 when interrupted.
    Raises ConfigError before any model call for what cannot be used, ArtefactError when the plan cannot be written:
    then it is on standard output."""
    outs = [argument.removeprefix(_OUT) for argument in arguments if argument.startswith(_OUT)]
    words = [argument for argument in arguments if not argument.startswith(_OUT)]
    given = parse(words)
    identify_start()
    whole, _ = config_compose.compose(given, with_hydra=True)
    from aeon.cli.job.prepare import composition_of, prepare_job  # the engine: slow to load

    aeon, run = prepare_job(whole, composition_of(whole.hydra))
    if aeon.workflow is not None:
        raise ConfigError("plan_file is a plan already", hint="`aeon check` says whether it can be used.")
    out = _target(outs)
    directory = claim_run_directory(whole, run)
    # The arguments of a resumed run are recorded in the new directory.
    resume = f"resume={relative_to_here(directory)}"
    needed = [resume] if aeon.settings.resume else [word for word in words if not _FOR_PLANNING.match(word)]
    request = _Request(aeon.settings, directory, out, tuple(needed), command_of(("plan", resume)))
    try:
        made = _make(request, aeon, run)
    except AeonError:
        say(f"To go on from what was answered: {request.way_on}")
        raise
    if made.plan is not None:
        _deliver(request, made, made.plan)
    else:
        no_plan = f"No plan: {made.cut_short}. Raise ttl.base, ttl.limit or limits."
        say("Interrupted." if made.interrupted else no_plan)
    if made.cut_short or made.interrupted:
        say(f"To go on from what was answered: {request.way_on}")
    return INTERRUPTED if made.interrupted else NOT_CONVERGED if made.cut_short else DONE


def _target(outs: Sequence[str]) -> Path | None:
    if not outs or outs == ["-"]:
        return None
    path = Path(outs[0]).expanduser()
    if len(outs) > 1 or path.is_dir() or not path.parent.is_dir():
        raise ConfigError(f"out={' out='.join(outs)}: must name one file, in a folder that is there")
    if path.exists():
        raise ConfigError(f"out={path}: already there, and is not overwritten", hint="Choose another name, or move it.")
    return path


def _make(request: _Request, aeon: Aeon, run: Run) -> Planned:
    """Make the plan; it is saved before each call, in case the program is killed."""
    from aeon.app.run import Planned
    from aeon.cli.job.attendance import attend

    def save_draft(recorded: Recorded) -> None:
        draft = recorded.event.plan if isinstance(recorded.event, CycleStarted) else None
        if draft is not None:
            why = "its making was still under way"
            request.save(draft, Planned(plan=draft, synthetic=aeon.synthetic, cut_short=why))

    warn(*aeon.warnings)
    with aeon, attend(aeon.settings, request.directory, request.way_on) as (around, _):
        return run.plan(replace(around, observers=[*around.observers, save_draft]))


def _deliver(request: _Request, made: Planned, plan: Plan) -> None:
    request.save(plan, made)
    out, written = request.out, request.directory / PLAN
    text = request.text(plan, made, out)
    if out is None:
        put(text)
    elif not made.interrupted:
        written = out
        try:
            with out.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            put(text)
            raise unwritable_error(out, error) from error
    width = min(_WIDEST, shutil.get_terminal_size((80, 24)).columns)
    say(f"\n{draw(plan, width=width, ascii_only=not is_utf(sys.stderr.encoding or 'ascii'))}\n")
    if made.cut_short:
        say(f"Cut short: {made.cut_short}. The plan may be unreviewed, and is not refined.")
    steps, layered = count_noun(len(plan.steps), "step"), count_noun(len(layers(plan)), "layer")
    say(f"{steps} in {layered}, about {made.calls} calls to the model to carry out.")
    say(f"Written to {relative_to_here(written)}. Run it: {request.command(written)}")


def check(arguments: Sequence[str]) -> int:
    """Check each file as a run with these settings would and print the findings; inputs only when some are given. 2
    when one of the files cannot be used, else 0. Raises ConfigError for a bad configuration."""
    parser = argparse.ArgumentParser(prog="aeon check", add_help=False)
    parser.add_argument("words", nargs="+", metavar="FILE")
    for flag in ("--json", "--ascii", "--no-project"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--config-dir", metavar="DIR")
    given = parser.parse_intermixed_args(list(arguments))
    overrides = [word for word in given.words if "=" in word and not Path(word).exists()]
    files = [Path(word) for word in given.words if word not in overrides]
    if not files:
        raise ConfigError("which file?", hint="aeon check workflow.yaml")
    flags = ["--config-dir", given.config_dir] if given.config_dir else []
    flags += ["--no-project"] if given.no_project else []
    settings = compose_settings(parse([*overrides, *flags]))
    with closing(build(settings.tools, environment(), report=say)) as registry:
        tools = build_run_registry(registry, InMemory(), settings=settings.tools)
    is_ascii = given.ascii or not is_utf(getattr(stdout(), "encoding", None) or "ascii")
    found, texts = list[dict[str, Any]](), list[str]()
    for path in files:
        facts, text = _check(path, settings, tools, is_ascii)
        found.append(facts)
        texts.append(text)
    is_fine = all(facts["ok"] for facts in found)
    put(json.dumps({"ok": is_fine, "files": found}, indent=2) if given.json else "\n\n".join(texts))
    return DONE if is_fine else USAGE


def _check(path: Path, settings: Settings, tools: ToolRegistry, is_ascii: bool) -> tuple[dict[str, Any], str]:
    problems: Sequence[Problem]
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
        workflow, problems = None, [Problem(line=1, column=1, severity="error", message=message)]
    found: dict[str, Any] = {"file": str(path), "ok": workflow is not None, "summary": None}
    found["problems"] = [problem.model_dump() for problem in problems]
    lines = [format_problem(path, problem) for problem in problems]
    if workflow is None:
        errors = sum(problem.severity == "error" for problem in problems)
        return found, "\n".join((*lines, f"{path}: {count_noun(errors, 'error')}, cannot be run"))
    plan = workflow.plan()
    found["summary"] = facts = _summarise(plan, settings, tools) | {"inputs": list(workflow.input_names)}
    steps, layered = count_noun(facts["steps"], "step"), count_noun(len(facts["layers"]), "layer")
    calls = facts["expected_llm_calls"]
    lines += [
        f"{path}: {steps} in {layered}, ending with {', '.join(facts['final_steps'])}",
        f"Calls to the model: about {calls['adaptive']} with mode=adaptive, {calls['core']} with mode=core",
        f"Tools: {', '.join(facts['tools']) or 'none'}",
        f"Inputs: {', '.join(facts['inputs']) or 'none'}\n",
        draw(plan, width=min(_WIDEST, shutil.get_terminal_size((80, 24)).columns), ascii_only=is_ascii),
    ]
    return found, "\n".join(lines)


def _summarise(plan: Plan, settings: Settings, tools: ToolRegistry) -> dict[str, Any]:
    invoker, texts = ToolInvoker(tools, settings.tools), dict(settings.inputs)
    with suppress(ConfigError):
        texts = read_inputs(settings)

    def cost(step: PlanStep) -> int:
        return cycles(step, tools, invoker, lambda: resolve_arguments(step.arguments or {}, texts, {}))

    return {
        "goal": plan.goal,
        "task": plan.task,
        "steps": len(plan.steps),
        "layers": [list(layer) for layer in layers(plan)],
        "final_steps": [step.step_id for step in final_steps(plan)],
        "tools": sorted({step.tool for step in plan.steps if step.tool}),
        "expected_llm_calls": {mode: forecast(plan, cost, core=mode == "core") for mode in ("adaptive", "core")},
    }


def tools(arguments: Sequence[str]) -> int:
    """List the tools; --json prints what a model is shown, and the conditions. ConfigError if they cannot be had."""
    settings = compose_settings(parse([argument for argument in arguments if argument != "--json"]))
    registry = build(settings.tools, environment(), report=warn)
    with closing(registry):
        of_run = build_run_registry(registry, InMemory(), settings=settings.tools)
        invoker = ToolInvoker(of_run, settings.tools)
        offered = [(tool, invoker.approval(tool.name)) for tool in of_run.list()]
    if "--json" in arguments:
        listed = [
            {**tool.describe(), "side_effects": tool.side_effects, "pure": tool.pure, "approval": approval}
            for tool, approval in offered
        ]
        put(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        none = "There are no tools. tools=builtin has some; `aeon docs tools` explains how to add others."
        put("\n".join(describe_tool(tool, approval) for tool, approval in offered) or none)
    return DONE


def describe_tool(tool: Tool, approval: str) -> str:
    """The text for a tool: description, conditions, schemas, examples; a server's words are not trusted."""
    conditions = f"side effects: {'yes' if tool.side_effects else 'no'}, pure: {'yes' if tool.pure else 'no'}"
    conditions += f", approval: {approval}" if approval != "always" else ""
    values = [("input ", tool.input_schema), ("output", tool.output_schema)]
    values += [("for example", example) for example in tool.examples]
    lines = [*tool.description.splitlines(), conditions]
    shown = (f"  {name}  {one_line(json.dumps(dict(value), ensure_ascii=False))}" for name, value in values)
    return "\n".join((tool.name, *(f"  {one_line(line)}" for line in lines), *shown, ""))
