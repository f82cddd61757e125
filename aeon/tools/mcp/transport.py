"""How a server is reached: its process or its address, with what the environment adds to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from aeon.tools.mcp.stderr import LastWords
from aeon.tools.mcp_settings import McpServer

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport

_CONNECT_SECONDS = 30.0


_SESSION_HEADER = "mcp-session-id"
# What is said to a session that the server does not know: 404 by the specification, 400 by many servers. Either way
# the message was turned away before anybody looked at what it asks for.
_UNKNOWN_SESSION = (404, 400)
_refusals: ContextVar[list[int] | None] = ContextVar("mcp_session_refusals", default=None)


class MissingVariable(Exception):
    """The configuration names an environment variable that is not set."""


def transport(
    server: McpServer, environ: Mapping[str, str], last_words: LastWords, on_end: Callable[[], None]
) -> Transport:
    """The SDK's transport to a server; `on_end` is called when the server's side of it ends.

    Entering starts the process or opens the connection, leaving ends it. MissingVariable when a variable named in the
    configuration is not in `environ`.
    """
    return _watched(_http(server, environ) if server.url else _stdio(server, environ, last_words), on_end)


def _stdio(server: McpServer, environ: Mapping[str, str], last_words: LastWords) -> AbstractAsyncContextManager[Any]:
    from mcp.client.stdio import StdioServerParameters, stdio_client

    program, *arguments = (*server.command, *server.args)
    parameters = StdioServerParameters(
        command=program,
        args=arguments,
        env={name: _value(name, environ) for name in server.env},
        cwd=server.cwd,
        encoding_error_handler="replace",
    )
    return stdio_client(parameters, errlog=last_words.write_end)


@asynccontextmanager
async def _http(server: McpServer, environ: Mapping[str, str]) -> AsyncIterator[Any]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    # Reading may take as long as a call may: who waits for an answer knows how long.
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    async with (
        httpx2.AsyncClient(
            headers=_headers(server, environ), timeout=timeout, event_hooks={"response": [_note_refusal]}
        ) as client,
        streamable_http_client(server.url or "", http_client=client) as streams,
    ):
        yield streams


@contextmanager
def refusals() -> Iterator[list[int]]:
    """The status of each message, sent in this block, that was turned away because its session is not known."""
    found: list[int] = []
    token = _refusals.set(found)
    try:
        yield found
    finally:
        _refusals.reset(token)


async def _note_refusal(response: httpx2.Response) -> None:
    """The SDK sends in the context of who asks, so what is noted is that one's message and nobody else's."""
    found = _refusals.get()
    if found is not None and response.status_code in _UNKNOWN_SESSION and _SESSION_HEADER in response.request.headers:
        found.append(response.status_code)


def _headers(server: McpServer, environ: Mapping[str, str]) -> dict[str, str]:
    headers = {header: _value(name, environ) for header, name in server.headers_env.items()}
    if server.bearer_env:
        headers["Authorization"] = f"Bearer {_value(server.bearer_env, environ)}"
    return headers


def _value(name: str, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise MissingVariable(f"the environment variable {name} is not set")
    return environ[name]


@asynccontextmanager
async def _watched(inner: AbstractAsyncContextManager[Any], on_end: Callable[[], None]) -> AsyncIterator[Any]:
    async with inner as (read_stream, write_stream):
        yield _WatchedStream(read_stream, on_end), write_stream


class _WatchedStream:
    """A read stream that says when it has ended: the SDK itself tells only those who are waiting for an answer."""

    def __init__(self, inner: Any, on_end: Callable[[], None]) -> None:
        self._inner = inner
        self._on_end = on_end

    @property
    def last_context(self) -> Any:
        """The context variables that came with the latest message, where the transport keeps them."""
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> Any:
        """The next message."""
        return await self._inner.receive()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

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

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Any:
        return await self._inner.__aexit__(kind, error, traceback)
