"""HTTP to one server, in the caller's own thread: connections that are kept, one deadline for each request, bounded
responses, no redirects. docs/decisions/0026 says why no SDK stands between."""

from __future__ import annotations

import base64
import os
import select
import socket
import threading
import time
import weakref
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from http.client import (
    HTTPConnection,
    HTTPException,
    HTTPMessage,
    HTTPResponse,
    HTTPSConnection,
    IncompleteRead,
)
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

from aeon.llm.protocols import CALL_HEADERS

MAX_BYTES = 32 * 1024 * 1024
CONNECT_SECONDS = 30.0
_MOST_HANGUPS = 2
KEPT_SECONDS = 15.0
_PART_BYTES = 65536

Receive = Callable[[bytes], None]


class NotConnected(Exception):
    """No connection, to the server or to its proxy: nothing was sent."""


class TransportClosed(Exception):
    """The transport was closed while a request was under way."""


class Response(NamedTuple):
    """A whole response; `headers` ignore the case of names."""

    status: int
    headers: HTTPMessage
    body: bytes


class Transport:
    """Posts to one address, through the proxy that the environment names, with `headers`; safe for many threads. At
    most `max_concurrency` requests are under way at once."""

    def __init__(self, address: str, headers: Mapping[str, str], max_concurrency: int) -> None:
        self._url = urlsplit(address)
        self._headers = dict(headers)
        self.closings = 0
        self._slots = threading.Semaphore(max_concurrency)
        self._lock = threading.Lock()
        self._idle: list[
            tuple[socket.socket, float, int]
        ] = []  # each with when, and in which process, it was used
        weakref.finalize(self, _close_all, self._idle)
        self._busy: set[socket.socket] = set()
        self._hangups = 0

    @contextmanager
    def slot(self, closings: int) -> Iterator[None]:
        """Wait until one more request may be under way. Raises TransportClosed if it was closed since `closings`."""
        with self._slots:
            if self.closings != closings:
                raise TransportClosed
            yield

    def post(
        self, body: bytes, deadline: float, closings: int, receive: Receive | None = None
    ) -> Response:
        """Post JSON and return the response, until a `time.monotonic()`; `receive` is given its body as it comes.

        Raises NotConnected, TransportClosed, HTTPException for what is no HTTP or too long, and OSError.
        """
        request = (
            self._head
            + _lines(CALL_HEADERS.get())
            + b"Content-Length: %d\r\n\r\n" % len(body)
            + body
        )
        try:
            kept = self._take_kept()
            try:
                return self._exchange(
                    kept or self._connect(deadline), request, deadline, closings, receive
                )
            except ConnectionError as error:
                if kept is None:
                    raise
                self._hangups += 1
                if not isinstance(error, BrokenPipeError):
                    raise
                return self._exchange(self._connect(deadline), request, deadline, closings, receive)
        except (OSError, HTTPException, NotConnected):
            if self.closings != closings:
                raise TransportClosed from None
            raise

    def close(self) -> None:
        """Close the connections; requests under way raise TransportClosed. A later request opens new ones."""
        with self._lock:
            self.closings += 1
            _close_all(self._idle)
            for busy in self._busy:
                with suppress(OSError):
                    busy.shutdown(socket.SHUT_RDWR)

    def _exchange(
        self,
        connection: socket.socket,
        request: bytes,
        deadline: float,
        closings: int,
        receive: Receive | None,
    ) -> Response:
        keep, unsent = False, None
        with self._lock:
            self._busy.add(connection)
        try:
            _set_timeout(connection, deadline)
            try:
                connection.sendall(request)
            except (BrokenPipeError, ConnectionResetError) as error:
                # A server may refuse a request, and hang up, before it has read all of it: there may be a response.
                unsent = BrokenPipeError(error.errno, error.strerror)
            with HTTPResponse(connection, method="POST") as response:
                response.begin()
                body = _read_body(response, connection, deadline, receive)
                keep = not response.will_close and unsent is None
            return Response(response.status, response.headers, body)
        except (OSError, HTTPException) as error:
            raise unsent or error from None
        finally:
            with self._lock:
                self._busy.discard(connection)
                # A server that hangs up on kept connections gets a new one for each request.
                keep = keep and self.closings == closings and self._hangups < _MOST_HANGUPS
                if keep:
                    self._idle.append((connection, time.monotonic(), os.getpid()))
            if not keep:
                connection.close()

    def _take_kept(self) -> socket.socket | None:
        """Take an idle connection that the server has not closed, and on which nothing unasked has come."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                kept, since, process = self._idle.pop()
            if (
                time.monotonic() - since < KEPT_SECONDS
                and process == os.getpid()
                and not _is_readable(kept)
            ):
                return kept
            kept.close()

    def _connect(self, deadline: float) -> socket.socket:
        proxy, seconds = self._proxy, min(CONNECT_SECONDS, _seconds_until(deadline))
        server = proxy or self._url
        host, is_secure = server.hostname or "", self._url.scheme == "https"
        made = HTTPConnection(host, server.port or 80, timeout=seconds)
        if is_secure or server.scheme == "https":
            made = HTTPSConnection(
                host, server.port or (80 if proxy else 443), timeout=seconds, context=tls_context()
            )
        if proxy and is_secure:
            made.set_tunnel(
                self._url.hostname or "", self._url.port or 443, headers=_proxy_headers(proxy)
            )
        try:
            made.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            made.close()
            raise NotConnected(str(error)) from error
        connected: socket.socket = made.sock
        return connected

    @cached_property
    def _proxy(self) -> SplitResult | None:
        return proxy_of(self._url)

    @cached_property
    def _head(self) -> bytes:
        url = self._url
        target = quote(f"{url.path.rstrip('/')}/chat/completions", safe="/%:@!$&'()*+,;=~")
        target += f"?{url.query}" if url.query else ""
        host = (url.hostname or "").encode("idna").decode()
        host = (f"[{host}]" if ":" in host else host) + (f":{url.port}" if url.port else "")
        headers = {"Host": host, **self._headers}
        if self._proxy and url.scheme == "http":
            target = f"http://{host}{target}"
            headers |= _proxy_headers(self._proxy)
        return f"POST {target} HTTP/1.1\r\n".encode("ascii") + _lines(headers)


def _lines(headers: Mapping[str, str]) -> bytes:
    return "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode("ascii")


def _close_all(idle: list[tuple[socket.socket, float, int]]) -> None:
    while idle:
        idle.pop()[0].close()


def proxy_of(url: SplitResult) -> SplitResult | None:
    """The proxy that the environment names for an address; None where there is none."""
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    address = proxies.get(url.scheme) or proxies.get("all")
    if not address or proxy_bypass(url.hostname or ""):
        return None
    return urlsplit(address if "://" in address else f"http://{address}")


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    account = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(account.encode()).decode()}"}


def tls_context() -> Any:
    """The certificates that are trusted: those of `SSL_CERT_FILE` or `SSL_CERT_DIR`, else the system's own."""
    import ssl

    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _read_body(
    response: HTTPResponse, connection: socket.socket, deadline: float, receive: Receive | None
) -> bytes:
    unpacker = (
        zlib.decompressobj(wbits=31) if response.headers.get("content-encoding") == "gzip" else None
    )
    body = bytearray()
    while True:
        _set_timeout(connection, deadline)
        part = response.read1(_PART_BYTES)
        if not part:
            break
        try:
            part = unpacker.decompress(part, MAX_BYTES + 1 - len(body)) if unpacker else part
        except zlib.error as error:
            raise HTTPException(f"a response that is not packed as it says: {error}") from error
        body += part
        if receive is not None:
            receive(part)
        if len(body) > MAX_BYTES:
            raise HTTPException(f"a response of more than {MAX_BYTES} bytes")
    if response.length or (unpacker and body and not unpacker.eof):
        raise IncompleteRead(bytes(body), response.length)
    return bytes(body)


def _is_readable(connection: socket.socket) -> bool:
    if not hasattr(select, "poll"):  # on Windows
        return bool(select.select([connection], [], [], 0)[0])
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _set_timeout(connection: socket.socket, deadline: float) -> None:
    # Not each time: with many threads, each call into the system costs a switch.
    seconds, now = _seconds_until(deadline), connection.gettimeout()
    if now is None or not 0 <= now - seconds < now / 100:
        connection.settimeout(seconds)


def _seconds_until(deadline: float) -> float:
    seconds = deadline - time.monotonic()
    if seconds <= 0:
        raise TimeoutError
    return seconds
