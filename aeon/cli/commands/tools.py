"""`aeon tools [overrides]`: the tools that steps may use, as models are shown them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from aeon.app.tools import build, build_run_registry
from aeon.cli.job.arguments import parse
from aeon.cli.job.show import show
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.stderr import say
from aeon.cli.terminal.streams import answer_alone_on_stdout, put
from aeon.cli.terminal.text import one_line
from aeon.config.load import environment
from aeon.config.settings import Settings
from aeon.memory.run_memory import InMemory
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool

_NONE = "There are no tools. tools=builtin has some; `aeon docs tools` explains how to add others."


def main(arguments: Sequence[str]) -> int:
    """List the tools; --json prints what a model is shown, and the conditions, for programs.

    Raises ConfigError for tools that cannot be had.
    """
    as_json = "--json" in arguments
    given = parse([argument for argument in arguments if argument != "--json"])
    if given.shows:
        return show(given)
    settings = given.settings()
    with answer_alone_on_stdout():
        put(_list_tools(settings, as_json) or _NONE)
    return DONE


def _list_tools(settings: Settings, as_json: bool) -> str:
    registry = build(settings.tools, environment(), report=lambda problem: say(f"Warning: {problem}"))
    try:
        of_run = build_run_registry(registry, InMemory(), settings=settings.tools)
        invoker = ToolInvoker(of_run, settings.tools)
        if as_json:
            tools = [_as_json(tool, invoker.approval(tool.name)) for tool in of_run.list()]
            return json.dumps(tools, indent=2, ensure_ascii=False)
        return "\n".join(describe_tool(tool, invoker.approval(tool.name)) for tool in of_run.list())
    finally:
        registry.close()


def _as_json(tool: Tool, approval: str) -> dict[str, Any]:
    return {**tool.describe(), "side_effects": tool.side_effects, "pure": tool.pure, "approval": approval}


def _json(value: Mapping[str, Any]) -> str:
    """A value on one line, without control characters: a server's words are not trusted."""
    return one_line(json.dumps(dict(value), ensure_ascii=False))


def describe_tool(tool: Tool, approval: str) -> str:
    """The text for a tool: description, conditions, schemas, examples."""
    conditions = [f"side effects: {'yes' if tool.side_effects else 'no'}", f"pure: {'yes' if tool.pure else 'no'}"]
    conditions += [f"approval: {approval}"] if approval != "always" else []
    lines = [
        tool.name,
        *(f"  {one_line(line)}" for line in tool.description.splitlines()),
        f"  {', '.join(conditions)}",
    ]
    for name, schema in (("input ", tool.input_schema), ("output", tool.output_schema)):
        lines.append(f"  {name}  {_json(schema)}")
    lines += [f"  for example  {_json(example)}" for example in tool.examples]
    return "\n".join(lines) + "\n"
