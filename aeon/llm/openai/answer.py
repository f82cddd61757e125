"""Reads a chat completion, whole or streamed: its text and cost, or why there is no text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from pydantic import BaseModel, Field
from pydantic import ValidationError as PydanticError

from aeon.domain.errors import (
    AnswerError,
    ConnectionFailed,
    ContextFull,
    EmptyAnswer,
    Filtered,
    LLMError,
    Refused,
    ServerFailed,
    Truncated,
)
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.domain.values import JsonMapping, JsonObject
from aeon.llm.dialects.functions import are_whole, read_calls
from aeon.llm.dialects.refusal import find_error
from aeon.llm.extract import ExtractError, read_bare, text_of
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import FILTER_HINT, error_of_refusal, not_an_api
from aeon.schema.validators import is_valid

_CONTEXT_FULL = frozenset(
    {"model_length", "model_context_window_exceeded", "context_length_exceeded"}
)
"""Finish reasons of servers that distinguish a full context from a reached limit (Mistral,
Anthropic)."""
_CONTEXT_HINT = (
    "Give less material, or a larger context to the server (llama-server -c, vLLM "
    "--max-model-len, Ollama's num_ctx) "
    "or another model: a larger provider.max_tokens does not help."
)
_LIMIT_HINT = (
    "Raise provider.max_tokens (or roles.*.max_tokens, reasoning.*.max_tokens), or lower the "
    "effort. If that limit is far: the server has one of its own, its context is full, or it "
    "knows the limit by the other name (provider.max_tokens_parameter)."
)
_STREAM_BEGINS = (b"data:", b"event:", b":")


class _AnswerMessage(BaseModel):
    content: str | list[Any] | JsonObject | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: JsonObject | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None


class _Choice(BaseModel):
    message: _AnswerMessage
    finish_reason: str | None = None
    error: Any = None


class _Completion(BaseModel):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None
    model: str | None = None
    id: str | None = None
    error: Any = None


def read_answer(body: bytes, request: LLMRequest, model: str, endpoint: Endpoint) -> LLMResponse:
    """Read the answer of `model`. Raises `ProviderError` for anything but a chat completion, and
    `AnswerError` with the paid usage for one without usable text."""
    completion = _read_completion(body, endpoint)
    usage, counted = _usage_of(completion.usage)
    choice = completion.choices[0]
    model = endpoint.clean_name(completion.model or model)
    text, is_whole = _read_text(choice, request)
    # Every request has a prompt, and every text has tokens.
    is_plausible = usage.input_tokens > 0 and usage.output_tokens >= bool(text.strip())
    reported = counted and is_plausible
    fault = None if is_whole else _fault_of(choice, text, usage, request.call, endpoint)
    if fault is not None:
        kind, message, hint = fault
        raise kind(message, hint=hint, usage=usage, model=model, usage_reported=reported)
    reason = "stop" if is_whole else choice.finish_reason or "stop"
    return LLMResponse(
        text=endpoint.hide_keys(text),
        usage=usage,
        model=model,
        response_id=None if completion.id is None else endpoint.clean_name(completion.id),
        finish_reason=endpoint.clean_name(reason),
        endpoint=endpoint.settings.name,
        usage_reported=reported,
    )


def _read_text(choice: _Choice, request: LLMRequest) -> tuple[str, bool]:
    """Return the model's text, and whether it is complete although the server reports it as cut
    off."""
    is_cut = choice.finish_reason in {"length", *_CONTEXT_FULL}
    if calls := read_calls(vars(choice.message), request):
        return calls, is_cut and are_whole(calls)
    text = _answer_text(choice.message, request)
    return text, is_cut and follows_schema(text, request)


def _read_completion(body: bytes, endpoint: Endpoint) -> _Completion:
    try:
        completion = _Completion.model_validate_json(body)
    except PydanticError:
        completion = None
    # Not raised within the handler: pydantic's error quotes the body, which may contain keys.
    if completion is None or completion.error or completion.choices[0].error:
        raise _no_completion(body, endpoint)
    return completion


def _answer_text(message: _AnswerMessage, request: LLMRequest) -> str:
    text = text_of(vars(message), request.call)
    if text.strip():
        return text
    # Servers that separate reasoning from an answer mistake the answer for reasoning when there was
    # none.
    for thought in (message.reasoning_content, message.reasoning):
        if isinstance(thought, str) and follows_schema(thought, request):
            return thought
    return text


def follows_schema(text: str, request: LLMRequest) -> bool:
    """Whether a text is JSON of the request's schema, with nothing else but reasoning before it. If
    the request offers tools, the answer alone and function calls count too."""
    try:
        answer = read_bare(text)
    except ExtractError:
        return False
    form = request.functions
    if form is None or is_valid(request.schema, answer):
        return is_valid(request.schema, answer)
    is_round = isinstance(answer, dict) and bool(answer.get("tool_calls"))
    return is_round or is_valid(form.schema, answer)


def _no_completion(body: bytes, endpoint: Endpoint) -> LLMError:
    refusal = find_error(body)
    if refusal is not None:
        return error_of_refusal(refusal, endpoint)
    text = body.decode("utf-8", "replace")
    quoted = endpoint.clean(text)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        document = None
        if text.lstrip().startswith("{") and isinstance(error, ValueError):
            hint = "The server, or a proxy before it, ends answers too early: see its log."
            return ConnectionFailed(
                f"{endpoint.address} answered half a response: {quoted}", hint=hint
            )
    if isinstance(document, dict) and not document.get("choices", True):
        hint = (
            "The server accepted the request but did not answer it: see its log, "
            "and try again later."
        )
        problem = f"{endpoint.address} answered without any choice: {quoted}"
        return ServerFailed(problem, status=200, hint=hint, usage=Usage(requests=1))
    failure = not_an_api(text or "an empty body", endpoint)
    if body.startswith(_STREAM_BEGINS):
        failure.hint = f"The server streams although that was not requested; {failure.hint}"
    return failure


def _usage_of(reported: object) -> tuple[Usage, bool]:
    prompt = _count(reported, "prompt_tokens")
    completion = _count(reported, "completion_tokens")
    read = prompt or 0
    written = completion or 0
    # Prices subtract the parts from the whole, and a server may report larger parts.
    cached = min(read, _count(reported, "prompt_tokens_details", "cached_tokens") or 0)
    reasoning = _count(reported, "completion_tokens_details", "reasoning_tokens") or 0
    usage = Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=cached,
        reasoning_tokens=min(written, reasoning),
        requests=1,
        cache_write_tokens=min(read - cached, _cache_writes(reported)),
    )
    return usage, None not in (prompt, completion)


def _cache_writes(reported: object) -> int:
    """Return the input tokens written to a cache, as reported by OpenRouter or by LiteLLM."""
    details = "prompt_tokens_details"
    return (
        _count(reported, details, "cache_write_tokens")
        or _count(reported, details, "cache_creation_tokens")
        or _count(reported, "cache_creation_input_tokens")
        or 0
    )


def _count(value: object, *names: str) -> int | None:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return max(0, value) if isinstance(value, int) else None


def _fault_of(
    choice: _Choice, text: str, usage: Usage, call: str, endpoint: Endpoint
) -> tuple[type[AnswerError], str, str] | None:
    reason = choice.finish_reason
    message = choice.message
    if message.refusal:
        problem = f"the model declined the {call} call: {endpoint.clean(message.refusal)}"
        return (
            Refused,
            problem,
            "Word the task differently, or choose another model (provider.model, roles.*.model).",
        )
    if reason == "content_filter":
        return (
            Filtered,
            f"the provider's content filter withheld the answer to the {call} call",
            FILTER_HINT,
        )
    problem = (
        f"the answer to the {call} call was cut off after {usage.output_tokens} output tokens"
        f" ({usage.reasoning_tokens} of them reasoning)"
    )
    if reason in _CONTEXT_FULL:
        problem += (
            f"; the context is full: {usage.input_tokens} tokens of prompt and "
            f"these make {usage.total_tokens}"
        )
        return ContextFull, problem, _CONTEXT_HINT
    if reason == "length":
        return Truncated, problem, _LIMIT_HINT
    if text.strip():
        return None
    hint = (
        "Try again; if that does not help, try provider.structured_output=prompt: not every "
        "server does structured output."
    )
    if message.reasoning_content or message.reasoning:
        hint = (
            "All of it is reasoning: raise provider.max_tokens, lower the effort, or "
            "turn the server's own off."
        )
    problem = (
        f"the answer to the {call} call holds no text (finish_reason {endpoint.clean(str(reason))})"
    )
    return EmptyAnswer, problem, hint


def is_stream(body: bytes) -> bool:
    """Whether a body consists of server-sent events, whatever its headers say."""
    return body.lstrip().startswith(_STREAM_BEGINS)


def assemble(chunks: Iterable[Any], tell: Callable[[str], None]) -> bytes:
    """Return the completion that the chunks of a stream make; `tell` is called with each piece of
    its text.

    A stream that ends early or has an unreadable chunk results in an incomplete document.
    """
    whole: JsonObject = {}
    message: JsonObject = {"role": "assistant", "content": None}
    reason: str | None = None
    try:
        for chunk in chunks:
            whole |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
            for choice in chunk.get("choices") or ():
                reason = _add_choice(message, choice, tell) or reason
    except (AttributeError, TypeError, ValueError, RecursionError):
        reason = None
    document = json.dumps(
        {**whole, "choices": [{"message": message, "finish_reason": reason}]}
    ).encode()
    # Cut off, it is no JSON, and is reported as half a response.
    return document if reason else document[:-2]


def _add_choice(
    message: JsonObject, choice: JsonMapping, tell: Callable[[str], None]
) -> str | None:
    """Add a chunk's part of the first choice to its message, and return its finish reason."""
    if choice.get("index"):
        return None  # of several answers, only the first is read
    _add_to(message, choice.get("delta") or choice.get("message") or {}, tell)
    return choice.get("finish_reason")


def _add_to(message: JsonObject, delta: JsonMapping, tell: Callable[[str], None]) -> None:
    if text := delta.get("content"):
        tell(text)
    for name in ("content", "refusal", "reasoning_content", "reasoning"):
        if delta.get(name):
            message[name] = (message.get(name) or "") + delta[name]
    for part in delta.get("tool_calls") or ():
        _add_call(message.setdefault("tool_calls", []), part)


def _add_call(calls: list[JsonObject], part: JsonMapping) -> None:
    function = part.get("function") or {}
    name = function.get("name") or ""
    arguments = function.get("arguments") or ""
    if name or not calls:
        calls.append({"type": "function", "function": {"name": name, "arguments": ""}})
    calls[-1]["function"]["arguments"] += arguments
    if part.get("extra_content"):
        calls[-1]["extra_content"] = part["extra_content"]
