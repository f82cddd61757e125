"""One connection to a server: a request is sent and its response read, until a deadline, and bounded in size."""

from __future__ import annotations

import io
import socket
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse, IncompleteRead
from typing import Any

MAX_BYTES = 32 * 1024 * 1024
KEPT_SECONDS = 15.0
JUST_SECONDS = 1.0
_CHUNK_BYTES = 65536
_PACKED = ("gzip", "x-gzip")
_UNPACKED = ("", "identity")


class UnreadableResponse(Exception):
    """A response that is too large, or packed in a way that was not asked for."""


class OverlongResponse(Exception):
    """A response that goes on behind its announced end."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole response; `headers` ignore the case of names."""

    status: int
    headers: HTTPMessage
    body: bytes


class _Source(io.RawIOBase):
    """The bytes that a socket receives until a deadline; none at all while `paused`."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.deadline = 0.0
        self.paused = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.paused:
            return None
        self._socket.settimeout(seconds_until(self.deadline))
        return self._socket.recv_into(buffer)


class _Buffer(io.BufferedReader):
    """Outlives the response that is read from it."""

    def close(self) -> None:
        """Keep it for the next response."""


class Connection:
    """One connection. `HTTPResponse` takes it for a socket."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._source = _Source(sock)
        self._buffer = _Buffer(self._source, _CHUNK_BYTES)
        self.used = self.was_just_used = False
        self.idle_since = 0.0

    def makefile(self, _mode: str) -> _Buffer:
        """What a response is read from."""
        return self._buffer

    @property
    def is_alive(self) -> bool:
        """Whether the server has neither closed the connection nor sent anything that nobody asked for."""
        idle_seconds = time.monotonic() - self.idle_since
        self.was_just_used = idle_seconds < JUST_SECONDS
        if idle_seconds > KEPT_SECONDS:
            return False
        self._socket.settimeout(0)
        try:
            socket.socket.recv(self._socket, 1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            return True
        except OSError:
            pass
        return False

    def exchange(self, request: bytes, deadline: float) -> tuple[Response, bool]:
        """Send a request and read its response; and whether the connection can be kept.

        Raises OSError, HTTPException, UnreadableResponse and OverlongResponse; BrokenPipeError where the server closed
        the connection before all was sent, without a response.
        """
        unsent = self._send(request, deadline)
        self._source.deadline, self._source.paused = deadline, False
        response = HTTPResponse(self, method="POST")  # type: ignore[arg-type] # it asks for `makefile` alone
        try:
            response.begin()
        except (OSError, HTTPException):
            if unsent is not None:
                raise unsent from None
            raise
        body = _read_body(response)
        self._source.paused = True
        if self._buffer.peek(1):
            raise OverlongResponse
        return Response(response.status, response.headers, body), not response.will_close and unsent is None

    def _send(self, request: bytes, deadline: float) -> BrokenPipeError | None:
        """A server may refuse a request, and hang up, before it has read all of it: the error is returned, for there
        may be a response all the same."""
        self._socket.settimeout(seconds_until(deadline))
        try:
            self._socket.sendall(request)
        except (BrokenPipeError, ConnectionResetError) as error:
            return BrokenPipeError(error.errno, error.strerror)
        return None

    def shut_down(self) -> None:
        """End what another thread does with it."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close it."""
        self._socket.close()


def seconds_until(deadline: float) -> float:
    """What is left; raises TimeoutError where nothing is."""
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds


def _read_body(response: HTTPResponse) -> bytes:
    """The body, unpacked. Raises UnreadableResponse, and IncompleteRead where it ends too early."""
    encoding = response.headers.get("content-encoding", "").strip().lower()
    length = response.headers.get("content-length", "0").strip()
    if encoding not in _PACKED + _UNPACKED or not length.isdecimal():
        odd = f"in the encoding {encoding!r}, which was not asked for" if length.isdecimal() else f"of {length!r} bytes"
        raise UnreadableResponse(f"a response {odd}")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if encoding in _PACKED else None
    parts: list[bytes] = []
    size = 0
    while part := response.read(_CHUNK_BYTES):
        if unpacker is not None:
            part = _unpack(unpacker, part, MAX_BYTES + 1 - size)
        size += len(part)
        if size > MAX_BYTES:
            raise UnreadableResponse(f"a response of more than {MAX_BYTES} bytes")
        parts.append(part)
    if response.length or (unpacker is not None and size and not unpacker.eof):
        raise IncompleteRead(b"".join(parts), response.length)
    return b"".join(parts)


def _unpack(unpacker: Any, part: bytes, most: int) -> bytes:
    try:
        unpacked: bytes = unpacker.decompress(part, most)
    except zlib.error as error:
        raise UnreadableResponse(f"a response that is not packed as it says: {error}") from error
    return unpacked
