"""The session with one server, which is started, called, and restarted after it went away."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent import futures
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from aeon.domain.errors import AeonError
from aeon.files.pinned import check_program
from aeon.tools.mcp.results import error_text, output
from aeon.tools.settings import McpServer

if TYPE_CHECKING:
    import httpx2
    from anyio.from_thread import BlockingPortal
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

MAX_TOOLS = 1000
MAX_MESSAGE_BYTES = 8_000_000
"""The longest message read from a server."""
_GATEWAY: tuple[str, ...] = ()
if sys.platform != "win32":  # on Windows the SDK's job object ends the server's processes
    _SCRIPT = Path(__file__).with_name("gateway.py")
    _GATEWAY = (sys.executable, "-I", "-S", str(_SCRIPT), str(MAX_MESSAGE_BYTES))
_SIGN_OF_LIFE_SECONDS = 2.0
_CONNECT_SECONDS = 30.0
_END_SECONDS = 10.0
_STDERR_BYTES = 8192
_STDERR_LINES = 5
# The status for an unknown session: 404 by the specification, 400 from many servers. Either way,
# the message was refused before anything was done for it.
_UNKNOWN_SESSION = (404, 400)
_TOO_DEEP = "recursion limit"  # part of the error of the SDK's JSON reader


class ToolFailed(AeonError):
    """A tool returned no result; the message comes from the server or the connection."""


class ServerUnavailable(Exception):
    """A server did not start or could not be reached; the text has the reason and the end of its
    standard error."""


class ServerSession:
    """Calls to one server, from any thread. The next call restarts a server that died, at most
    `max_restarts` times."""

    def __init__(
        self, server: McpServer, environ: Mapping[str, str], portal: BlockingPortal
    ) -> None:
        self._server = server
        self._environ = environ
        self._portal = portal
        self._lock = threading.Lock()
        self._connection: _ServerLife | None = None
        self._restarts = 0
        self._closed = False
        self._process = os.getpid()

    def connect(self) -> _ServerLife:
        """Return the current connection, which may still be starting; a new one if it is lost.

        Raises ServerUnavailable if there may be no other.
        """
        with self._lock:
            before = self._connection
            if self._closed:
                raise ServerUnavailable("the session is closed")
            # this process has none of the threads that speak to servers
            if os.getpid() != self._process:
                raise ServerUnavailable(
                    "its session is of the process that this one was forked from"
                )
            if before is not None and not before.is_lost:
                return before
            if before is not None:
                if self._restarts >= self._server.max_restarts:
                    raise ServerUnavailable(
                        f"it went away, and max_restarts ({self._server.max_restarts}) is used up"
                    )
                self._restarts += 1
                futures.wait([before.close()], _END_SECONDS)
            self._connection = _ServerLife(self._server, self._environ, self._portal)
            return self._connection

    def list_tools(self) -> tuple[ListedTool, ...]:
        """Return the server's tools; starts the server if necessary. Raises ServerUnavailable if it
        does not start."""
        connection = self.connect()
        connection.started.result()
        return connection.tools

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call the server's tool of that name and return its output.

        Raises ToolFailed, with the server's message if there is one, if it reports an error,
        returns something that is no result, does not answer in time, dies meanwhile, or cannot be
        restarted. A call refused for an unknown session is repeated once over a new session.
        """
        is_again = False
        while True:
            try:
                connection = self.connect()
                connection.started.result()
            except ServerUnavailable as error:
                raise ToolFailed(f"the server is not available: {error}") from error
            try:
                result = connection.call(tool, arguments)
            # An error instead of a result, an invalid result, a lost connection: all are one
            # failure.
            except (Exception, futures.CancelledError) as error:
                if is_again or not connection.forgotten:
                    raise ToolFailed(connection.explain(error)) from error
                is_again = True
                continue
            if result.is_error:
                raise ToolFailed(error_text(result))
            return output(result)

    def close(self) -> futures.Future[None] | None:
        """Begin to close; later calls fail. Returns a future that is done when no process is left,
        or None if nothing was started."""
        with self._lock:
            self._closed = True
            return None if self._connection is None else self._connection.close()


