"""The openai package's client for one server, created with the first request: bounded responses,
one deadline for each request, no redirects, no environment settings meant for another server.
docs/decisions/0033 gives the reasons."""

from __future__ import annotations

import json
import math
import socket
import ssl
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache
from typing import Any
from urllib.parse import quote, urlsplit

import httpcore2
import httpx2
from openai import (
    APIConnectionError,
    APIError,
    APIStatusError,
    AzureOpenAI,
    Omit,
    OpenAI,
    Stream,
    Timeout,
    __version__,
)

from aeon.domain.values import LOOPBACK, JsonObject, is_loopback_name
from aeon.llm.dialects.responses_answer import assemble_response
from aeon.llm.openai.answer import assemble, is_stream
from aeon.llm.openai.endpoint import Endpoint, Response
from aeon.llm.openai.tokens import load_token_provider
from aeon.llm.plain_socket import find_plain_socket, receive, send
from aeon.llm.protocols import CALL_HEADERS
from aeon.llm.settings import ApiName

MAX_BYTES = 32 * 1024 * 1024
CONNECT_SECONDS = 30.0
KEPT_SECONDS = 15.0
_MOST_HANGUPS = 2
# The SDK would report its own retries and timeout to the server.
_NO_TELEMETRY = {"x-stainless-retry-count": Omit(), "x-stainless-read-timeout": Omit()}
_END_OF_HEAD = b"\r\n\r\n"
# A timeout of 0 would make a socket non-blocking, so that it fails otherwise than by timing out.
_LEAST_SECONDS = 0.0001
_PATHS: Mapping[ApiName, str] = {"chat": "/chat/completions", "responses": "/responses"}
_ACCEPTED = "gzip, deflate"
_PACKINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")
_NO_LIMITS = httpx2.Limits(
    max_connections=None, max_keepalive_connections=None, keepalive_expiry=KEPT_SECONDS
)


class UnreadableResponse(httpx2.DecodingError):
    """A response that is too long, or in an encoding that was not requested."""


class _RequestOfThread(threading.local):
    """The request under way in this thread: its deadline on the clock of `time.monotonic`, and the
    most bytes of its response."""

    deadline: float | None = None
    most_bytes: float = MAX_BYTES

    def seconds_left(self, timeout: float | None) -> float | None:
        if self.deadline is None:
            return timeout
        return max(_LEAST_SECONDS, self.deadline - time.monotonic())


_request = _RequestOfThread()


class _TimedConnection:
    """A connection on which every wait ends at the deadline of the request that uses it.

    httpx2's timeouts cover one wait each, so a server that sends a byte now and then could hold a
    request for ever.
    """

    def __init__(self, inner: Any, opened: set[_TimedConnection]) -> None:
        self._inner = inner
        self._plain = find_plain_socket(inner)
        self._head = b""
        self._opened = opened
        opened.add(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._head:
            self.write(b"", timeout)
        seconds = _request.seconds_left(timeout)
        if self._plain is not None:
            return receive(self._plain, max_bytes, seconds)
        read: bytes = self._inner.read(max_bytes, seconds)
        return read

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        # A request's head is held until its body: one packet and one system call instead of two.
        if buffer.endswith(_END_OF_HEAD) and not self._head:
            self._head = bytes(buffer)
            return
        whole = self._head + buffer
        self._head = b""
        seconds = _request.seconds_left(timeout)
        if self._plain is not None:
            send(self._plain, whole, seconds)
        else:
            self._inner.write(whole, seconds)

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> _TimedConnection:
        self._opened.discard(self)
        secured = self._inner.start_tls(ssl_context, server_hostname, timeout)
        return _TimedConnection(secured, self._opened)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)

    def close(self) -> None:
        self._opened.discard(self)
        self._inner.close()

    def abort(self) -> None:
        """End every wait on the connection, in whatever thread."""
        with suppress(OSError):
            self._inner.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class _TimedNetwork:
    """Opens connections that obey deadlines; the interface of httpcore2's network backends."""

    def __init__(self, inner: Any, opened: set[_TimedConnection]) -> None:
        self._inner = inner
        self._opened = opened

    def connect_tcp(self, host: str, *arguments: Any, **options: Any) -> _TimedConnection:
        if not is_loopback_name(host):
            return self._connect(host, *arguments, **options)
        ipv4, ipv6 = LOOPBACK
        try:
            return self._connect(ipv4, *arguments, **options)
        except Exception:  # a server may listen on one of the two only
            return self._connect(ipv6, *arguments, **options)

    def _connect(self, *arguments: Any, **options: Any) -> _TimedConnection:
        return _TimedConnection(self._inner.connect_tcp(*arguments, **options), self._opened)


