"""Builds registries from ToolSettings: the tools of a process, and on top those of a run. Describes
how to register a missing tool."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from aeon.domain.errors import ConfigError
from aeon.files.reference import load_object
from aeon.memory.interface import Memory
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.settings import BuiltinSettings, McpSettings, ToolSettings

if TYPE_CHECKING:
    from aeon.plan.workflow.models import WorkflowStep

Report = Callable[[str], None]
_log = logging.getLogger(__name__)

BUILTIN = {
    "echo": "basics",
    "calculator": "calculator",
    "current_time": "basics",
    "read_file": "files",
    "list_files": "files",
    "http_get": "http_get",
}
"""The built-in tools, in their order, and the module of `aeon/tools/builtin` whose `from_settings`
makes each.

A module is imported when one of its tools is selected.
"""
MEMORY_TOOLS = ("memory_read", "memory_search", "memory_write")
_NEEDED = {
    "read_file": ("tools.builtin.root=DIR",),
    "list_files": ("tools.builtin.root=DIR",),
    "http_get": ("tools.builtin.allowed_hosts=[HOST]",),
}
"""The settings that a built-in tool needs in addition to `tools=builtin`."""


def build(
    settings: ToolSettings, environ: Mapping[str, str], *, report: Report = _log.warning
) -> ToolRegistry:
    """Return the tools of a process and start its MCP servers; the registry's `close()` releases
    them. `report` gets a message for each server that did not start and each tool left out. Raises
    ConfigError for a tool that cannot be made."""
    registry = ToolRegistry()
    try:
        for made in _make_builtin(settings.builtin) if settings.builtin else ():
            registry.register(made)
        for name, reference in settings.functions.items():
            registry.register(_import_tool(name, reference))
        if settings.mcp is not None:
            _start_servers(settings, settings.mcp, environ, registry, report)
    except BaseException:
        registry.close()
        raise
    return registry


def _start_servers(
    settings: ToolSettings,
    of_servers: McpSettings,
    environ: Mapping[str, str],
    registry: ToolRegistry,
    report: Report,
) -> None:
    # Imported only when there are servers, since it takes time.
    from aeon.tools.mcp.provider import McpTools

    servers = McpTools(of_servers, environ)
    registry.on_close(servers.close)
    memory = MEMORY_TOOLS if settings.builtin else ()
    for made in servers.tools():
        if made.name in memory or registry.get(made.name) is not None:
            report(
                f"MCP tool {made.name!r} is left out: another tool has that name; "
                "give its server another `prefix` to have both"
            )
        else:
            registry.register(made)
    for problem in servers.problems():
        report(problem)
    registry.explain_missing_with(servers.unavailable)
    registry.servers_down |= servers.down()


def build_run_registry(
    registry: ToolRegistry, memory: Memory, *, settings: ToolSettings | None = None
) -> ToolRegistry:
    """Return a run's tools: those of the process, and those of `memory` that the settings
    select."""
    offered = BuiltinSettings() if settings is None else settings.builtin
    if not offered:
        return ToolRegistry(parent=registry)
    from aeon.tools.builtin.memory import memory_tools  # takes time to import

    return ToolRegistry(
        [made for made in memory_tools(memory) if _is_selected(made.name, offered)], parent=registry
    )


def require_servers(registry: ToolRegistry) -> None:
    """Raise ConfigError for an MCP server that did not start."""
    for name in registry.servers_down:
        problem = f"tools.missing=fail: {describe_server_down(name, registry)}"
        raise ConfigError(problem, hint=server_remedy(name))


def require_tools(
    steps: Iterable[WorkflowStep], settings: ToolSettings, registry: ToolRegistry
) -> None:
    """Raise ConfigError for a step of the user's plan whose tool is not in `registry`, the tools of
    a run."""
    for step in steps:
        if step.tool is not None and registry.get(step.tool) is None:
            overrides = how_to_register(step.tool, settings, registry)
            raise ConfigError(
                f"tools.missing=fail: step {step.id}: {registry.describe_missing(step.tool)}",
                hint=describe_remedy(step.tool, overrides, registry),
            )


def require_step_tools(patterns: Sequence[str], registry: ToolRegistry) -> None:
    """Raise ConfigError for a pattern of `execution.step_tools` that matches no tool of a run."""
    if not patterns:
        return
    from aeon.plan.workflow.check import has_match  # takes time, and few runs have such patterns

    names = registry.names()
    for pattern in patterns:
        if has_match(pattern, names):
            continue
        known = f"there are {', '.join(names)}" if names else "there are no tools"
        raise ConfigError(
            f"execution.step_tools: no tool is named {pattern!r}; {known}",
            hint="tools=builtin registers those that come with Aeon; `aeon tools` lists those a "
            "run has.",
        )


def how_to_register(tool: str, settings: ToolSettings, registry: ToolRegistry) -> tuple[str, ...]:
    """Return the overrides that register a tool; none where its server has to be started."""
    if registry.unavailable(tool):
        return ()
    if tool not in BUILTIN and tool not in MEMORY_TOOLS:
        return (f"tools.functions.{tool}=MODULE:FUNCTION",)
    if settings.builtin is None:
        group = "tools=[builtin,mcp]" if settings.mcp else "tools=builtin"
        return (group, *_NEEDED.get(tool, ()))
    left_out = settings.builtin.only is not None and tool not in settings.builtin.only
    only = ("tools.builtin.only=null",) if left_out else ()
    return (*only, *_NEEDED.get(tool, ()))


def describe_remedy(tool: str, overrides: Sequence[str], registry: ToolRegistry) -> str:
    """Describe what to do about a missing tool; `overrides` register it, if there are any."""
    if overrides:
        return f"Register it: {' '.join(overrides)}"
    return f"Start that server, or correct `tools.mcp.servers`. {registry.unavailable(tool)}"


def describe_server_down(name: str, registry: ToolRegistry) -> str:
    """Return the message for a server that did not start."""
    return f"The MCP server {name!r} did not start: {registry.servers_down[name]}"


def server_remedy(name: str) -> str:
    """Return what to do about a server that did not start."""
    return f"Start it, or correct `tools.mcp.servers.{name}`."


def _make_builtin(settings: BuiltinSettings) -> list[Tool]:
    _require_known(settings.only or ())
    selected = [name for name in BUILTIN if _is_selected(name, settings)]
    made: dict[str, Tool] = {}
    for module in {BUILTIN[name] for name in selected}:
        tools = import_module(f"aeon.tools.builtin.{module}").from_settings(settings)
        made |= {tool.name: tool for tool in tools}
    # A tool that lacks a setting, such as the folder to read, is not made.
    return [made[name] for name in selected if name in made]


def _require_known(names: Iterable[str]) -> None:
    known = (*BUILTIN, *MEMORY_TOOLS)
    for name in names:
        if name not in known:
            problem = f"tools.builtin.only: there is no built-in tool {name!r}"
            raise ConfigError(problem, hint=f"Name some of {', '.join(known)}.")


def _is_selected(name: str, settings: BuiltinSettings) -> bool:
    return settings.only is None or name in settings.only


def _import_tool(name: str, reference: str) -> Tool:
    found = load_object(f"tools.functions.{name}", reference, "function")
    if isinstance(found, Tool):
        return replace(found, name=name)
    if not callable(found):
        raise ConfigError(f"tools.functions.{name}={reference}: neither a tool nor a function")
    from aeon.tools.function import tool  # takes time to import

    return tool(name=name)(found)
