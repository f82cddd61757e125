"""Fetching text from the hosts that were allowed, and from nowhere else."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_.-]+|[0-9a-f:.]*:[0-9a-f:.]*")


class Page(Value):
    """What a server answered; `complete` is false when the text was longer than allowed and is only its beginning."""

    url: str
    status: int
    content_type: str
    text: str
    complete: bool


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:
    """`http_get`, when a host is allowed. Raises ConfigError for a host that cannot be one."""
    if not settings.allowed_hosts:
        return ()
    return (http_get_tool(settings.allowed_hosts, settings.http_timeout_seconds, settings.max_response_bytes),)


def http_get_tool(allowed_hosts: Sequence[str], timeout_seconds: float, max_bytes: int) -> Tool:
    """`http_get`: GET requests to `allowed_hosts`, `host` (the scheme's own port) or `host:port`, and to no other.

    A redirect is followed only to an allowed host. `timeout_seconds` is for everything together, `max_bytes` for the
    body. Raises ConfigError for a host that cannot be one.
    """
    allowed = frozenset(_parse_host(host) for host in allowed_hosts)

    @tool(timeout_seconds=timeout_seconds + 1, examples=[{"url": f"https://{allowed_hosts[0]}/"}])
    def http_get(url: Annotated[str, Field(max_length=4_000, description="An http or https address.")]) -> Page:
        """Fetch text from the web with a GET request."""
        return _fetch(url, allowed, time.monotonic() + timeout_seconds, max_bytes)

    return replace(http_get, description=f"{http_get.description} Only these hosts: {', '.join(allowed_hosts)}.")


def _parse_host(host: str) -> tuple[str, int | None]:
    import httpx2

    try:
        url = httpx2.URL(f"http://{host}")
        # The parsed URL omits the scheme's own port, so the port is read from the text.
        port = int(host.rpartition(":")[2]) if host.rpartition(":")[2].isdigit() and not host.endswith("]") else None
    except (httpx2.InvalidURL, ValueError) as error:
        raise ConfigError(f"tools.builtin.allowed_hosts: {host!r} is not a host: {error}") from error
    name = url.raw_host.decode("ascii").lower()
    if not _HOST.fullmatch(name) or url.path not in ("", "/") or (port is not None and not 0 < port < 65_536):
        raise ConfigError(f"tools.builtin.allowed_hosts: {host!r} is not a host")
    return name, port


def _fetch(address: str, allowed: frozenset[tuple[str, int | None]], deadline: float, max_bytes: int) -> Page:
    import httpx2

    try:
        url = httpx2.URL(address)
        with httpx2.Client(follow_redirects=False) as client:
            for _ in range(MAX_REDIRECTS + 1):
                _check_url(url, allowed)
                request = client.build_request("GET", url, headers={"Accept-Encoding": "identity"})
                request.extensions["timeout"] = httpx2.Timeout(_seconds_left(deadline)).as_dict()
                response = client.send(request, stream=True)
                try:
                    if not response.has_redirect_location:
                        return _read_page(response, deadline, max_bytes)
                    url = url.join(response.headers["location"])
                finally:
                    response.close()
    except httpx2.InvalidURL as error:
        raise ValueError(f"not an address: {error}") from None
    except httpx2.TimeoutException:
        raise ValueError("the server did not answer in time") from None
    except httpx2.HTTPError as error:
        raise ValueError(f"could not be fetched: {error}") from None
    raise ValueError(f"more than {MAX_REDIRECTS} redirects")


def _check_url(url: httpx2.URL, allowed: frozenset[tuple[str, int | None]]) -> None:
    if url.scheme not in _PORTS:
        raise ValueError(f"{url}: only http and https")
    if url.userinfo:
        raise ValueError("an address with a user name is not asked")
    host, port = url.raw_host.decode("ascii").lower(), url.port or _PORTS[url.scheme]
    if (host, port) not in allowed and not (port == _PORTS[url.scheme] and (host, None) in allowed):
        raise ValueError(f"{host}:{port} is not among the allowed hosts")


def _read_page(response: httpx2.Response, deadline: float, max_bytes: int) -> Page:
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ValueError(f"the server sent it compressed ({encoding}), which was not asked for")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        _seconds_left(deadline)
        if len(body) > max_bytes:
            break
    if b"\0" in body:
        raise ValueError("what the server sent is not text")
    kept = bytes(body[:max_bytes])
    return Page(
        url=str(response.url),
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        text=_decode(kept, response.charset_encoding),
        complete=len(body) <= max_bytes,
    )


def _decode(content: bytes, charset: str | None) -> str:
    try:
        return content.decode(charset or "utf-8", "replace")
    except LookupError:
        return content.decode("utf-8", "replace")


def _seconds_left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise ValueError("it took too long")
    return left
