"""One life of one server: started or connected to, handshaken, its tools listed, and ended.

The SDK's client must be left by the task that entered it, so each connection has an owner task. Everything here runs
on one event loop.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from aeon.tools.mcp.processes import end_group, noted_processes
from aeon.tools.mcp.results import bounded_check
from aeon.tools.mcp.stderr import LastWords
from aeon.tools.mcp.transport import MissingVariable, transport
from aeon.tools.mcp_settings import McpServer

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import Client
    from mcp.types import Tool as ListedTool

MAX_TOOLS = 1000
_LAST_ANSWER_SECONDS = 0.3


class ServerUnavailable(Exception):
    """A server did not start, or could not be reached; the text says why, and what it wrote on its standard error."""


class Started(NamedTuple):
    """A server that answers: the client that speaks to it, and the tools it has."""

    client: Client
    tools: tuple[ListedTool, ...]


class Connection:
    """A server's life, from construction until `lost`. `after` is the one before, ended first.

    Those who make calls over it count them in `in_flight`, and set `forgotten` when the server does not know its
    session any more: then no new call is made over it, and it ends with the last one.
    """

    def __init__(self, server: McpServer, environ: Mapping[str, str], after: Connection | None = None) -> None:
        self._server = server
        self._environ = environ
        self._last_words = LastWords()
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
        """Whether no further call can be made over it."""
        return self._end.is_set()

    async def started(self) -> Started:
        """The client and the tools, once the server answers. ServerUnavailable when it does not, or not in time."""
        return await asyncio.shield(self._started)

    def drop(self) -> None:
        """Begin to end it: the connection is closed, the process asked to go, and after a few seconds killed."""
        self._dropped = True
        self._end.set()
        if self._scope is not None and not self._started.done():
            self._scope.cancel()

    async def aclose(self) -> None:
        """End it, and come back when it has ended; takes no more than some seven seconds."""
        self.drop()
        await asyncio.wait({self._owner})

    async def with_last_words(self, told: str) -> str:
        """What is told of a process that went away, with what it wrote last on its standard error."""
        said = "" if self._server.url else await self._last_words.text()
        return f"{told}; it wrote: {said}" if said else told

    def _exited(self) -> None:
        # What it said before it went is still on its way.
        asyncio.get_running_loop().call_later(_LAST_ANSWER_SECONDS, self._end.set)

    async def _live(self, after: Connection | None) -> None:
        failure = "the connection was closed"
        with self._last_words, noted_processes(self._exited) as started:
            try:
                if after is not None:
                    await after.aclose()
                failure = await self._serve() or failure
            # What breaks here broke in the SDK or in the server: a failure of this server, whatever its type.
            except Exception as error:
                failure = reason(error)
            finally:
                self._end.set()
                for process in started:
                    await end_group(process.pid)
                    process.release()
                if not self._started.done():
                    self._started.set_exception(ServerUnavailable(await self.with_last_words(failure)))

    async def _serve(self) -> str:
        """Enter the client, stay until the end, leave it. Returns why nothing was started, "" when it was."""
        import anyio
        from mcp import Client

        if self.lost:
            return ""
        # One scope around the client's whole life, since scopes must nest: the deadline goes once it has started.
        with anyio.move_on_after(self._server.start_timeout_seconds) as self._scope:
            way = transport(self._server, self._environ, self._last_words, self._end.set)
            async with Client(way, cache=None) as client:
                self._last_words.close()
                tools = await list_tools(client)
                # The SDK's own check of results has no end, and a server writes the schema and the result.
                client.session.validate_tool_result = bounded_check(tools)  # type: ignore[method-assign, assignment]
                self._scope.deadline = math.inf
                self._started.set_result(Started(client, tools))
                await self._end.wait()
        timed_out = self._scope.cancelled_caught and not self._dropped
        return f"no answer within {self._server.start_timeout_seconds:g} s" if timed_out else ""


async def list_tools(client: Client) -> tuple[ListedTool, ...]:
    """All pages of the tools; ends at a cursor seen before and at MAX_TOOLS, whatever the server says."""
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


def reason(error: BaseException) -> str:
    """What an error says, or for a group what each of them says; by its type where its text alone says too little."""
    from mcp import MCPError

    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(reason(each) for each in error.exceptions))
    said = str(error)
    if said and isinstance(error, MCPError | OSError | RuntimeError | MissingVariable):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
