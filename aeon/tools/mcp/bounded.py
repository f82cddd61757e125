"""Limits the size of an MCP server's HTTP responses to the longest allowed message."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2


async def bound_response(most: int, response: httpx2.Response) -> None:
    """Make reading a response fail with a StreamError after `most` bytes, or at once if it is
    compressed. Event streams are bounded event by event by their reader."""
    if response.headers.get("content-type", "").lower().startswith("text/event-stream"):
        return
    is_compressed = response.headers.get("content-encoding", "identity").lower() != "identity"
    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream)
    response.stream = _BoundedAnswer(stream, 0 if is_compressed else most)
    if is_compressed:
        response.headers.pop("content-encoding")


class _BoundedAnswer(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, most: int) -> None:
        self._stream = stream
        self._most = most

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > self._most:
                raise httpx2.StreamError(
                    f"the server sent more than {self._most:,} bytes"
                    if self._most
                    else "the server compressed its answer, though asked not to"
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
