"""ToolSettings -> a registry: the tools of a process, and over them those of a run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import replace

from aeon.domain.errors import ConfigError
from aeon.files.reference import load_object
from aeon.memory.interface import Memory
from aeon.tools.mcp_settings import McpSettings
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.settings import BuiltinSettings, ToolSettings

Report = Callable[[str], None]
_log = logging.getLogger(__name__)


def build(settings: ToolSettings, environ: Mapping[str, str], *, report: Report = _log.warning) -> ToolRegistry:
    """The tools of a process, which `close()` of the registry gives back; MCP servers are started for it.

    Of a server that did not start the registry knows which tools are `unavailable`, and why.
    `report` is told what a person should know and what stops nothing: a server that did not start, a tool left out.
    Raises ConfigError for a tool that cannot be had: a function that cannot be imported or is no tool, a folder that
    does not exist, a name given twice.
    """
    registry = ToolRegistry()
    try:
        for made in _builtin(settings.builtin) if settings.builtin else ():
            registry.register(made)
        for name, reference in settings.functions.items():
            registry.register(_imported(name, reference))
        if settings.mcp is not None:
            _register_servers(registry, settings.mcp, environ, report)
    except BaseException:
        registry.close()
        raise
    return registry


def build_run_registry(registry: ToolRegistry, memory: Memory, *, settings: ToolSettings | None = None) -> ToolRegistry:
    """A run's tools: those of the process, as they are at any moment, and those of `memory`.

    With `settings`, the latter only when the built-in tools are on and not left out of `tools.builtin.only`.
    """
    offered = BuiltinSettings() if settings is None else settings.builtin
    return ToolRegistry(_of_memory(memory, offered) if offered else (), parent=registry)


def _of_memory(memory: Memory, settings: BuiltinSettings) -> list[Tool]:
    from aeon.tools.builtin.memory import memory_read_tool, memory_search_tool, memory_write_tool

    tools = (memory_read_tool(memory), memory_search_tool(memory), memory_write_tool(memory))
    return [made for made in tools if _wanted(made, settings)]


def _builtin(settings: BuiltinSettings) -> list[Tool]:
    # Only when they are on: together they take time to import.
    from aeon.tools.builtin.calculator import calculator_tool
    from aeon.tools.builtin.current_time import current_time_tool
    from aeon.tools.builtin.echo import echo_tool
    from aeon.tools.builtin.files import list_files_tool, read_file_tool
    from aeon.tools.builtin.http_get import http_get_tool

    tools = [echo_tool(), calculator_tool(), current_time_tool()]
    if settings.root is not None:
        tools += [read_file_tool(settings.root, settings.max_file_bytes), list_files_tool(settings.root)]
    if settings.allowed_hosts:
        tools.append(http_get_tool(settings.allowed_hosts, settings.http_timeout_seconds, settings.max_response_bytes))
    return [made for made in tools if _wanted(made, settings)]


def _register_servers(
    registry: ToolRegistry, settings: McpSettings, environ: Mapping[str, str], report: Report
) -> None:
    from aeon.tools.mcp.provider import McpTools  # only when there are servers: it takes time to import

    servers = McpTools(settings, environ)
    registry.on_close(servers.close)
    for made in servers.tools():
        registry.register(made)
    for problem in servers.problems():
        report(problem)
    registry.ask_when_missing(servers.unavailable)


def _wanted(made: Tool, settings: BuiltinSettings) -> bool:
    return settings.only is None or made.name in settings.only


def _imported(name: str, reference: str) -> Tool:
    found = load_object(f"tools.functions.{name}", reference, "function")
    if isinstance(found, Tool):
        return replace(found, name=name)
    if not callable(found):
        raise ConfigError(f"tools.functions.{name}={reference}: neither a tool nor a function")
    from aeon.tools.function import tool

    return tool(name=name)(found)