class BoundedClient(httpx2.Client):
    """Reads at most `MAX_BYTES` of an unpacked response, and lets no wait exceed a request's
    deadline.

    Does not follow redirects: they would send the key and the prompt to an address that nobody
    configured.
    """

    def __init__(self, *, sends_key: bool, **options: Any) -> None:
        self._sends_key = sends_key
        self._opened = set[_TimedConnection]()
        weakref.finalize(self, _close_all, self._opened)
        super().__init__(follow_redirects=False, limits=_NO_LIMITS, **options)

    @cached_property
    def _context(self) -> ssl.SSLContext:
        """The TLS context that certificates are checked with; loading it takes longer than the rest
        of a client."""
        return httpx2.create_ssl_context()

    def build_request(self, method: str, url: httpx2.URL | str, **options: Any) -> httpx2.Request:
        """Build a request as httpx2 does, but parse each address only once; a request with ready
        bytes gets only the SDK's headers."""
        address = _parse_address(str(url))
        content = options.get("content")
        timeout = options.get("timeout")
        if content is None or options.get("params") or not isinstance(timeout, httpx2.Timeout):
            return super().build_request(method, address, **options)
        return httpx2.Request(
            method,
            address,
            headers=options["headers"],
            content=content,
            extensions={"timeout": timeout.as_dict()},
        )

    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request without httpx2's redirects, cookies and hooks; the response is read unless
        a stream is requested."""
        if not self._sends_key:  # the SDK insists on one
            request.headers.pop("authorization", None)
        response = self._transport_for_url(request.url).handle_request(request)
        response.request = request
        try:
            bounded = _bound(response)
            if not options.get("stream"):
                bounded.read()
        except BaseException:
            response.close()
            raise
        return bounded

    def abort(self) -> None:
        """Close all connections; requests under way fail at once."""
        for connection in tuple(self._opened):
            connection.abort()
        self.close()

    def _transport_for_url(self, url: httpx2.URL) -> httpx2.BaseTransport:
        # A proxy would resolve this machine's names as its own.
        return self._transport if is_loopback_name(url.host) else super()._transport_for_url(url)

    def _init_transport(self, *arguments: Any, **options: Any) -> httpx2.BaseTransport:
        make = super()._init_transport
        # The connection asks for the context only when it needs one.
        options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        return _Spread(lambda: self._give_connection(make(*arguments, **options)))

    def _init_proxy_transport(self, *arguments: Any, **options: Any) -> httpx2.BaseTransport:
        make = super()._init_proxy_transport

        def make_one() -> httpx2.BaseTransport:
            options["verify"] = self._context
            return self._hold_to_deadlines(make(*arguments, **options))

        return _Spread(make_one)

    # httpcore2 accepts a custom network, but httpx2 has no argument to pass one.

    def _give_connection(self, transport: Any) -> httpx2.BaseTransport:
        pool = transport._pool
        network = _TimedNetwork(pool._network_backend, self._opened)
        transport._pool = _OneConnection(network, lambda: self._context)
        return transport  # type: ignore[no-any-return]

    def _hold_to_deadlines(self, transport: Any) -> httpx2.BaseTransport:
        pool = transport._pool
        pool._network_backend = _TimedNetwork(pool._network_backend, self._opened)
        return transport  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _parse_address(address: str) -> httpx2.URL:
    return httpx2.URL(address)


class _OneConnection:
    """A connection for one request at a time, instead of a pool with its bookkeeping for many."""

    def __init__(self, network: Any, find_context: Callable[[], ssl.SSLContext]) -> None:
        self._network = network
        self._find_context = find_context
        self._connection: httpcore2.HTTPConnection | None = None

    def handle_request(self, request: httpcore2.Request) -> httpcore2.Response:
        connection = self._connection
        if connection is None or not self._is_usable(connection, request):
            self.close()
            is_secure = request.url.scheme == b"https"
            connection = self._connection = httpcore2.HTTPConnection(
                request.url.origin,
                ssl_context=self._find_context() if is_secure else None,
                keepalive_expiry=KEPT_SECONDS,
                network_backend=self._network,
            )
        return connection.handle_request(request)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _is_usable(self, connection: httpcore2.HTTPConnection, request: httpcore2.Request) -> bool:
        is_of_the_server = connection.can_handle_request(request.url.origin)
        return is_of_the_server and connection.is_available() and not connection.has_expired()


class _Spread(httpx2.BaseTransport):
    """Lends each request under way its own transport, and with it its own connection.

    An httpx2 pool checks all of its connections on each request, so its cost grows with their
    number.
    """

    def __init__(self, make: Callable[[], httpx2.BaseTransport]) -> None:
        self._make = make
        # Threads share these without a lock: appending to a list and popping from it are atomic.
        self._made: list[httpx2.BaseTransport] = []
        self._free: list[httpx2.BaseTransport] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        transport = self._take()
        try:
            response = transport.handle_request(request)
        except BaseException:
            # It may be lent again: a broken connection is replaced before its next request.
            self._free.append(transport)
            raise
        inner: Any = response.stream

        def close() -> None:
            inner.close()
            self._free.append(transport)

        response.stream = _BoundedStream(inner, close)
        return response

    def close(self) -> None:
        for transport in tuple(self._made):
            transport.close()

    def _take(self) -> httpx2.BaseTransport:
        try:
            return self._free.pop()
        except IndexError:
            transport = self._make()
            self._made.append(transport)
            return transport


def _close_all(opened: set[_TimedConnection]) -> None:
    for connection in tuple(opened):
        connection.close()


class _BoundedStream(httpx2.SyncByteStream):
    """The bytes of a response, up to the limit."""

    def __init__(self, parts: Iterable[bytes], close: Callable[[], None]) -> None:
        self._parts = parts
        self._close = close

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for part in self._parts:
            size += len(part)
            if size > _request.most_bytes:
                raise UnreadableResponse(f"a response of more than {MAX_BYTES} bytes")
            yield part

    def close(self) -> None:
        self._close()


def _bound(response: httpx2.Response) -> httpx2.Response:
    """Return the response limited to the most bytes. Raises UnreadableResponse for an encoding that
    was not requested."""
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in _PACKINGS:
        raise UnreadableResponse(f"a response in the encoding {packing!r}, which was not asked for")
    bounded = response
    if packing not in ("", "identity"):
        headers = [
            (name, value)
            for name, value in response.headers.multi_items()
            if name.lower() not in _OF_THE_TRANSFER
        ]
        bounded = httpx2.Response(
            response.status_code,
            headers=headers,
            stream=_BoundedStream(response.iter_bytes(), response.close),
            request=response.request,
        )
    # The server's charset is ignored: some take quadratic time to decode.
    bounded.encoding = "utf-8"
    return bounded


class _OwnHeaders:
    """Sends only the headers it is given, none that the SDK collects from the machine or the
    environment.

    OPENAI_CUSTOM_HEADERS may be meant for another server, and each header costs time.
    """

    own_headers: Mapping[str, str] = {}

    @property
    def default_headers(self) -> dict[str, str | Omit]:
        return {
            "Accept": "application/json",
            "Accept-Encoding": _ACCEPTED,
            "Content-Type": "application/json",
            "User-Agent": f"OpenAI/Python {__version__}",
            **self.own_headers,
        }


class _OpenAI(_OwnHeaders, OpenAI):
    _address: tuple[str, httpx2.URL] | None = None

    def _prepare_url(self, url: str) -> httpx2.URL:
        # The SDK parses the address twice for each request.
        if url not in _PATHS.values():
            return super()._prepare_url(url)
        if self._address is None or self._address[0] != url:
            self._address = url, super()._prepare_url(url)
        return self._address[1]


class _Azure(_OwnHeaders, AzureOpenAI):
    pass


def make_sdk(endpoint: Endpoint, http: httpx2.Client) -> OpenAI:
    """Create the SDK client for a server: Azure's if `provider.api_version` is set."""
    token = load_token_provider(endpoint)
    shared: JsonObject = {
        "default_query": endpoint.query,
        "timeout": endpoint.settings.timeout_seconds,
        "max_retries": 0,
        "http_client": http,
    }
    version = endpoint.settings.api_version
    if version is None:
        sdk: OpenAI = _OpenAI(
            base_url=endpoint.address, api_key=token or endpoint.key or "none", **shared
        )
    else:
        sdk = _Azure(
            base_url=_azure_address(endpoint.address),
            api_version=version,
            api_key=None if token else endpoint.key or "none",
            azure_ad_token_provider=token,
            **shared,
        )
    sdk.own_headers = endpoint.headers  # type: ignore[attr-defined]
    return sdk


