"""Tools of MCP servers, as tools of the registry.

One `McpTools` has one session per server as long as it is open. The sessions run on an event loop in a thread of their
own; calls come from any thread and wait. The text of a server (names, descriptions, results, errors) is data.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.util
import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from aeon.domain.errors import AeonError, ConfigError
from aeon.tools.mcp.connection import MAX_TOOLS, ServerUnavailable
from aeon.tools.mcp.loop import LoopStopped, LoopThread
from aeon.tools.mcp.names import find_owner, is_wanted, tool_name, unmatched_patterns
from aeon.tools.mcp.session import ServerSession, ToolFailed
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.settings import McpServer, McpSettings

if TYPE_CHECKING:
    from mcp.types import Tool as ListedTool

__all__ = ["McpTools", "ToolFailed"]

MAX_DESCRIPTION = 8000
_CLOSED = "the MCP sessions are closed"
_CLOSE_SECONDS = 20.0
# Before a call: seeing that the server is gone, and ending what is left of it.
_RESTART_SECONDS = 15.0


class McpTools:
    """The tools of the configured servers, which are started by the first call of `tools`.

    `environ` is where the variables named in the configuration are looked up. Thread-safe. To be closed, or used as a
    context manager; at the end of the program it closes itself. After a fork, the child starts servers of its own.
    """

    def __init__(self, settings: McpSettings, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._process: int | None = None
        self._closed = False
        self._loop: LoopThread | None = None
        self._sessions: dict[str, ServerSession] = {}
        self._listed: tuple[Tool, ...] | None = None
        self._problems: tuple[str, ...] = ()
        self._dead: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tools(self) -> tuple[Tool, ...]:
        """The wanted tools of all servers that start, in the order of the configuration and of each server.

        Starts all servers at once, the first time; a server that does not start has no tools, and `problems` says why.
        ConfigError when two tools would have one name, or servers are configured and the `mcp` package is missing.
        """
        with self._lock:
            if self._listed is None and self._settings.servers and not self._closed:
                self._listed = self._list()
            return self._listed or ()

    def problems(self) -> tuple[str, ...]:
        """Messages about servers and tools that are left out; empty before `tools` was called."""
        return self._problems

    def unavailable(self, name: str) -> str | None:
        """Why there is no tool of that registered name, as a clause: the server it would belong to did not start.

        None when no such server is configured, when it started, and before `tools` was called.
        """
        server = find_owner(name, self._settings.servers)
        why = self._dead.get(server) if server is not None else None
        return why and f"the MCP server {server!r} did not start: {why}"

    def close(self) -> None:
        """End all sessions and processes; later calls of the tools fail. Harmless when done twice."""
        with self._lock:
            self._closed = True
            loop, self._loop = self._loop, None
            atexit.unregister(self.close)
            # A forked child has none of its parent's threads, and must not end its servers.
            if loop is None or self._process != os.getpid():
                return
            try:
                loop.run(_close_all(self._sessions.values()), timeout=_CLOSE_SECONDS)
            finally:
                loop.stop()

    def _list(self) -> tuple[Tool, ...]:
        found = self._running().run(_list_all(self._sessions))
        tools: dict[str, tuple[str, Tool]] = {}
        problems: list[str] = []
        for name, server in self._settings.servers.items():
            listed = found[name]
            if isinstance(listed, ServerUnavailable):
                self._dead[name] = str(listed)
                problems.append(f"MCP server {name!r} is not available, and neither are its tools: {listed}")
                continue
            if isinstance(listed, BaseException):
                raise listed
            problems.extend(_find_doubts(name, server, listed))
            for tool in self._tools_of(name, server, listed, problems.append):
                _add(tools, name, tool)
        self._problems = tuple(problems)
        return tuple(tool for _, tool in tools.values())

    def _tools_of(
        self, name: str, server: McpServer, listed: Iterable[ListedTool], problem: Callable[[str], None]
    ) -> Iterable[Tool]:
        known: set[str] = set()
        for each in listed:
            if not is_wanted(each.name, server):
                continue
            if each.name in known:
                problem(f"MCP server {name!r} lists {each.name!r} more than once; the first one counts")
                continue
            known.add(each.name)
            tool = _tool(name, server, each, self._caller(name, each.name))
            try:
                ToolRegistry((tool,))
            except AeonError as error:
                problem(f"MCP server {name!r}: its tool {each.name!r} is left out: {error}")
            else:
                yield tool

    def _caller(self, server: str, tool: str) -> Callable[[Mapping[str, Any]], Any]:
        def call(arguments: Mapping[str, Any]) -> Any:
            with self._lock:
                if self._closed:
                    raise ToolFailed(_CLOSED)
                loop, session = self._running(), self._sessions[server]
            try:
                return loop.run(session.call(tool, arguments))
            except LoopStopped as error:
                raise ToolFailed(_CLOSED) from error

        return call

    def _running(self) -> LoopThread:
        """The loop; a new one, with sessions that are not started yet, at first and in a forked child."""
        if self._loop is None or self._process != os.getpid():
            _prepare_sdk()
            self._process = os.getpid()
            self._loop = LoopThread("aeon-mcp")
            self._sessions = {
                name: ServerSession(server, self._environ) for name, server in self._settings.servers.items()
            }
            atexit.register(self.close)
        return self._loop


async def _list_all(sessions: Mapping[str, ServerSession]) -> dict[str, tuple[ListedTool, ...] | BaseException]:
    listed = (session.list_tools() for session in sessions.values())
    return dict(zip(sessions, await asyncio.gather(*listed, return_exceptions=True), strict=True))


async def _close_all(sessions: Iterable[ServerSession]) -> None:
    await asyncio.gather(*(session.aclose() for session in sessions))


def _tool(server_name: str, server: McpServer, listed: ListedTool, call: Callable[[Mapping[str, Any]], Any]) -> Tool:
    """A server's tool as the registry has it. Only one that is declared read-only has no side effects."""
    hints = listed.annotations
    return Tool(
        name=tool_name(server_name if server.prefix is None else server.prefix, listed.name),
        description=(listed.description or listed.title or "")[:MAX_DESCRIPTION],
        input_schema=listed.input_schema,
        output_schema=listed.output_schema or {},
        invoke=call,
        timeout_seconds=server.call_timeout_seconds + server.start_timeout_seconds + _RESTART_SECONDS,
        side_effects=not (hints and hints.read_only_hint),
    )


