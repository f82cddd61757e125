"""`aeon tools`: lists the tools that the steps of a plan may use."""

from __future__ import annotations

import json
from argparse import Namespace
from contextlib import closing

from aeon.app.tools import build, build_run_registry
from aeon.cli.job.arguments import read_composition
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put, warn
from aeon.cli.terminal.width import fit_rows
from aeon.config.environment import environment
from aeon.config.load import compose_settings
from aeon.memory.run_memory import InMemory
from aeon.report.words import one_line
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool


def tools(given: Namespace) -> int:
    """List the tools; --json prints their descriptions as a model sees them, and their conditions.
    Raises ConfigError if they cannot be loaded."""
    settings = compose_settings(read_composition(given))
    registry = build(settings.tools, environment(settings), report=warn)
    with closing(registry):
        of_run = build_run_registry(registry, InMemory(), settings=settings.tools)
        invoker = ToolInvoker(of_run, settings.tools)
        offered = [(tool, invoker.approval(tool.name)) for tool in of_run.list()]
    if given.json:
        listed = [
            {
                **tool.describe(),
                "side_effects": tool.side_effects,
                "pure": tool.pure,
                "approval": approval,
            }
            for tool, approval in offered
        ]
        put(json.dumps(listed, indent=2, ensure_ascii=False))
    else:
        none = (
            "There are no tools. tools=builtin adds some; "
            "`aeon docs tools` explains how to add others."
        )
        texts = "\n".join(describe_tool(tool, approval) for tool, approval in offered)
        put(fit_rows(texts or none, 4))
    return DONE


def describe_tool(tool: Tool, approval: str) -> str:
    """Return the text for a tool: description, conditions, schemas, examples; text from a server is
    not trusted."""
    conditions = (
        f"side effects: {'yes' if tool.side_effects else 'no'}, "
        f"pure: {'yes' if tool.pure else 'no'}"
    )
    conditions += f", approval: {approval}" if approval != "always" else ""
    values = [("input ", tool.input_schema), ("output", tool.output_schema)]
    values += [("for example", example) for example in tool.examples]
    lines = [*tool.description.splitlines(), conditions]
    shown = (
        f"  {name}  {one_line(json.dumps(dict(value), ensure_ascii=False))}"
        for name, value in values
    )
    return "\n".join((tool.name, *(f"  {one_line(line)}" for line in lines), *shown, ""))
