"""One connection to one server: start or connect, handshake, list the tools, end.

The SDK's client must be left by the task that entered it, so each connection has an owner task. Everything here runs
on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from aeon.tools.mcp.process import StderrTail, watch_processes
from aeon.tools.mcp.results import bounded_check
from aeon.tools.mcp.transport import MissingVariable, open_transport
from aeon.tools.settings import McpServer

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import Client
    from mcp.types import Tool as ListedTool

MAX_TOOLS = 1000
_LAST_OUTPUT_SECONDS = 0.3


class ServerUnavailable(Exception):
    """A server did not start, or could not be reached; the text has the reason and the end of its standard error."""


class Started(NamedTuple):
    """A server that answers: its client and its tools."""

    client: Client
    tools: tuple[ListedTool, ...]


class Connection:
    """A connection, from construction until `lost`. `after` is the connection before, which is ended first.

    Callers count their calls in `in_flight`, and set `forgotten` when the server does not know the session any more:
    then no new call is made over it, and it ends with the last one.
    """

    def __init__(self, server: McpServer, environ: Mapping[str, str], after: Connection | None = None) -> None:
        self._server = server
        self._environ = environ
        self._stderr = StderrTail()
        self.in_flight = 0
        self.forgotten = False
        self._end = asyncio.Event()
        self._dropped = False
        self._scope: CancelScope | None = None
        self._started: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
        self._started.add_done_callback(lambda started: started.cancelled() or started.exception())
        self._owner = asyncio.create_task(self._live(after))

    @property
    def lost(self) -> bool:
        """Whether no further call can be made."""
        return self._end.is_set()

    async def started(self) -> Started:
        """The client and the tools, once the server answers. Raises ServerUnavailable when it does not in time."""
        return await asyncio.shield(self._started)

    def drop(self) -> None:
        """Begin to end: the connection is closed, the process asked to end, and after a few seconds killed."""
        self._dropped = True
        self._end.set()
        if self._scope is not None and not self._started.done():
            self._scope.cancel()

    async def aclose(self) -> None:
        """End, and return when it has ended, after about seven seconds at most."""
        self.drop()
        await asyncio.wait({self._owner})

    async def add_stderr(self, message: str) -> str:
        """A message about a process that has ended, with the end of its standard error."""
        written = "" if self._server.url else await self._stderr.text()
        return f"{message}; it wrote: {written}" if written else message

    def _on_exit(self) -> None:
        # Its last output may still be on its way.
        asyncio.get_running_loop().call_later(_LAST_OUTPUT_SECONDS, self._end.set)

    async def _live(self, after: Connection | None) -> None:
        failure = "the connection was closed"
        with self._stderr, watch_processes(self._on_exit) as started:
            try:
                if after is not None:
                    await after.aclose()
                failure = await self._serve() or failure
            # An error of the SDK or of the server is a failure of this server, whatever its type.
            except Exception as error:
                failure = explain(error)
            finally:
                self._end.set()
                for process in started:
                    await process.end_group()
                if not self._started.done():
                    self._started.set_exception(ServerUnavailable(await self.add_stderr(failure)))

    async def _serve(self) -> str:
        """Enter the client, stay until the end, leave it. Returns why nothing was started, "" when something was."""
        import anyio
        from mcp import Client

        if self.lost:
            return ""
        # One scope around the client's whole life, since scopes must nest: the deadline goes once it has started.
        with anyio.move_on_after(self._server.start_timeout_seconds) as self._scope:
            transport = open_transport(self._server, self._environ, self._stderr, self._end.set)
            async with Client(transport, cache=None) as client:
                self._stderr.close()
                tools = await list_tools(client)
                # The SDK's own check of results is unbounded, and a server writes the schema and the result.
                client.session.validate_tool_result = bounded_check(tools)  # type: ignore[method-assign, assignment]
                self._scope.deadline = math.inf
                self._started.set_result(Started(client, tools))
                await self._end.wait()
        timed_out = self._scope.cancelled_caught and not self._dropped
        return f"no answer within {self._server.start_timeout_seconds:g} s" if timed_out else ""


async def list_tools(client: Client) -> tuple[ListedTool, ...]:
    """All pages of the tools; ends at a cursor seen before and at MAX_TOOLS."""
    tools: list[ListedTool] = []
    cursor: str | None = None
    seen: set[str] = set()
    while len(tools) < MAX_TOOLS:
        page = await client.list_tools(cursor=cursor)
        tools.extend(page.tools)
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    return tuple(tools[:MAX_TOOLS])


def explain(error: BaseException) -> str:
    """The text of an error, or of each in a group; with its type where the text alone is too little."""
    from mcp import MCPError

    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(explain(each) for each in error.exceptions))
    message = str(error)
    if message and isinstance(error, MCPError | OSError | RuntimeError | MissingVariable):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
