"""Converts a chat request to one for the Responses API, and the names in its refusals back to chat
names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.dialects.file_parts import to_input_part
from aeon.llm.dialects.refusal import Refusal

REASONING_ITEMS = "reasoning_items"
"""Left out for a server that does not return encrypted reasoning or does not accept it back."""
_ENCRYPTED = "reasoning.encrypted_content"
_LIMITS = ("max_completion_tokens", "max_tokens")
_LEFT_OUT = (
    *("messages", "tools", "response_format", "reasoning_effort", "stream_options"),
    *_LIMITS,
)
_NAMES: Mapping[str, tuple[str, ...]] = {
    "reasoning": ("reasoning_effort",),
    "reasoning.effort": ("reasoning_effort",),
    "max_output_tokens": _LIMITS,
    "text": ("response_format",),
    "text.format": ("response_format",),
}
"""Responses API parameter names and the chat names for them."""
_OF_REASONING_ITEMS = re.compile(r"(?i)encrypted.content|'include'|\brs_\w+")


def to_responses(body: JsonMapping, kept: Sequence[JsonMapping]) -> JsonObject:
    """Convert a chat request's body for the Responses API. `kept` are the items of earlier answers
    that the request continues; they go before its last message."""
    *first, last = [item for message in body["messages"] for item in _to_items(message)]
    others = {name: value for name, value in body.items() if name not in _LEFT_OUT}
    return {
        **others,
        "input": [*first, *kept, last],
        **_write_format(body.get("response_format")),
        **_write_parameters(body),
    }


def _write_format(form: JsonMapping | None) -> JsonObject:
    if form is None:
        return {}
    return {"text": {"format": {"type": form["type"], **form.get("json_schema", {})}}}


def _write_parameters(body: JsonMapping) -> JsonObject:
    made: JsonObject = {}
    if effort := body.get("reasoning_effort"):
        made["reasoning"] = {"effort": effort}
    if limits := [body[name] for name in _LIMITS if name in body]:
        made["max_output_tokens"] = limits[0]
    if tools := body.get("tools"):
        # Here, unlike in chat, a function without `strict` is strict.
        made["tools"] = [
            {"type": "function", "strict": False, **each["function"]} for each in tools
        ]
    return made


def ask_for_reasoning(body: JsonObject) -> None:
    """Request reasoning in a form that a later request can include."""
    body["include"] = [_ENCRYPTED]


def _to_items(message: JsonMapping) -> Iterator[JsonObject]:
    content = message["content"]
    if isinstance(content, list):
        content = [to_input_part(part) for part in content]
    if message["role"] == "tool":
        yield {
            "type": "function_call_output",
            "call_id": message["tool_call_id"],
            "output": content,
        }
        return
    # The reasoning that led to calls is sent back with them.
    yield from message.get("reasoning_details") or ()
    if content:
        yield {"role": message["role"], "content": content}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def to_chat_names(refusal: Refusal) -> Refusal:
    """Return a refusal that names parameters as chat does."""
    named = set(refusal.named)
    for name, chat_names in _NAMES.items():
        is_quoted = f"'{name}'" in refusal.message or f'"{name}"' in refusal.message
        if is_quoted or any(each == name or each.startswith(f"{name}.") for each in refusal.named):
            named.update(chat_names)
    return replace(refusal, named=frozenset(named))


def is_about_reasoning_items(refusal: Refusal) -> bool:
    """Whether a server refuses to return encrypted reasoning or to accept it back."""
    is_said = bool(_OF_REASONING_ITEMS.search(refusal.message))
    return is_said or any(name.startswith("include") for name in refusal.named)
