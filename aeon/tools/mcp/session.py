"""The session with one server: calls, and restarts within limits. Runs on one event loop."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from aeon.domain.errors import AeonError
from aeon.tools.mcp.connection import Connection, ServerUnavailable, explain
from aeon.tools.mcp.results import error_text, output
from aeon.tools.mcp.transport import refusals
from aeon.tools.settings import McpServer

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

T = TypeVar("T")

PROBE_SECONDS = 5.0


class ToolFailed(AeonError):
    """A tool gave no result; the message is that of the server or of the connection."""


class SessionUnknown(ToolFailed):
    """The server has restarted and does not know the session any more. The call was not carried out."""


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
        """The server's tools; starts the server if need be. Raises ServerUnavailable when it does not start."""
        return (await self._current().started()).tools

    async def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The output of the server's tool of that name.

        Raises ToolFailed, with the server's own message where there is one, when it reports an error, answers something
        that is no result, does not answer in time, dies meanwhile, or cannot be started again. A call that the server
        refused because it does not know the session is made once more, over a new one.
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
                raise SessionUnknown(explain(error)) from error
            self._doubtful = True
            raise ToolFailed(await self._why(connection, error)) from error
        finally:
            connection.in_flight -= 1
            # Other calls may still get their refusals over it.
            if connection.forgotten and not connection.in_flight:
                connection.drop()

    async def _why(self, connection: Connection, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._server.call_timeout_seconds:g} s"
        if connection.lost:
            return await connection.add_stderr(f"the server went away during the call ({explain(error)})")
        return explain(error)

    async def _alive(self) -> Connection:
        """A connection that answers. Raises ToolFailed when there is none.

        After a call without a result, and with none running, the server is asked for its tools first.
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
        # A server that cannot even list its tools is restarted.
        except Exception:
            connection.drop()
            connection = self._current()
            await connection.started()
        return connection

    def _current(self) -> Connection:
        """The connection to use: the present one, or a new one when that is lost."""
        if self._closed:
            raise ServerUnavailable("the session is closed")
        if self._connection is None:
            self._connection = Connection(self._server, self._environ)
        elif self._connection.lost or self._connection.forgotten:
            if self._restarts >= self._server.max_restarts:
                raise ServerUnavailable(f"it went away, and max_restarts ({self._server.max_restarts}) is used up")
            self._restarts += 1
            before = self._connection
            if not before.lost:
                self._forgotten.append(before)
            self._connection = Connection(self._server, self._environ, after=before if before.lost else None)
        return self._connection


async def in_time(answer: Awaitable[T], seconds: float) -> T:
    """The answer. Raises TimeoutError after so many seconds; the request is then cancelled at the server."""
    import anyio

    with anyio.fail_after(seconds):
        return await answer
