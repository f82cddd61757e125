"""A server on loopback that answers with whatever bytes a test gives it, HTTP or not."""

import contextlib
import gzip
import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping

from tests.support.openai_server import Completion, wire_completion

Respond = Callable[[socket.socket], bool | None]


def response(
    body: bytes, status: str = "200 OK", headers: Mapping[str, str] | None = None
) -> bytes:
    """A response; headers that are given win, one that is empty is left out."""
    all_headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"{name}: {value}" for name, value in all_headers.items() if value]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


def completion(content: str = '{"answer": "x"}') -> bytes:
    """The body of a good answer."""
    return json.dumps(wire_completion(Completion(content), 1, "raw")).encode()


def bomb(size: int, layers: int = 1) -> bytes:
    """So many bytes of spaces, packed."""
    packed = b" " * size
    for _ in range(layers):
        packed = gzip.compress(packed)
    return packed


def sends(data: bytes) -> Respond:
    """Answers a request with these bytes and hangs up."""
    return lambda connection: connection.sendall(data)


def reset(connection: socket.socket) -> None:
    """Hang up so that the other end is told of an error."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class RawServer:
    """Reads a request, calls `respond` with the connection, and hangs up, unless that returns True; a context
    manager. `requests` counts what arrived, `stopping` is set at the end."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.requests = 0
        self.stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> "RawServer":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    @property
    def url(self) -> str:
        """What goes into `provider.base_url`."""
        host, port = self._listener.getsockname()
        return f"http://{host}:{port}/v1"

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            while _read_request(connection):
                self.requests += 1
                if not self.respond(connection):
                    return


def _read_request(connection: socket.socket) -> bool:
    data = b""
    while b"\r\n\r\n" not in data:
        received = connection.recv(65536)
        if not received:
            return False
        data += received
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (
            int(x.split(b":")[1])
            for x in head.split(b"\r\n")
            if x.lower().startswith(b"content-length:")
        ),
        0,
    )
    while len(body) < length:
        body += connection.recv(65536)
    return True
