"""The OpenAI SDK and its HTTP client, made safe against hostile servers: bounded answers, no redirects, no headers of
another account.

Imports the SDK: it is imported with the first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from httpx2 import AsyncClient, Request, Response, Timeout, TransportError
from openai import AsyncOpenAI, DefaultAioHttpClient

from aeon.llm.openai.endpoint import causes

MAX_BYTES = 32 * 1024 * 1024
_ENCODINGS = ("", "identity", "gzip", "x-gzip", "deflate")
_OF_THE_TRANSFER = ("content-encoding", "content-length", "transfer-encoding")


class UnreadableResponse(Exception):
    """A response that is too large, or packed in a way that nobody asked for."""


class BoundedClient(DefaultAioHttpClient):  # type: ignore[misc, unused-ignore]
    """Reads a response at once, at most `MAX_BYTES` of it unpacked, and follows no redirect.

    What could not be sent on a kept connection, as the server had just closed it, is sent once more on another.

    A redirect would take the request's secret headers, and the prompt, to another address than the configured one.
    """

    async def send(self, request: Request, **options: Any) -> Response:
        """Send a request. Raises UnreadableResponse for what is too large or packed twice."""
        options |= {"stream": True}
        try:
            response = await super().send(request, **options)
        except TransportError as error:
            if not _was_closed_before(error):
                raise
            response = await super().send(request, **options)
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


def _was_closed_before(error: TransportError) -> bool:
    """Whether a request was not sent whole, because its connection was closed already."""
    return any(type(cause).__name__ == "ClientConnectionResetError" for cause in causes(error))


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


def new_sdk(
    base_url: str, key: str, headers: Mapping[str, str], timeout: Timeout, client: AsyncClient, *, is_openai: bool
) -> AsyncOpenAI:
    """The SDK for one server, which is sent these headers and this key, and nothing that the environment holds.

    OpenAI itself (`is_openai`) is told the organisation and the project of OPENAI_ORG_ID and OPENAI_PROJECT_ID; to any
    other server they, and the headers of OPENAI_CUSTOM_HEADERS, would be somebody else's.
    """
    sdk = AsyncOpenAI(
        api_key=key, base_url=base_url, default_headers=headers, timeout=timeout, max_retries=0, http_client=client
    )
    # The constructor takes the environment's for each that is None, and has no way to be told not to.
    sdk._custom_headers = dict(headers)
    sdk.admin_api_key = None
    if not is_openai:
        sdk.organization = sdk.project = None
    return sdk
