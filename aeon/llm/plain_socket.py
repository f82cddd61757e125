"""Sending and receiving on a socket without TLS in as few calls into the system as it takes: at
each of them another thread of the process may go first. Where a socket has a timeout, Python makes
three for each of the two."""

from __future__ import annotations

import select
import socket
import ssl
from typing import Any

import httpcore2

_GONE = (OSError, ValueError)  # of a socket that was closed, `poll` raises ValueError


def find_plain_socket(stream: Any) -> socket.socket | None:
    """The socket of a stream of httpcore2, which never blocks from now on; None where there is TLS,
    or no `poll`."""
    found = stream.get_extra_info("socket")
    if isinstance(found, ssl.SSLSocket) or not hasattr(select, "poll"):
        return None
    if not isinstance(found, socket.socket):
        return None
    found.setblocking(False)
    return found


def receive(plain: socket.socket, most: int, seconds: float | None) -> bytes:
    """What has come, once there is something; empty at the end. Raises httpcore2's ReadTimeout and
    ReadError."""
    try:
        if not _wait(plain, select.POLLIN, seconds):
            raise httpcore2.ReadTimeout("timed out")
        return plain.recv(most)
    except _GONE as error:
        raise httpcore2.ReadError(str(error)) from error


def send(plain: socket.socket, data: bytes, seconds: float | None) -> None:
    """Send all of it; each wait for room takes at most so long. Raises httpcore2's WriteTimeout and
    WriteError."""
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
