"""Requests to `localhost` and the names below it, which are not resolved by DNS and use no
proxy."""

from __future__ import annotations

import httpx2

from aeon.domain.values import LOOPBACK

LOOPBACK_NAMES = (
    "all://localhost",
    "all://localhost.",
    "all://*.localhost",
    "all://*.localhost.",
)
"""The names that this transport serves, in httpx2's notation."""


class LoopbackTransport(httpx2.HTTPTransport):
    """Sends a request for a name of this machine to its loopback addresses."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request without a body to the first address that accepts it."""
        first, second = LOOPBACK
        try:
            return super().handle_request(_move(request, first))
        except httpx2.ConnectError:
            return super().handle_request(_move(request, second))


def _move(request: httpx2.Request, host: str) -> httpx2.Request:
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=host),
        headers=request.headers,
        extensions={**request.extensions, "sni_hostname": request.url.host},
    )