class _ServerLife:
    """One life of a server, from its start until it is lost.

    The SDK's client must be left by the task that entered it, so each connection has its own task
    in the portal. `started` holds the client once the server has listed its `tools`, or raises
    ServerUnavailable. `forgotten`: the server no longer knows the session.
    """

    def __init__(
        self, server: McpServer, environ: Mapping[str, str], portal: BlockingPortal
    ) -> None:
        import anyio

        self._server = server
        self._environ = environ
        self._portal = portal
        self._last_words = ""
        self._refused = ""
        self._end = anyio.Event()
        self.forgotten = False
        self.tools: tuple[ListedTool, ...] = ()
        self.started: futures.Future[Client] = futures.Future()
        self._task = portal.start_task_soon(self._live)

    @property
    def is_lost(self) -> bool:
        """Whether no further call can be made."""
        return self._end.is_set() or self.forgotten

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallToolResult:
        """Return the server's answer to a call. Raises the SDK's errors and TimeoutError."""
        answer = self._portal.start_task_soon(self._call, tool, dict(arguments))
        try:
            return cast("CallToolResult", answer.result())
        finally:
            answer.cancel()

    def close(self) -> futures.Future[None]:
        """Begin to close; returns a future that is done when no process is left, after a few
        seconds."""
        self._portal.call(self._end.set)
        if not self.started.done():
            self._task.cancel()
        return self._task

    def explain(self, error: BaseException) -> str:
        """Return why a call failed."""
        if isinstance(error, TimeoutError):
            return f"no answer within {self._server.call_timeout_seconds:g} s"
        if self._end.is_set():
            futures.wait([self._task], _END_SECONDS)
            why = self._refused or _text_of(error)
            return f"the server went away during the call ({why}){self._last_words}"
        return _text_of(error)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        import anyio

        client = self.started.result()
        try:
            with anyio.fail_after(self._server.call_timeout_seconds):
                return await client.call_tool(tool, arguments)
        except TimeoutError:
            # A server that does not answer this either is frozen: the next call starts another.
            with anyio.move_on_after(_SIGN_OF_LIFE_SECONDS) as waiting, suppress(Exception):
                await client.list_tools()
            if waiting.cancelled_caught:
                self._end.set()
            raise

    async def _live(self) -> None:
        failure = "the connection was closed"
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
            try:
                await self._serve(stderr)
            except TimeoutError:
                failure = f"no answer within {self._server.start_timeout_seconds:g} s"
            # An error of the SDK or of the server is a failure of this server, whatever its type.
            except Exception as error:
                failure = _text_of(error)
            finally:
                stderr.seek(max(0, stderr.seek(0, os.SEEK_END) - _STDERR_BYTES))
                words = "\n".join(stderr.read().strip().splitlines()[-_STDERR_LINES:])
                self._last_words = f"; it wrote: {words}" if words else ""
                self._end.set()
                if not self.started.done():
                    self.started.set_exception(ServerUnavailable(failure + self._last_words))

    async def _serve(self, stderr: TextIO) -> None:
        import anyio
        from mcp import Client

        # One scope around the client's whole life, because scopes must nest: the deadline is
        # removed once it has started.
        with anyio.fail_after(self._server.start_timeout_seconds) as scope:
            transport = self._over_http() if self._server.url else self._over_stdio(stderr)
            async with Client(transport, cache=None) as client:
                self.tools = await _list_tools(client)
                client.session.validate_tool_result = _leave_unchecked  # type: ignore[method-assign]
                scope.deadline = math.inf
                self.started.set_result(client)
                await self._end.wait()

    @asynccontextmanager
    async def _over_stdio(self, stderr: TextIO) -> AsyncIterator[Any]:
        """Open the SDK's transport to a process. The SDK reports the end of a process only to
        waiting callers; this one notices it at once."""
        from mcp.client.stdio import StdioServerParameters, stdio_client

        check_program(
            (*self._server.command, *self._server.args), Path(self._server.cwd or ".").absolute()
        )
        program, *arguments = (*_GATEWAY, *self._server.command, *self._server.args)
        parameters = StdioServerParameters(
            command=program,
            args=arguments,
            env={name: self._variable(name) for name in self._server.env},
            cwd=self._server.cwd,
            encoding_error_handler="replace",
        )
        async with (
            stdio_client(parameters, errlog=stderr) as (incoming, outgoing),
            self._watch(incoming) as receiving,
        ):
            yield receiving, outgoing

    @asynccontextmanager
    async def _watch(self, incoming: Any) -> AsyncIterator[Any]:
        """Yield the messages of a stream. The connection ends when the stream ends, or when a
        message is nested too deeply to be read, which the SDK would not report to waiting callers.
        """
        import anyio

        sending, receiving = anyio.create_memory_object_stream[Any](0)

        async def forward() -> None:
            async with sending:
                async for message in incoming:
                    if isinstance(message, Exception) and _TOO_DEEP in str(message):
                        self._refused = "it sent a message that is nested too deeply to be read"
                        self._end.set()
                        raise ServerUnavailable(self._refused)
                    await sending.send(message)
                self._end.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(forward)
            with receiving:
                yield receiving
            tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def _over_http(self) -> AsyncIterator[Any]:
        import httpx2
        from mcp.client.streamable_http import streamable_http_client

        from aeon.tools.mcp.bounded import bound_response  # loads an HTTP client

        async def note_refusal(response: httpx2.Response) -> None:
            request = response.request
            if request.method == "POST" and "mcp-session-id" in request.headers:
                self.forgotten |= response.status_code in _UNKNOWN_SESSION

        # The size of compressed content is unknown until it is unpacked.
        headers = {"Accept-Encoding": "identity"} | {
            header: self._variable(name) for header, name in self._server.headers_env.items()
        }
        if self._server.bearer_env:
            headers["Authorization"] = f"Bearer {self._variable(self._server.bearer_env)}"
        # Reading may take as long as a call, which has its own limit.
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        hooks: dict[str, list[Callable[..., Any]]] = {
            "response": [note_refusal, partial(bound_response, MAX_MESSAGE_BYTES)]
        }
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
            streamable_http_client(
                self._server.url or "",
                http_client=client,
                max_sse_event_size=MAX_MESSAGE_BYTES,
            ) as (incoming, outgoing),
            self._watch(incoming) as receiving,
        ):
            yield receiving, outgoing

    def _variable(self, name: str) -> str:
        if name not in self._environ:
            raise ServerUnavailable(f"the environment variable {name} is not set")
        return self._environ[name]


async def _leave_unchecked(name: str, result: CallToolResult) -> None:
    """Skip the SDK's check of results, which takes unbounded time; the caller checks a tool's
    output in bounded time."""


async def _list_tools(client: Client) -> tuple[ListedTool, ...]:
    """Return the tools of all pages; stops at a repeated cursor and at MAX_TOOLS."""
    tools: list[ListedTool] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    while len(tools) < MAX_TOOLS and cursor not in seen:
        page = await client.list_tools(cursor=cursor)
        tools.extend(page.tools)
        seen.add(cursor)
        cursor = page.next_cursor
        if cursor is None:
            break
    return tuple(tools[:MAX_TOOLS])


def _text_of(error: BaseException) -> str:
    from mcp import MCPError

    if isinstance(error, BaseExceptionGroup):
        return "; ".join(dict.fromkeys(_text_of(each) for each in error.exceptions))
    message = str(error)
    if message and isinstance(error, MCPError | OSError | RuntimeError | ServerUnavailable):
        return message
    return f"{type(error).__name__}: {message}" if message else type(error).__name__
