"""A streamed chat completion as the one document that it would have been. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

REQUEST: Mapping[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""What asks for a stream: its first bytes keep a connection alive behind proxies that cut idle ones."""

_TEXTS = ("content", "refusal", "reasoning_content", "reasoning")


def is_stream(body: bytes) -> bool:
    """Whether a response's body is a stream of events."""
    return body.lstrip().startswith((b"data:", b"event:", b":"))


def assemble(body: bytes) -> bytes:
    """The completion that the chunks of a stream make, or the error that one of them holds.

    A stream that ends before its answer does, or has a chunk that cannot be read, is half a document.
    """
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    reason: str | None = None
    try:
        for chunk in _chunks(body):
            if chunk.get("error"):
                return json.dumps(chunk).encode()
            whole |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
            for choice in chunk.get("choices") or ():
                if not choice.get("index"):
                    reason = choice.get("finish_reason") or reason
                    _add_to(message, choice.get("delta") or choice.get("message") or {})
    except (AttributeError, TypeError, ValueError, RecursionError):
        reason = None
    document = json.dumps({**whole, "choices": [{"message": message, "finish_reason": reason}]}).encode()
    return document if reason else document[:-2]


def _chunks(body: bytes) -> Iterator[Any]:
    for line in body.splitlines():
        name, _, data = line.decode("utf-8", "replace").partition(":")
        if name.strip() == "data" and data.strip() not in ("", "[DONE]"):
            yield json.loads(data)


def _add_to(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    for name in _TEXTS:
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    for part in delta.get("tool_calls") or ():
        function, calls = part.get("function") or {}, message.setdefault("tool_calls", [])
        if function.get("name") or not calls:
            calls.append({"type": "function", "function": {"name": function.get("name") or "", "arguments": ""}})
        calls[-1]["function"]["arguments"] += function.get("arguments") or ""
