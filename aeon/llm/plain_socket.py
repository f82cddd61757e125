"""Sends and receives on a socket without TLS in as few system calls as possible: at each of them
another thread may take over. With a socket timeout, Python makes three for each operation."""

from __future__ import annotations

import select
import socket
import ssl
from typing import Any

import httpcore2

_GONE = (OSError, ValueError)  # `poll` raises ValueError for a closed socket


def find_plain_socket(stream: Any) -> socket.socket | None:
    """Return the socket of an httpcore2 stream and make it non-blocking; None if it uses TLS or
    there is no `poll`."""
    found = stream.get_extra_info("socket")
    if isinstance(found, ssl.SSLSocket) or not hasattr(select, "poll"):
        return None
    if not isinstance(found, socket.socket):
        return None
    found.setblocking(False)
    return found


def receive(plain: socket.socket, most: int, seconds: float | None) -> bytes:
    """Wait for data and return at most `most` bytes of it, or nothing at the end of the stream.
    Raises httpcore2's ReadTimeout after `seconds`, and ReadError."""
    try:
        if not _wait(plain, select.POLLIN, seconds):
            raise httpcore2.ReadTimeout("timed out")
        return plain.recv(most)
    except _GONE as error:
        raise httpcore2.ReadError(str(error)) from error


def send(plain: socket.socket, data: bytes, seconds: float | None) -> None:
    """Send all of `data`; each wait for room takes at most `seconds`. Raises httpcore2's
    WriteTimeout and WriteError."""
    rest = memoryview(data)
    try:
        while rest:
            try:
                rest = rest[plain.send(rest) :]
            except BlockingIOError:
                if not _wait(plain, select.POLLOUT, seconds):
                    raise httpcore2.WriteTimeout("timed out") from None
    except _GONE as error:
        raise httpcore2.WriteError(str(error)) from error


def _wait(plain: socket.socket, event: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(plain, event)
    return bool(poll.poll(None if seconds is None else seconds * 1000))
