"""`aeon tools [overrides]`: the tools that steps may use, as models are told of them."""

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
from aeon.config.compose import compose as config_compose
from aeon.config.settings import Settings, environment, settings_from
from aeon.memory.run_memory import InMemory
from aeon.tools.invoke import ToolInvoker
from aeon.tools.registry import Tool

_NONE = "There are no tools. tools=builtin has some; `aeon docs tools` explains how to add others."


def main(arguments: Sequence[str]) -> int:
    """List the tools; --json gives what a model is told, and the conditions, for machines.

    Raises ConfigError for tools that cannot be had.
    """
    as_json = "--json" in arguments
    given = parse([argument for argument in arguments if argument != "--json"])
    if given.shows:
        return show(given)
    settings = settings_from(config_compose.compose(given.overrides, given.config_dir, config_name=given.config_name))
    with answer_alone_on_stdout():
        put(_listed(settings, as_json) or _NONE)
    return DONE


def _listed(settings: Settings, as_json: bool) -> str:
    registry = build(settings.tools, environment(), report=lambda problem: say(f"Warning: {problem}"))
    try:
        of_run = build_run_registry(registry, InMemory(), settings=settings.tools)
        invoker = ToolInvoker(of_run, settings.tools)
        if as_json:
            tools = [_for_machines(tool, invoker.approval(tool.name)) for tool in of_run.list()]
            return json.dumps(tools, indent=2, ensure_ascii=False)
        return "\n".join(described(tool, invoker.approval(tool.name)) for tool in of_run.list())
    finally:
        registry.close()


def _for_machines(tool: Tool, approval: str) -> dict[str, Any]:
    """What a model is told of the tool, and under which conditions it is called."""
    return {**tool.describe(), "side_effects": tool.side_effects, "pure": tool.pure, "approval": approval}


def _json(value: Mapping[str, Any]) -> str:
    """A value on one line, without what could steer a terminal: a server's words are not trusted."""
    return one_line(json.dumps(dict(value), ensure_ascii=False))


def described(tool: Tool, approval: str) -> str:
    """A tool as a person is shown it."""
    said = [f"side effects: {'yes' if tool.side_effects else 'no'}", f"pure: {'yes' if tool.pure else 'no'}"]
    said += [f"approval: {approval}"] if approval != "always" else []
    lines = [tool.name, *(f"  {one_line(line)}" for line in tool.description.splitlines()), f"  {', '.join(said)}"]
    for name, schema in (("input ", tool.input_schema), ("output", tool.output_schema)):
        lines.append(f"  {name}  {_json(schema)}")
    lines += [f"  for example  {_json(example)}" for example in tool.examples]
    return "\n".join(lines) + "\n"