def _azure_address(address: str) -> str:
    """Return the API address of an Azure resource address."""
    return f"{address.rstrip('/')}/openai" if urlsplit(address).path in ("", "/") else address


def path_of(api: ApiName, endpoint: Endpoint, model: str) -> str:
    """Return the path of an interface. With Azure's dated API versions, chat has one path per
    deployment."""
    path = _PATHS[api]
    if endpoint.settings.api_version is None or api == "responses":
        return path
    return f"/deployments/{quote(model, safe='')}{path}"


class Client:
    """Sends requests to one server, from many threads at once, over connections that it reuses."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._http = BoundedClient(
            sends_key=endpoint.key_sent, headers={"accept-encoding": _ACCEPTED}
        )
        self.sdk = make_sdk(endpoint, self._http)
        self._endpoint = endpoint
        self._headers: JsonObject = _NO_TELEMETRY
        self._hangups = 0

    def post(self, body: bytes, model: str, deadline: float) -> Response:
        """Post a request and return the response, whatever its status, before `deadline` (as
        `time.monotonic()` counts). Raises the SDK's error if there is no response."""
        with ends_at(deadline):
            try:
                return response_of(self._send(body, model, deadline, is_stream=False))
            except APIStatusError as error:
                return response_of(error.response)
            except APIConnectionError as error:
                self._note_failure(error)
                raise

    def stream(
        self, body: bytes, model: str, deadline: float, tell: Callable[[str], None]
    ) -> Response:
        """Do the same as `post` for a streamed answer; `tell` is called with each piece of its
        text.

        The body of the response is the answer assembled from the chunks. An answer that is not
        streamed is read too.
        """
        with ends_at(deadline):
            try:
                response = self._send(body, model, deadline, is_stream=True)
                return read_stream(self.sdk, response, tell, self._endpoint.settings.api)
            except APIStatusError as error:
                return response_of(error.response)

    def close(self) -> None:
        """Close the connections; requests under way fail at once."""
        self._http.abort()

    def _note_failure(self, error: APIConnectionError) -> None:
        # A server that hangs up on reused connections gets a new one for each request.
        is_hangup = isinstance(error.__cause__, httpx2.NetworkError | httpx2.RemoteProtocolError)
        self._hangups += is_hangup and not isinstance(error.__cause__, httpx2.ConnectError)
        if self._hangups == _MOST_HANGUPS:
            self._headers = {**_NO_TELEMETRY, "Connection": "close"}

    def _send(
        self, body: bytes, model: str, deadline: float, *, is_stream: bool
    ) -> httpx2.Response:
        path = path_of(self._endpoint.settings.api, self._endpoint, model)
        seconds = max(_LEAST_SECONDS, deadline - time.monotonic())
        options: Any = {
            "headers": {**self._headers, **CALL_HEADERS.get()},
            "timeout": Timeout(seconds, connect=min(seconds, CONNECT_SECONDS), pool=None),
        }
        if not is_stream:
            return self.sdk.post(path, cast_to=httpx2.Response, content=body, options=options)
        # When cast to a response, the SDK returns it unread.
        return self.sdk.post(  # type: ignore[return-value]
            path,
            cast_to=httpx2.Response,
            content=body,
            options=options,
            stream=True,
            stream_cls=Stream[object],
        )


