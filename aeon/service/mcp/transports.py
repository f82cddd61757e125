"""How clients reach the server: standard streams of the process, or HTTP on the loopback
address."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO, cast

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.message import SessionMessage

from aeon.domain.errors import ConfigError
from aeon.service.mcp.lines import read_lines, select_messages

_HOST = "127.0.0.1"
_PATH = "/mcp"
_LAST_SECONDS = 5


def serve_stdio(server: Server, output: TextIO) -> None:
    """Serve the client at the other end of standard input and `output`, until it disconnects."""
    anyio.run(_serve_streams, server, output)


async def _serve_streams(server: Server, output: TextIO) -> None:
    sending, lines = anyio.create_memory_object_stream[str]()
    reading = threading.Thread(
        target=_send_lines, args=(_take_input(), sending, current_token()), daemon=True
    )
    reading.start()

    async def send(refusal: SessionMessage) -> None:
        await writer.send(refusal)

    messages = select_messages(lines, send)
    incoming = cast("anyio.AsyncFile[str]", messages)  # only its lines are read
    async with stdio_server(incoming, anyio.wrap_file(output)) as (reader, writer):
        await server.run(reader, writer, server.create_initialization_options())


def _take_input() -> TextIO:
    """Reserve standard input for the server: processes that runs start find it empty."""
    own = os.dup(0)
    with open(os.devnull) as nothing:  # noqa: PTH123
        os.dup2(nothing.fileno(), 0)
    return os.fdopen(own, encoding="utf-8", errors="replace")


def _send_lines(
    stream: TextIO, sending: MemoryObjectSendStream[str], token: EventLoopToken
) -> None:
    """Pass the lines of a stream to the event loop, as fast as they are read. In a daemon thread:
    waiting for a line must not delay the end of the process."""
    with suppress(Exception):  # the loop is closed, and nobody takes them any more
        for line in read_lines(stream):
            from_thread.run(sending.send, line, token=token)
        from_thread.run_sync(sending.close, token=token)


def serve_http(server: Server, port: int, say: Callable[[str], None]) -> None:
    """Serve clients of this machine at a port, any free one for 0, until the process is stopped.
    Raises ConfigError for a port that is taken."""
    import uvicorn  # not for standard streams

    try:
        listening = socket.create_server((_HOST, port))
    except OSError as error:
        raise ConfigError(
            f"mcp.port={port}: {error.strerror or error}", hint="Choose another port."
        ) from None
    with listening:
        port = listening.getsockname()[1]
        names = [f"{host}:{port}" for host in (_HOST, "localhost")]
        security = TransportSecuritySettings(
            allowed_hosts=names, allowed_origins=[f"http://{name}" for name in names]
        )
        app = server.streamable_http_app(
            streamable_http_path=_PATH, host=_HOST, transport_security=security
        )
        config = uvicorn.Config(
            app,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_LAST_SECONDS,
        )
        say(f"Serving MCP at http://{_HOST}:{port}{_PATH}")
        uvicorn.Server(config).run(sockets=[listening])
