"""The server process: its socket, its signals, and its stop."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from aeon.domain.errors import ConfigError
from aeon.service.http.app import make_app
from aeon.service.http.guard import Access
from aeon.service.jobs import Jobs

_REQUEST_SECONDS = 30.0
_MOST_CONNECTIONS = 400
_PART_OF_FILES = 0.4
"""Each connection is an open file of the process; runs need files beside them."""
_STOP_SECONDS = 60
_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds after which a client that has vanished without a word is noticed."""


class _PatientProtocol(H11Protocol):
    """Closes excess connections, and those that send no request in time, and drops those whose
    client does not read."""

    def connection_made(self, transport: Any) -> None:
        """Accept a client's connection."""
        super().connection_made(transport)
        self._idle_after: object = None
        self._unsent = 0
        self._patience = self.loop.call_later(_REQUEST_SECONDS, self._look)
        if len(self.connections) > count_allowed_connections():
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a client's connection."""
        self._patience.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        """Note that the client has read: what is unsent at the next look came later."""
        super().resume_writing()
        self._unsent = 0

    def _look(self) -> None:
        """Drop the connection where the client has read nothing since the last look, and close it
        where no request has arrived since then: an incomplete one would hold it open for ever."""
        unsent = self._count_unsent()
        if 0 < self._unsent <= unsent:
            # Closing it would wait until everything is read.
            self.transport.abort()
            return
        self._unsent = unsent
        is_idle = self.cycle is None or self.cycle.response_complete
        if is_idle and self.cycle is self._idle_after:
            self.transport.close()
        self._idle_after = self.cycle if is_idle else self
        self._patience = self.loop.call_later(_REQUEST_SECONDS, self._look)

    def _count_unsent(self) -> int:
        """Return the bytes that the client has to read before more are written; 0 where more may be
        sent, since their number then shows nothing."""
        is_full = self.flow.write_paused or self.transport.is_closing()
        return int(self.transport.get_write_buffer_size()) if is_full else 0


class JobServer(uvicorn.Server):
    """Stops gracefully at the first signal, at once at the second."""

    def __init__(self, config: uvicorn.Config, stop: Callable[[], None]) -> None:
        super().__init__(config)
        self._stop = stop

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs; ending by one is not an error."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handled = (signal.SIGINT, signal.SIGTERM)
        before = {each: signal.signal(each, self.handle_exit) for each in handled}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Stop: runs stop at their next safe boundary, and clients are notified."""
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
        threading.Thread(target=self._stop, daemon=True, name="aeon-stop").start()


def count_allowed_connections() -> int:
    """Return the most connections at once: fewer where the process may open few files."""
    try:
        import resource  # not on every system
    except ImportError:
        return _MOST_CONNECTIONS
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return _MOST_CONNECTIONS
    return min(_MOST_CONNECTIONS, int(files * _PART_OF_FILES))


def open_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at the address. Raises ConfigError."""
    named = f"serve.host={host} serve.port={port}"
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # Named as TCP, so that the loop sends each answer at once (TCP_NODELAY).
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        listening.bind((host, port))
        listening.listen(128)
    except OSError as error:
        problem = f"{named}: cannot be listened at: {error.strerror or error}"
        raise ConfigError(problem, hint="Name another port with serve.port=N.") from None
    return listening


def make_server(jobs: Jobs, access: Access, stop: Callable[[], None]) -> JobServer:
    """Return the server for requests, not yet started; a signal calls `stop`, in its own thread."""
    config = uvicorn.Config(
        make_app(jobs, access),
        http=_PatientProtocol,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=_STOP_SECONDS,
    )
    return JobServer(config, stop)


def serve(jobs: Jobs, access: Access, listening: socket.socket, stop: Callable[[], None]) -> None:
    """Answer requests until a signal, which calls `stop`; every client gets its answer."""
    asyncio.run(make_server(jobs, access, stop).serve([listening]))
