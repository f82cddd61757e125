"""A SOCKS5 proxy on loopback, which says where it was asked to go and goes to one server."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

_VERSION, _DOMAIN = 5, 3
_DONE = b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00"


class SocksProxy:
    """Passes connections on to the port `onwards` of this machine; `asked` are the hosts that clients named."""

    def __init__(self, onwards: int) -> None:
        self.asked: list[str] = []
        self._onwards = onwards
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"socks5://127.0.0.1:{self._listening.getsockname()[1]}"

    def __enter__(self) -> SocksProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, client.makefile("rb") as reader:
            _, methods = reader.read(2)
            reader.read(methods)
            client.sendall(bytes([_VERSION, 0]))
            *_, kind = reader.read(4)
            assert kind == _DOMAIN
            self.asked.append(reader.read(reader.read(1)[0]).decode())
            reader.read(2)  # the port
            client.sendall(_DONE)
            with socket.create_connection(("127.0.0.1", self._onwards)) as server:
                back = threading.Thread(target=_pass_on, args=(server, client), daemon=True)
                back.start()
                _pass_on(client, server)


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
