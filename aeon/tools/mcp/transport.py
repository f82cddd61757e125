"""The SDK's transports to a server: to its process or to its address, with what the environment adds to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from aeon.tools.mcp.process import StderrTail
from aeon.tools.settings import McpServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport

_CONNECT_SECONDS = 30.0
_SESSION_HEADER = "mcp-session-id"
# The answer of a server that does not know the session: 404 by the specification, 400 by many servers. Either way the
# message was refused before anything was done for it.
_UNKNOWN_SESSION = (404, 400)
_refusals: ContextVar[list[int] | None] = ContextVar("mcp_session_refusals", default=None)


class MissingVariable(Exception):
    """The configuration names an environment variable that is not set."""


def open_transport(
    server: McpServer, environ: Mapping[str, str], stderr: StderrTail, on_end: Callable[[], None]
) -> Transport:
    """The transport to a server; `on_end` is called when the server's side of it ends.

    Entering starts the process or opens the connection, leaving ends it. Raises MissingVariable when a variable named
    in the configuration is not in `environ`.
    """
    return _watch_end(_http(server, environ) if server.url else _stdio(server, environ, stderr), on_end)


def _stdio(server: McpServer, environ: Mapping[str, str], stderr: StderrTail) -> AbstractAsyncContextManager[Any]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    program, *arguments = (*server.command, *server.args)
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env={name: _value(name, environ) for name in server.env},
        cwd=server.cwd,
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=stderr.write_end)


@asynccontextmanager
async def _http(server: McpServer, environ: Mapping[str, str]) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    headers = {header: _value(name, environ) for header, name in server.headers_env.items()}
    if server.bearer_env:
        headers["Authorization"] = f"Bearer {_value(server.bearer_env, environ)}"
    # Reading may take as long as a call may, which has a limit of its own.
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    hooks = {"response": [_note_refusal]}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, event_hooks=hooks) as client,
        streamable_http_client(server.url or "", http_client=client) as streams,
    ):
        yield streams


@contextmanager
def refusals() -> Iterator[list[int]]:
    """Collect the status of each message, sent in this block, that was refused because its session is not known."""
    found: list[int] = []
    token = _refusals.set(found)
    try:
        yield found
    finally:
        _refusals.reset(token)


async def _note_refusal(response: httpx2.Response) -> None:
    """The SDK sends in the context of the caller, so that each refusal is noted for its own caller."""
    found = _refusals.get()
    if found is not None and response.status_code in _UNKNOWN_SESSION and _SESSION_HEADER in response.request.headers:
        found.append(response.status_code)


def _value(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise MissingVariable(f"the environment variable {name} is not set")
    return environ[name]


@asynccontextmanager
async def _watch_end(inner: AbstractAsyncContextManager[Any], on_end: Callable[[], None]) -> AsyncIterator[Any]:
    async with inner as (read_stream, write_stream):
        yield _WatchedStream(read_stream, on_end), write_stream


class _WatchedStream:
    """A read stream that reports its end: the SDK itself tells only those who are waiting for an answer."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._inner.__anext__()
        except BaseException:
            self._on_end()
            raise

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._inner.__aexit__(*raised)
