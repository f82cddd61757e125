"""The HTTP client of the OpenAI SDK, made safe against hostile servers: bounded answers, no redirects.

Imports the SDK: it is imported with the first call.
"""

from __future__ import annotations

from typing import Any

from httpx2 import AsyncClient, Request, Response, Timeout
from openai import DefaultAioHttpClient

MAX_BYTES = 32 * 1024 * 1024
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


class UnreadableResponse(Exception):
    """A response that is too large, or packed in a way that nobody asked for."""


class BoundedClient(DefaultAioHttpClient):  # type: ignore[misc, unused-ignore]
    """Reads a response at once, at most `MAX_BYTES` of it unpacked, and follows no redirect.

    A redirect would take the request's secret headers, and the prompt, to another address than the configured one.
    """

    async def send(self, request: Request, **options: Any) -> Response:
        """Send a request. Raises UnreadableResponse for what is too large or packed twice."""
        response = await super().send(request, **{**options, "stream": True})
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_TRANSFER]
        return Response(
            response.status_code,
            headers=headers,
            content=body,
            request=response.request,
            extensions=response.extensions,
        )


async def _read(response: Response) -> bytes:
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding not in _ENCODINGS:
        raise UnreadableResponse(f"a response in the encoding {encoding!r}, which was not asked for")
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MAX_BYTES:
            raise UnreadableResponse(f"a response of more than {MAX_BYTES} bytes")
        parts.append(part)
    return b"".join(parts)


def new_client(timeout: Timeout) -> AsyncClient:
    """A client for one event loop; closed by whoever made it."""
    return BoundedClient(timeout=timeout, follow_redirects=False, headers={"accept-encoding": "gzip, deflate"})
