"""Sockets without TLS: as few calls into the system as it takes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import httpcore2
import pytest

from aeon.llm.plain_socket import find_plain_socket, receive, send

LONG = b"x" * 5_000_000
AT_ONCE = 0.05


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a connection, the first as a stream of httpcore2 has it."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        stream = httpcore2.SyncBackend().connect_tcp("127.0.0.1", listening.getsockname()[1])
        far, _ = listening.accept()
    plain = find_plain_socket(stream)
    assert plain is not None
    with plain, far:
        yield plain, far


def test_what_is_longer_than_the_system_takes_at_once_is_sent_whole(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    near, far = ends
    received: list[bytes] = []

    def read_all() -> None:
        while sum(map(len, received)) < len(LONG):
            received.append(far.recv(65_536))

    reader = threading.Thread(target=read_all)
    reader.start()
    send(near, LONG, 10)
    reader.join()
    assert b"".join(received) == LONG


def test_nobody_who_reads_and_nobody_who_writes_is_waited_for_longer_than_allowed(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    near, _ = ends
    with pytest.raises(httpcore2.WriteTimeout):
        send(near, LONG, AT_ONCE)
    with pytest.raises(httpcore2.ReadTimeout):
        receive(near, 10, AT_ONCE)


def test_the_end_is_empty_and_a_connection_that_is_gone_an_error(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    near, far = ends
    far.sendall(b"last")
    far.close()
    assert (receive(near, 10, 1), receive(near, 10, 1)) == (b"last", b"")
    with pytest.raises(httpcore2.WriteError):
        send(near, 2 * LONG, 1)
    near.close()
    with pytest.raises(httpcore2.ReadError):
        receive(near, 10, 1)