def read_stream(
    sdk: OpenAI, response: httpx2.Response, tell: Callable[[str], None], api: ApiName
) -> Response:
    """Read a response as a stream, or as a plain response if the server does not stream."""
    if "event-stream" not in response.headers.get("content-type", ""):
        response.read()
        if not is_stream(response.content):
            return response_of(response)
        response = httpx2.Response(
            response.status_code, content=response.content, request=response.request
        )
    try:
        chunks = Stream(cast_to=object, response=response, client=sdk)
        body = assemble(chunks, tell) if api == "chat" else assemble_response(chunks, tell)
    except APIConnectionError:  # which is an APIError too
        raise
    except APIError as error:  # an error inside the stream
        body = json.dumps({"error": error.body}).encode()
    return Response(response.status_code, {}, body)


@contextmanager
def ends_at(deadline: float) -> Iterator[None]:
    """Make this thread's requests in the block end at `deadline` (as `time.monotonic()` counts)."""
    _request.deadline = deadline
    try:
        yield
    finally:
        _request.deadline = None


@contextmanager
def of_any_length() -> Iterator[None]:
    """Allow responses of any length to this thread's requests in the block; the reader limits
    them."""
    _request.most_bytes = math.inf
    try:
        yield
    finally:
        _request.most_bytes = MAX_BYTES


def response_of(response: httpx2.Response) -> Response:
    """Convert a response that was read."""
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Response(response.status_code, headers, response.content)
