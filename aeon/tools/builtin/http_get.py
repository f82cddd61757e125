"""Fetches text from allowed hosts only."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_CHARSETS = re.compile(
    r"utf-?(8|16|32)([-_]?[lb]e)?|(us-?)?ascii|iso-?8859-\d+|latin-?\d+|windows-\d+|cp\d+|"
    r"shift[-_]?jis|euc-(jp|kr)|iso-2022-(jp|kr)|gbk|gb2312|gb18030|big5|koi8-[ru]",
    re.IGNORECASE,
)


class Page(Value):
    """What a server answered; `complete` is false when the text was longer than allowed and is only
    its beginning."""

    url: str
    status: int
    content_type: str
    text: str
    complete: bool


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:
    """Return `http_get` if a host is allowed."""
    if not settings.allowed_hosts:
        return ()
    return (
        http_get_tool(
            settings.allowed_hosts, settings.http_timeout_seconds, settings.max_response_bytes
        ),
    )


def http_get_tool(allowed_hosts: Sequence[str], timeout_seconds: float, max_bytes: int) -> Tool:
    """Return `http_get` for `allowed_hosts` only (`host` or `host:port`); `timeout_seconds` covers
    the whole request."""
    allowed = frozenset(host.lower() for host in allowed_hosts)

    @tool(timeout_seconds=timeout_seconds + 1, examples=[{"url": f"https://{allowed_hosts[0]}/"}])
    def http_get(
        url: Annotated[str, Field(max_length=4_000, description="An http or https address.")],
    ) -> Page:
        """Fetch text from the web with a GET request."""
        return _fetch(url, allowed, timeout_seconds, max_bytes)

    return replace(
        http_get,
        description=f"{http_get.description} Only these hosts: {', '.join(allowed_hosts)}.",
    )


def check_address(allowed: Collection[str], request: httpx2.Request) -> None:
    """Raise ValueError for a request to a host that is not allowed."""
    url = request.url
    host = request.url.netloc.decode("ascii")
    if url.scheme not in _PORTS or url.userinfo:
        raise ValueError(f"{url}: only http and https, and no user name")
    if host not in allowed and (url.port or f"{host}:{_PORTS[url.scheme]}" not in allowed):
        raise ValueError(f"{host} is not among the allowed hosts")


def _fetch(address: str, allowed: Collection[str], seconds: float, max_bytes: int) -> Page:
    import httpx2

    from aeon.tools.builtin.loopback import LOOPBACK_NAMES, LoopbackTransport

    deadline = time.monotonic() + seconds
    client = httpx2.Client(
        mounts=dict.fromkeys(LOOPBACK_NAMES, LoopbackTransport()),
        timeout=seconds,
        follow_redirects=True,
        max_redirects=MAX_REDIRECTS,
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [partial(check_address, allowed)]},
    )
    try:
        with client, client.stream("GET", address) as response:
            return _read_page(response, deadline, max_bytes)
    except (httpx2.InvalidURL, httpx2.HTTPError) as error:
        raise ValueError(f"could not be fetched: {error}") from None


def _read_page(response: httpx2.Response, deadline: float, max_bytes: int) -> Page:
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise ValueError(f"the server sent it compressed ({encoding}), which was not asked for")
    body = bytearray()
    for chunk in response.iter_raw():
        body += chunk
        if time.monotonic() > deadline:
            raise ValueError("it took too long")
        if len(body) > max_bytes:
            break
    if b"\0" in body:
        raise ValueError("what the server sent is not text")
    return Page(
        url=str(response.url),
        status=response.status_code,
        content_type=response.headers.get("content-type", ""),
        text=_decode(bytes(body[:max_bytes]), response.encoding or "utf-8"),
        complete=len(body) <= max_bytes,
    )


def _decode(body: bytes, encoding: str) -> str:
    # Python's other encodings are not used for pages, and punycode takes quadratic time.
    known = encoding if _CHARSETS.fullmatch(encoding) else "utf-8"
    try:
        return body.decode(known, "replace")
    except LookupError:
        return body.decode("utf-8", "replace")
