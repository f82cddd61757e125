"""Requests to try adapters and wrappers with."""

from typing import Any

from aeon.domain.request import LLMRequest, Message

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def request(call: str = "plan", **given: Any) -> LLMRequest:
    """A small request; anything in it can be given."""
    messages = (Message("system", "Be brief."), Message("user", "Why?"))
    return LLMRequest(**{"call": call, "messages": messages, "schema": SCHEMA, **given})
