"""Tools of MCP servers, as tools of the registry.

An open `McpTools` has one session per server. The sessions run on an event loop in their own
thread; calls come from any thread and wait. All text from a server (names, descriptions, results,
errors) is treated as data.
"""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from aeon.domain.errors import AeonError, ConfigError
from aeon.tools.mcp.names import find_owner, find_unmatched_patterns, is_selected, tool_name
from aeon.tools.mcp.session import ServerSession, ServerUnavailable, ToolFailed
from aeon.tools.registry import Tool, ToolRegistry
from aeon.tools.settings import McpServer, McpSettings

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal
    from mcp.types import Tool as ListedTool

__all__ = ["McpTools", "ToolFailed"]

MAX_DESCRIPTION = 8000
_CLOSE_SECONDS = 20.0
# Added to a call's time limit: the time to end the remains of a server that is gone.
_RESTART_SECONDS = 15.0


class McpTools:
    """The tools of the configured servers, which the first call of `tools` starts.

    `environ` has the environment variables named in the configuration. Thread-safe. Must be closed;
    closes itself at the end of the program.
    """

    def __init__(self, settings: McpSettings, environ: Mapping[str, str] = os.environ) -> None:
        self._settings = settings
        self._environ = environ
        self._lock = threading.Lock()
        self._sessions: dict[str, ServerSession] = {}
        self._loop = ExitStack()
        self._closed = False
        self._process = os.getpid()
        self._listed: tuple[Tool, ...] | None = None
        self._problems: list[str] = []
        self._dead: dict[str, str] = {}

    def tools(self) -> tuple[Tool, ...]:
        """Return the selected tools of all servers that start, in the order of the configuration
        and of each server.

        The first call starts all servers at once; a server that does not start has no tools, and
        `problems` says why. Raises ConfigError if two tools would have the same name, or if servers
        are configured and the `mcp` package is missing.
        """
        with self._lock:
            if self._listed is None and self._settings.servers and not self._closed:
                if not self._sessions:
                    self._start()
                self._listed = self._list()
            return self._listed or ()

    def problems(self) -> tuple[str, ...]:
        """Return messages about missing servers and tools; empty before `tools` is called."""
        return tuple(self._problems)

    def down(self) -> Mapping[str, str]:
        """Return the servers that did not start, with the reasons; empty before `tools` is
        called."""
        return dict(self._dead)

    def unavailable(self, name: str) -> str | None:
        """Return, as a clause, why there is no tool of that registered name: its server did not
        start.

        None if no such server is configured, if it started, and before `tools` is called.
        """
        server = find_owner(name, self._settings.servers)
        why = self._dead.get(server) if server is not None else None
        return why and f"the MCP server {server!r} did not start: {why}"

    def close(self) -> None:
        """End all sessions and processes; later calls of the tools fail. May be called twice."""
        if os.getpid() != self._process:
            return  # a forked child must not end its parent's servers
        with self._lock:
            self._closed = True
            atexit.unregister(self.close)
            self._loop.close()

    def _start(self) -> None:
        if importlib.util.find_spec("mcp") is None:
            raise ConfigError(
                "tools.mcp needs the package mcp", hint="pip install 'aeon-engine[mcp]'"
            )
        from anyio.from_thread import start_blocking_portal

        # Every failure is reported for its call or server; the SDK's tracebacks would repeat it.
        sdk = logging.getLogger("mcp")
        if sdk.level == logging.NOTSET:
            sdk.setLevel(logging.CRITICAL)
        portal = self._loop.enter_context(start_blocking_portal("asyncio", name="aeon-mcp"))
        servers = self._settings.servers.items()
        self._sessions = {
            name: ServerSession(server, self._environ, portal) for name, server in servers
        }
        self._loop.callback(_close_all, self._sessions.values(), portal)
        atexit.register(self.close)

    def _list(self) -> tuple[Tool, ...]:
        for session in self._sessions.values():
            session.connect()
        tools: dict[str, tuple[str, Tool]] = {}
        for name, server in self._settings.servers.items():
            try:
                listed = self._sessions[name].list_tools()
            except ServerUnavailable as error:
                self._dead[name] = str(error)
                self._problems.append(
                    f"MCP server {name!r} is not available, and neither are its tools: {error}"
                )
                continue
            missing = find_unmatched_patterns((each.name for each in listed), server.allow)
            self._problems += [
                f"MCP server {name!r} has no tool like {one!r}, which `allow` names"
                for one in missing
            ]
            for tool in self._tools_of(name, server, listed):
                if tool.name in tools:
                    raise ConfigError(
                        f"tools.mcp: servers {tools[tool.name][0]!r} and {name!r} both "
                        "have a tool that would be "
                        f"{tool.name!r}",
                        hint="give one of the servers another `prefix`, or leave the "
                        "tool out with `deny`",
                    )
                tools[tool.name] = (name, tool)
        return tuple(tool for _, tool in tools.values())

    def _tools_of(
        self, name: str, server: McpServer, listed: Iterable[ListedTool]
    ) -> Iterator[Tool]:
        """Yield the server's selected tools as registry tools; only one declared read-only has no
        side effects."""
        known: set[str] = set()
        for each in listed:
            if not is_selected(each.name, server) or each.name in known:
                continue
            known.add(each.name)
            tool = Tool(
                name=tool_name(name if server.prefix is None else server.prefix, each.name),
                description=(each.description or each.title or "")[:MAX_DESCRIPTION],
                input_schema=each.input_schema,
                output_schema=each.output_schema or {},
                invoke=partial(self._sessions[name].call, each.name),
                timeout_seconds=server.call_timeout_seconds
                + server.start_timeout_seconds
                + _RESTART_SECONDS,
                side_effects=not (each.annotations and each.annotations.read_only_hint),
            )
            try:
                ToolRegistry((tool,))
            except AeonError as error:
                self._problems.append(
                    f"MCP server {name!r}: its tool {each.name!r} is left out: {error}"
                )
            else:
                yield tool


def _close_all(sessions: Iterable[ServerSession], portal: BlockingPortal) -> None:
    ending = [task for session in sessions if (task := session.close()) is not None]
    futures.wait(ending, _CLOSE_SECONDS)
    portal.call(portal.stop, True)
