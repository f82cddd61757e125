"""HTTP to one server, in the caller's own thread: connections that are kept, one deadline for each request, bounded
responses, no redirects.

`http.client` connects and parses; see docs/decisions/0026 for why no SDK and no event loop stand between.
"""

from __future__ import annotations

import atexit
import base64
import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from weakref import WeakSet

from aeon.llm.openai.connection import Connection, Response, seconds_until

CONNECT_SECONDS = 30.0
_transports: WeakSet[Transport] = WeakSet()


class NotConnected(Exception):
    """No connection: nothing was sent. `by_proxy`: the connection to the proxy failed."""

    def __init__(self, message: str, *, by_proxy: bool) -> None:
        super().__init__(message)
        self.by_proxy = by_proxy


class TransportClosed(Exception):
    """The transport was closed while a request was under way."""


class Transport:
    """Posts to one address; safe to use from many threads. At most `max_concurrency` requests are under way at once.

    `headers` go with every request. Requests go through the proxy that the environment names.
    """

    def __init__(self, address: str, headers: Mapping[str, str], max_concurrency: int) -> None:
        self._url = urlsplit(address)
        self._headers = dict(headers)
        self._max_concurrency = max_concurrency
        self.closings = 0
        self._keeps = True
        self._reset()
        _transports.add(self)

    def _reset(self) -> None:
        self._slots = threading.Semaphore(self._max_concurrency)
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()

    @contextmanager
    def slot(self, closings: int) -> Iterator[None]:
        """Wait until one more request may be under way. Raises TransportClosed if it was closed since `closings`."""
        with self._slots:
            if self.closings != closings:
                raise TransportClosed
            yield

    def post(self, body: bytes, deadline: float, closings: int) -> Response:
        """Post JSON and return the response, until a `time.monotonic()`.

        Raises NotConnected, TimeoutError, TransportClosed and what `Connection.exchange` raises.
        """
        request = self._head + b"%d\r\n\r\n" % len(body) + body
        try:
            connection = self._kept() or self._connect(deadline)
            try:
                return self._exchange(connection, request, deadline, closings)
            except BrokenPipeError:
                if not connection.used:
                    raise
                return self._exchange(self._connect(deadline), request, deadline, closings)
        except (OSError, HTTPException, NotConnected):
            if self.closings != closings:
                raise TransportClosed from None
            raise

    def close(self) -> None:
        """Close the connections; requests under way raise TransportClosed. A later request opens new ones."""
        atexit.unregister(self.close)
        with self._lock:
            self.closings += 1
            idle, self._idle = self._idle, []
            for connection in self._busy:
                connection.shut_down()
        for connection in idle:
            connection.close()

    def _exchange(self, connection: Connection, request: bytes, deadline: float, closings: int) -> Response:
        keep = False
        with self._lock:
            if self.closings != closings:
                connection.close()
                raise TransportClosed
            self._busy.add(connection)
        try:
            response, keep = connection.exchange(request, deadline)
            return response
        except ConnectionError:
            # A server that hangs up after each response, without saying so.
            self._keeps = self._keeps and not connection.was_just_used
            raise
        finally:
            with self._lock:
                self._busy.discard(connection)
                keep = keep and self._keeps and self.closings == closings
                if keep:
                    connection.used, connection.idle_since = True, time.monotonic()
                    self._idle.append(connection)
            if not keep:
                connection.close()

    def _kept(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.is_alive:
                return connection
            connection.close()

    def _connect(self, deadline: float) -> Connection:
        atexit.unregister(self.close)  # once is enough, however many connections there are
        atexit.register(self.close)
        made = self._new_connection(min(CONNECT_SECONDS, seconds_until(deadline)))
        try:
            made.connect()
        except (OSError, HTTPException, UnicodeError) as error:
            made.close()
            raise NotConnected(str(error), by_proxy=self._proxy is not None) from error
        return Connection(made.sock)

    def _new_connection(self, seconds: float) -> HTTPConnection:
        proxy = self._proxy
        server = proxy or self._url
        host, is_secure = server.hostname or "", self._url.scheme == "https"
        if not is_secure and server.scheme != "https":
            return HTTPConnection(host, server.port or 80, timeout=seconds)
        made = HTTPSConnection(host, server.port or (80 if proxy else 443), timeout=seconds, context=_tls_context())
        if proxy and is_secure:
            made.set_tunnel(self._url.hostname or "", self._url.port or 443, headers=_proxy_headers(proxy))
        return made

    @cached_property
    def _proxy(self) -> SplitResult | None:
        return proxy_of(self._url)

    @cached_property
    def _head(self) -> bytes:
        """All of a request's head but the length of its body."""
        url = self._url
        target = quote(f"{url.path.rstrip('/')}/chat/completions", safe="/%:@!$&'()*+,;=~")
        target += f"?{url.query}" if url.query else ""
        host = (url.hostname or "").encode("idna").decode()
        host = (f"[{host}]" if ":" in host else host) + (f":{url.port}" if url.port else "")
        headers = {"Host": host, **self._headers}
        if self._proxy and url.scheme == "http":
            target = f"http://{host}{target}"
            headers |= _proxy_headers(self._proxy)
        lines = [f"POST {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "".join(f"{line}\r\n" for line in lines).encode("ascii") + b"Content-Length: "


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


def _tls_context() -> Any:
    """The system's own authorities, or the file of SSL_CERT_FILE."""
    import ssl

    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context()
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _forget_connections() -> None:
    """A forked child must not speak on its parent's connections."""
    for transport in tuple(_transports):
        transport._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections)
