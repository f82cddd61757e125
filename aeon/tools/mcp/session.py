"""The session with one server: it is started, called, and started again after it went away."""

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
"""The longest message of a server that is read."""
_GATEWAY: tuple[str, ...] = ()
if sys.platform != "win32":  # there the SDK's job object ends what a server has started
    _SCRIPT = Path(__file__).with_name("gateway.py")
    _GATEWAY = (sys.executable, "-I", "-S", str(_SCRIPT), str(MAX_MESSAGE_BYTES))
_SIGN_OF_LIFE_SECONDS = 2.0
_CONNECT_SECONDS = 30.0
_END_SECONDS = 10.0
_STDERR_BYTES = 8192
_STDERR_LINES = 5
# The answer of a server that does not know the session: 404 by the specification, 400 by many
# servers. Either way the message was refused before anything was done for it.
_UNKNOWN_SESSION = (404, 400)
_TOO_DEEP = "recursion limit"  # what the SDK's reader of JSON says


class ToolFailed(AeonError):
    """A tool gave no result; the message is that of the server or of the connection."""


class ServerUnavailable(Exception):
    """A server did not start, or could not be reached; the text has the reason and the end of its
    standard error."""


class ServerSession:
    """Calls to one server, from any thread. One that died is started again by the next call,
    `max_restarts` times at most."""

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
        """The present connection, which may still be starting; a new one where that is lost.

        Raises ServerUnavailable when there may be no other.
        """
        with self._lock:
            before = self._connection
            if self._closed:
                raise ServerUnavailable("the session is closed")
            if os.getpid() != self._process:  # it has none of the threads that speak to servers
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
        """The server's tools; starts the server if need be. Raises ServerUnavailable when it does
        not start."""
        connection = self.connect()
        connection.started.result()
        return connection.tools

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """The output of the server's tool of that name.

        Raises ToolFailed, with the server's own message where there is one, when it reports an
        error, answers something that is no result, does not answer in time, dies meanwhile, or
        cannot be started again. A call that the server refused because it does not know the session
        is made once more, over a new one.
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
            # An error instead of a result, something that is no result, a lost connection: one
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
        """Begin to end; later calls fail. Returns what is done when no process is left, None if
        nothing was started."""
        with self._lock:
            self._closed = True
            return None if self._connection is None else self._connection.close()


class _ServerLife:
    """One life of a server, from construction until it is lost.

    The SDK's client must be left by the task that entered it, so each connection has a task of its
    own in the portal. `started` has the client once the server has listed its `tools`, or raises
    ServerUnavailable. `forgotten`: the server does not know the session any more.
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
        """The server's answer to a call. Raises what the SDK raises, and TimeoutError."""
        answer = self._portal.start_task_soon(self._call, tool, dict(arguments))
        try:
            return cast("CallToolResult", answer.result())
        finally:
            answer.cancel()

    def close(self) -> futures.Future[None]:
        """Begin to end; returns what is done when no process is left, after a few seconds."""
        self._portal.call(self._end.set)
        if not self.started.done():
            self._task.cancel()
        return self._task

    def explain(self, error: BaseException) -> str:
        """Why a call has failed."""
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
            # One that answers nothing else either is frozen: the next call starts another.
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

        # One scope around the client's whole life, since scopes must nest: the deadline goes once
        # it has started.
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
        """The SDK's transport to a process. The SDK reports the end of a process only to those who
        wait for an answer; here it is noticed at once."""
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
        """The messages of a stream. When it ends, or a message cannot be read because it is nested
        too deeply, which the SDK would not report to who waits for it, so does the connection."""
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

        # What is compressed has no size until it is unpacked.
        headers = {"Accept-Encoding": "identity"} | {
            header: self._variable(name) for header, name in self._server.headers_env.items()
        }
        if self._server.bearer_env:
            headers["Authorization"] = f"Bearer {self._variable(self._server.bearer_env)}"
        # Reading may take as long as a call may, which has a limit of its own.
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
    """The SDK's own check of results takes unbounded time; the caller of a tool checks its output
    in bounded time."""


async def _list_tools(client: Client) -> tuple[ListedTool, ...]:
    """All pages of the tools; ends at a cursor seen before and at MAX_TOOLS."""
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