def _add(tools: dict[str, tuple[str, Tool]], server: str, tool: Tool) -> None:
    if tool.name in tools:
        raise ConfigError(
            f"tools.mcp: servers {tools[tool.name][0]!r} and {server!r} both have a tool that would be {tool.name!r}",
            hint="give one of the servers another `prefix`, or leave the tool out with `deny`",
        )
    tools[tool.name] = (server, tool)


def _find_doubts(name: str, server: McpServer, listed: tuple[ListedTool, ...]) -> list[str]:
    """Warnings about a server that started."""
    missing = unmatched_patterns((each.name for each in listed), server.allow)
    found = [f"MCP server {name!r} has no tool like {pattern!r}, which `allow` names" for pattern in missing]
    if len(listed) >= MAX_TOOLS:
        found.append(f"MCP server {name!r} lists {MAX_TOOLS} tools or more; the first {MAX_TOOLS} count")
    return found


def _prepare_sdk() -> None:
    if importlib.util.find_spec("mcp") is None:
        raise ConfigError("tools.mcp needs the package mcp", hint="pip install 'aeon-engine[mcp]'")
    # Every failure is reported as that of a call or of a server; the SDK's own tracebacks would repeat it.
    sdk = logging.getLogger("mcp")
    if sdk.level == logging.NOTSET:
        sdk.setLevel(logging.CRITICAL)
