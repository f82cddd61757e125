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
    return body.lstrip()[:6].startswith((b"data:", b"event:", b":"))


def assemble(body: bytes) -> bytes:
    """The completion that the chunks of a stream make; an error that one of them holds, as it is. A stream that ends
    before its answer does, or has a chunk that cannot be read, is half a document, as half a response is without
    streaming."""
    whole: dict[str, Any] = {}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    reason: str | None = None
    for chunk in _chunks(body):
        if chunk is None:
            reason = None
            break
        if chunk.get("error"):
            return json.dumps(chunk).encode()
        whole |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
        for choice in _first_choices(chunk):
            reason = choice.get("finish_reason") or reason
            _add(message, choice.get("delta") or choice.get("message") or {})
    document = json.dumps({**whole, "choices": [{"message": message, "finish_reason": reason}]}).encode()
    return document if reason else document[:-2]


def _chunks(body: bytes) -> Iterator[Mapping[str, Any] | None]:
    """Each chunk; None for one that is no JSON object. Only `\\n` and `\\r` end a line, other breaks stand in texts."""
    for line in body.splitlines():
        name, _, data = line.decode("utf-8", "replace").partition(":")
        if name.strip() != "data" or data.strip() in ("", "[DONE]"):
            continue
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            chunk = None
        yield chunk if isinstance(chunk, Mapping) else None


def _first_choices(chunk: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, Mapping) and not choice.get("index"):
            yield choice


def _add(message: dict[str, Any], delta: Any) -> None:
    """Add what a chunk brings to the message."""
    if not isinstance(delta, Mapping):
        return
    for name in _TEXTS:
        if isinstance(delta.get(name), str):
            message[name] = (message.get(name) or "") + delta[name]
    calls = delta.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        _add_call(message.setdefault("tool_calls", []), call)


def _add_call(calls: list[dict[str, Any]], part: Any) -> None:
    """Add a part of a tool call: a new one where it has a name, else more arguments of the last."""
    function = part.get("function") if isinstance(part, Mapping) else None
    if not isinstance(function, Mapping):
        return
    if function.get("name") or not calls:
        calls.append({"type": "function", "function": {"name": function.get("name") or "", "arguments": ""}})
    calls[-1]["function"]["arguments"] += str(function.get("arguments") or "")
