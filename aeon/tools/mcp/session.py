"""The session with one server, over its lives: calls, and restarts within limits. Runs on one event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from aeon.domain.errors import AeonError
from aeon.tools.mcp.connection import Connection, ServerUnavailable, reason
from aeon.tools.mcp.content import error_text, output
from aeon.tools.mcp.transport import refusals
from aeon.tools.mcp_settings import McpServer

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

T = TypeVar("T")

PROBE_SECONDS = 5.0


class ToolFailed(AeonError):
    """A tool gave no result; the message says why, in the words of whoever failed."""


class SessionUnknown(ToolFailed):
    """The server does not know the session any more: it was started anew meanwhile. The call was not carried out."""


class ServerSession:
    """Calls to one server. A server that died is started again by the next call, `max_restarts` times at most."""

    def __init__(self, server: McpServer, environ: Mapping[str, str]) -> None:
        self._server = server
        self._environ = environ
        self._restarts = 0
        self._doubtful = False
        self._closed = False
        self._connection: Connection | None = None
        self._forgotten: list[Connection] = []

    async def list_tools(self) -> tuple[ListedTool, ...]:
        """Start the server, if need be, and say which tools it has. ServerUnavailable when it does not start."""
        return (await self._current().started()).tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The output of the server's tool of that name.

        ToolFailed, with the server's own words where it said any, when it reports an error, answers something that is
        no result, does not answer in time, dies meanwhile, or cannot be started again. A call that the server turned
        away because it does not know the session is made once more, over a new one.
        """
        try:
            result = await self._result(await self._alive(), tool, arguments)
        except SessionUnknown:
            result = await self._result(await self._alive(), tool, arguments)
        if result.is_error:
            raise ToolFailed(error_text(result))
        return output(result)

    async def aclose(self) -> None:
        """End the session: no process is left, later calls fail."""
        self._closed = True
        for connection in (*self._forgotten, *filter(None, [self._connection])):
            await connection.aclose()

    async def _result(self, connection: Connection, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        client = (await connection.started()).client
        connection.in_flight += 1
        try:
            with refusals() as refused:
                return await in_time(client.call_tool(tool, dict(arguments)), self._server.call_timeout_seconds)
        # An error instead of a result, a result that breaks the tool's own schema, a lost connection: one failure.
        except Exception as error:
            if refused:
                connection.forgotten = True
                raise SessionUnknown(reason(error)) from error
            self._doubtful = True
            raise ToolFailed(await self._why(connection, error)) from error
        finally:
            connection.in_flight -= 1
            # Others may still be told over it that they were turned away.
            if connection.forgotten and not connection.in_flight:
                connection.drop()

    async def _why(self, connection: Connection, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._server.call_timeout_seconds:g} s"
        if connection.lost:
            return await connection.with_last_words(f"the server went away during the call ({reason(error)})")
        return reason(error)

    async def _alive(self) -> Connection:
        """A connection that answers; ToolFailed when there is none to be had.

        After a call without a result, and none still running, the server is asked.
        """
        try:
            return await self._answering()
        except ServerUnavailable as error:
            raise ToolFailed(f"the server is not available: {error}") from error

    async def _answering(self) -> Connection:
        connection = self._current()
        client = (await connection.started()).client
        if not self._doubtful or connection.in_flight:
            return connection
        self._doubtful = False
        try:
            await in_time(client.list_tools(), PROBE_SECONDS)
        # Whatever went wrong: a server that cannot even list its tools is started anew.
        except Exception:
            connection.drop()
            connection = self._current()
            await connection.started()
        return connection

    def _current(self) -> Connection:
        """The connection to use: the one there is, or a new one in place of one that was lost."""
        if self._closed:
            raise ServerUnavailable("the session is closed")
        if self._connection is None:
            self._connection = Connection(self._server, self._environ)
        elif self._connection.lost or self._connection.forgotten:
            if self._restarts >= self._server.max_restarts:
                raise ServerUnavailable(f"it went away, and max_restarts ({self._server.max_restarts}) is used up")
            self._restarts += 1
            before = self._connection
            if before.lost:
                self._connection = Connection(self._server, self._environ, after=before)
            else:
                self._forgotten.append(before)
                self._connection = Connection(self._server, self._environ)
        return self._connection


async def in_time(answer: Awaitable[T], seconds: float) -> T:
    """The answer, or TimeoutError after so many seconds; the server is then told that nobody waits any more."""
    import anyio

    with anyio.fail_after(seconds):
        return await answer
