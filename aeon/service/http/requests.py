"""Clients' requests as jobs: the last message of a conversation is the task, the earlier ones are
an input."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json
from starlette.requests import Request

from aeon.domain.values import JsonMapping, JsonObject
from aeon.service.http.errors import ApiError, refuse
from aeon.service.http.fields import CHAT, RESPONSES
from aeon.service.http.parts import SentFiles, read_content
from aeon.service.jobs import JobRequest

CONVERSATION = "conversation"
"""The input that holds the earlier messages."""
_MOST_METADATA = 16


async def read_object(request: Request) -> JsonObject:
    """Return the JSON object in a request. Raises ApiError."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        # A stranger's page may send other content types without permission, but not this one.
        raise ApiError(415, "Content-Type must be application/json", "unsupported_media_type")
    try:
        # Unlike `json`, it refuses half of a surrogate pair, which no answer could return.
        body = from_json(await request.body(), allow_inf_nan=False)
    except ValueError as error:
        raise refuse(f"the body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise refuse("the body must be an object")
    return body


def read_chat(body: JsonMapping) -> JobRequest:
    """Return the job that a chat completion requests. Raises ApiError."""
    CHAT.check(body)
    read_usage_wish(body)
    shape = body.get("response_format") or {"type": "text"}
    _check_format(shape, "response_format")
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise refuse("messages must be a list of messages", "messages")
    return _make_request(body, messages, "messages")


def read_response(body: JsonMapping) -> JobRequest:
    """Return the job that a response requests. Raises ApiError."""
    RESPONSES.check(body)
    _check_format(_read_text_format(body), "text")
    given = body.get("input")
    messages = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(messages, list) or not messages:
        raise refuse("input must be a text or a list of messages", "input")
    instructions = body.get("instructions")
    if not isinstance(instructions, str | None):
        raise refuse("instructions must be a text", "instructions")
    if instructions:
        messages = [{"role": "system", "content": instructions}, *messages]
    return _make_request(body, messages, "input", background=body.get("background") is True)


def read_usage_wish(body: JsonMapping) -> bool:
    """Check whether a stream shall end with its usage. Raises ApiError."""
    options = body.get("stream_options") or {}
    wish = options.get("include_usage", False) if isinstance(options, dict) else None
    if not isinstance(wish, bool):
        problem = "stream_options must be an object, its include_usage true or false"
        raise refuse(problem, "stream_options")
    return wish


def _read_text_format(body: JsonMapping) -> Any:
    text = body.get("text") or {}
    if not isinstance(text, dict):
        raise refuse("text must be an object", "text")
    return text.get("format") or {"type": "text"}


def _check_format(shape: Any, param: str) -> None:
    if not isinstance(shape, dict) or shape.get("type") != "text":
        why = "the form of answers is configured on the server (answer.schema)"
        raise refuse(f"{param}: {why}", param, "unsupported_parameter")


def _make_request(
    body: JsonMapping, messages: Sequence[Any], param: str, *, background: bool = False
) -> JobRequest:
    model = body.get("model")
    if not isinstance(model, str):
        raise refuse("model must be a text", "model")
    inputs = _read_texts(body, "inputs")
    files = SentFiles({CONVERSATION, *inputs})
    said = [
        _read_message(message, f"{param}[{place}]", files)
        for place, message in enumerate(messages)
        if not _is_reasoning(message)
    ]
    if not said or said[-1]["role"] != "user":
        raise refuse("the last message must be the user's: it is the task", param)
    if said[:-1] and CONVERSATION in inputs:
        raise refuse(f"inputs.{CONVERSATION}: earlier messages have that name", "inputs")
    if said[:-1]:
        inputs[CONVERSATION] = json.dumps(said[:-1], ensure_ascii=False, indent=2)
    metadata = _read_texts(body, "metadata")
    if len(metadata) > _MOST_METADATA:
        raise refuse(f"metadata has more than {_MOST_METADATA} entries", "metadata")
    note: dict[str, JsonValue] = {"metadata": dict(metadata)}
    return JobRequest(model, said[-1]["content"], inputs, background, note, files.contents)


def _is_reasoning(item: Any) -> bool:
    """Whether an item of an earlier response shows how a model reached its answer."""
    return isinstance(item, dict) and item.get("type") == "reasoning"


def _read_message(message: Any, where: str, files: SentFiles) -> dict[str, str]:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise refuse(f"{where} must be a message with a role", where)
    if message.get("tool_calls") or role in ("tool", "function"):
        raise refuse(f"{where}: tools are configured on the server", where, "unsupported_parameter")
    content = message.get("content")
    if content is None and role == "assistant":
        content = message.get("refusal") or ""
    return {"role": role, "content": read_content(content, where, files)}


def _read_texts(body: JsonMapping, name: str) -> dict[str, str]:
    """Read an object of texts by their names."""
    given = body.get(name) or {}
    if not isinstance(given, dict) or not all(isinstance(text, str) for text in given.values()):
        raise refuse(f"{name} must be an object of texts", name)
    return dict(given)
