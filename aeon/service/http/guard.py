"""The checks before every request: its sender, its page, its size, and its speed."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import ipaddress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from aeon.domain.values import JsonObject
from aeon.service.http.errors import ApiError

_READ_SECONDS = 30.0
_WRITE_SECONDS = 60.0
"""How long a client may take to send its request, and to take what is sent to it."""
_OPEN_PATHS = ("/healthz",)


@dataclass(frozen=True, slots=True)
class Access:
    """Who may send requests: holders of the `token`; without a token, requests whose `Host` names
    this machine."""

    token: str | None = None
    max_body_bytes: int = 4_000_000


class Guard:
    """Passes on allowed requests, and answers the others."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_in_time(message: Message) -> None:
            async with asyncio.timeout(_WRITE_SECONDS):
                await send(message)

        try:
            self._check(scope, Headers(scope=scope))
            body = await self._read_body(Headers(scope=scope), receive)
        except ApiError as error:
            error.headers["connection"] = "close"
            await error.respond()(scope, receive, send_in_time)
            return
        await self._app(scope, _replay(body, receive), send_in_time)

    def _check(self, scope: Scope, headers: Headers) -> None:
        host = headers.get("host", "")
        if self._access.token is None and not is_this_machine(host):
            # A page of a stranger whose name leads here by now is of another host. With a token,
            # which such a page does not have, a proxy may stand before the server.
            raise ApiError(403, f"Host: {host[:200]} is not this machine", "host_refused")
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise ApiError(403, "a page of another origin may not ask", "origin_refused")
        if self._access.token and scope["path"] not in _OPEN_PATHS:
            self._check_token(headers.get("authorization", ""))

    def _check_token(self, authorization: str) -> None:
        given = _read_token(authorization)
        if not hmac.compare_digest(given.encode(), (self._access.token or "").encode()):
            # Browsers support only this way: any name, and the token as the password.
            ways = 'Basic realm="aeon", charset="UTF-8"'
            message = "the token is missing or wrong: Authorization: Bearer TOKEN"
            raise ApiError(401, message, "invalid_api_key", headers={"www-authenticate": ways})

    async def _read_body(self, headers: Headers, receive: Receive) -> bytes:
        most = self._access.max_body_bytes
        too_large = ApiError(413, f"the request has more than {most} bytes", "request_too_large")
        stated = headers.get("content-length", "0")
        if not stated.isdecimal() or int(stated) > most:
            raise too_large
        if stated == "0" and "transfer-encoding" not in headers:
            return b""
        body = bytearray()
        try:
            async with asyncio.timeout(_READ_SECONDS):
                while (message := await receive())["type"] == "http.request":
                    body += message.get("body", b"")
                    if len(body) > most:
                        raise too_large
                    if not message.get("more_body"):
                        break
                else:
                    raise ApiError(400, "the request broke off", "incomplete")
        except TimeoutError:
            raise ApiError(408, "the request took too long to arrive", "timeout") from None
        return bytes(body)


def is_this_machine(host: str) -> bool:
    """Check whether the `Host` of a request, with or without a port, names this machine itself."""
    name, _, port = host.rpartition(":")
    if not name or not port.isdecimal():
        name = host
    name = name.strip("[]").lower()
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def _read_token(authorization: str) -> str:
    """Return the token of a program, or the password that a browser has asked its user for."""
    scheme, _, value = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return value.strip()
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(value, validate=True).decode().partition(":")[2]
    except (binascii.Error, UnicodeDecodeError):
        return ""


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` for a request whose body has been read."""
    is_read = False

    async def read() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        first: JsonObject = {"type": "http.request", "body": body, "more_body": False}
        return first

    return read
