"""Converts a Responses API response, whole or streamed, to the equivalent chat completion."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aeon.domain.values import JsonMapping, JsonObject

_FINAL_EVENTS = ("response.completed", "response.incomplete", "response.failed")
_UNREADABLE = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}
_CODES = {
    "server_error": "500",
    "rate_limit_exceeded": "429",
    "vector_store_timeout": "504",
    "bio_policy": "content_filter",
    "misalignment_policy_violation": "content_filter",
}
"""Response error codes and the equivalent status or code in chat."""


def to_completion(body: bytes) -> bytes:
    """Convert a response's body to that of a chat completion or an error; return any other body
    unchanged."""
    response = _read_response(body)
    if response is None:
        return body
    try:
        return json.dumps(_make_completion(response)).encode()
    except _UNREADABLE:
        return body


def _make_completion(response: JsonMapping) -> JsonObject:
    status = response.get("status")
    if response.get("error") or status not in ("completed", "incomplete", None):
        return {"error": _describe_error(response)}
    details = response.get("incomplete_details") or {}
    reason = details.get("reason") if status == "incomplete" else "stop"
    choice = {
        "message": _make_message(response),
        "finish_reason": _FINISH_REASONS.get(str(reason), reason),
    }
    named = {name: response.get(name) for name in ("id", "model")}
    return {**named, "choices": [choice], "usage": _make_usage(response.get("usage"))}


def find_reasoning_items(body: bytes) -> list[JsonObject]:
    """Return a response's reasoning and the answer that follows it, to send back with a request
    that continues from there; empty if there is no reasoning that another request can include."""
    response = _read_response(body)
    if response is None or _list_items(response, "function_call"):
        return []  # Calls of tools are sent back with the rounds of their step.
    thoughts = _list_items(response, "reasoning")
    can_be_sent_back = _can_be_sent_back(thoughts, response)
    return _list_items(response, "reasoning", "message") if can_be_sent_back else []


def _list_items(response: JsonMapping, *kinds: str) -> list[JsonObject]:
    return [item for item in response["output"] if item.get("type") in kinds]


def assemble_response(events: Iterable[Any], tell: Callable[[str], None]) -> bytes:
    """Return the response at the end of a stream; `tell` is called with each piece of its text.

    A stream that ends early or has an unreadable event results in an incomplete document.
    """
    try:
        for event in events:
            kind = event.get("type")
            if kind == "response.output_text.delta":
                tell(event["delta"])
            elif kind in _FINAL_EVENTS:
                return json.dumps(event["response"]).encode()
            elif kind == "error":
                return json.dumps(_make_failed(event)).encode()
    except _UNREADABLE:
        pass
    return b'{"object":"response"'


def _make_failed(event: JsonMapping) -> JsonObject:
    error = {name: event.get(name) for name in ("code", "message")}
    return {"object": "response", "output": [], "error": error}


def _read_response(body: bytes) -> JsonObject | None:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return None
    is_response = isinstance(document, dict) and document.get("object") == "response"
    return document if is_response and _is_output(document.get("output")) else None


def _is_output(output: object) -> bool:
    return isinstance(output, list) and all(isinstance(item, dict) for item in output)


def _describe_error(response: JsonMapping) -> JsonObject:
    given = response.get("error")
    error = given if isinstance(given, dict) else {}
    message = error.get("message") or f"the response is {response.get('status')}"
    code = str(error.get("code") or "server_error")
    return {"message": message, "code": _CODES.get(code, code)}


def _make_message(response: JsonMapping) -> JsonObject:
    parts = _select_parts(response)
    thoughts = _list_items(response, "reasoning")
    calls = _list_items(response, "function_call")
    return {
        "content": _join(parts, "output_text", "text"),
        "refusal": _join(parts, "refusal", "refusal") or None,
        "reasoning": [each.get("summary") for each in thoughts] or None,
        "reasoning_details": thoughts if _can_be_sent_back(thoughts, response) else None,
        "tool_calls": [{"type": "function", "function": _select_call(call)} for call in calls],
    }


def _select_call(item: JsonMapping) -> JsonObject:
    return {name: item.get(name) for name in ("name", "arguments")}


def _can_be_sent_back(thoughts: Sequence[JsonMapping], response: JsonMapping) -> bool:
    """Whether another request can include this reasoning: the server stores it, or it is encrypted
    and complete."""
    is_whole = all(each.get("encrypted_content") for each in thoughts)
    return bool(thoughts) and (is_whole or bool(response.get("background")))


def _select_parts(response: JsonMapping) -> list[JsonMapping]:
    """Return the parts of the final answer; a model may describe what it is doing in messages
    before it."""
    messages = _list_items(response, "message")
    final = [item for item in messages if item.get("phase") == "final_answer"]
    contents = [item.get("content") for item in final or messages]
    return [part for content in contents if isinstance(content, list) for part in content]


def _join(parts: Iterable[JsonMapping], kind: str, name: str) -> str:
    return "".join(str(part.get(name) or "") for part in parts if part.get("type") == kind)


def _make_usage(usage: object) -> JsonObject | None:
    if not isinstance(usage, dict):
        return None
    return {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "prompt_tokens_details": usage.get("input_tokens_details"),
        "completion_tokens_details": usage.get("output_tokens_details"),
    }
