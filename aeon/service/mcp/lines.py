"""Reads a client's lines on standard input, and refuses those that are no messages of MCP."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator
from typing import TextIO

from mcp.shared.message import SessionMessage
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError
from pydantic_core import from_json

_MOST_CHARACTERS = 4 * 2**20
"""As many as the SDK takes over HTTP."""
_TOO_LONG = "\0"
"""Marks a line of which only the beginning and the end were read."""
_ENDS = 500
_LAST_ID = re.compile(r'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*\}\s*\Z')


def read_lines(stream: TextIO) -> Iterator[str]:
    """Yield the lines of a stream, except for blank ones. A line that is too long is never held
    whole: only its beginning and its end are yielded, after a mark."""
    while line := stream.readline(_MOST_CHARACTERS):
        if len(line) < _MOST_CHARACTERS or line.endswith("\n"):
            if not line.isspace():
                yield line
            continue
        head = line[:_ENDS]
        tail = line[-_ENDS:]
        while line and not line.endswith("\n"):
            line = stream.readline(_MOST_CHARACTERS)
            tail = (tail + line)[-_ENDS:]
        yield f"{_TOO_LONG}{head}\n{tail.rstrip()}"


async def select_messages(
    lines: AsyncIterable[str], send: Callable[[SessionMessage], Awaitable[None]]
) -> AsyncIterator[str]:
    """Yield the lines that are messages; answer every other line with an error, before the next
    line is read."""
    async for line in lines:
        refusal = _check(line)
        if refusal is None:
            yield line
        else:
            await send(SessionMessage(refusal))


def _check(line: str) -> JSONRPCError | None:
    """Return the error for a line that is no message; None for a message."""
    if line.startswith(_TOO_LONG):
        message = f"A line has at most {_MOST_CHARACTERS} characters"
        return _refuse(_find_id_at_ends(line), PARSE_ERROR, message)
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        problem = error.errors()[0]
        if problem["type"] == "json_invalid":
            return _refuse(_find_id(line), PARSE_ERROR, f"The line is not JSON: {problem['msg']}")
        return _refuse(_find_id(line), INVALID_REQUEST, "The line is no message of JSON-RPC")
    return None


def _find_id(line: str) -> RequestId | None:
    """Return the id of a refused request, so that its client does not wait for ever. None for a
    line without a method: a response's id may be that of another request of the client."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return _read_id(message) if _has_method(message) else None


def _find_id_at_ends(line: str) -> RequestId | None:
    """Return the id of a request from its beginning and its end. Its method must stand before the
    parameters; its id may stand there too, or be the last member."""
    head, _, tail = line.removeprefix(_TOO_LONG).partition("\n")
    try:
        message = from_json(head, allow_partial=True)
    except ValueError:
        return None
    if not _has_method(message):
        return None
    found = _read_id(message)
    last = _LAST_ID.search(tail)
    return _read_id(json.loads(f"{{{last[0]}")) if found is None and last else found


def _has_method(message: object) -> bool:
    return isinstance(message, dict) and "method" in message


def _read_id(message: object) -> RequestId | None:
    found = message.get("id") if isinstance(message, dict) else None
    is_id = isinstance(found, str | int) and not isinstance(found, bool)
    return found if is_id and str(found).isascii() else None


def _refuse(request_id: RequestId | None, code: int, message: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))
