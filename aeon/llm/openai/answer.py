"""What Aeon reads of a chat completion: the text and what it cost, or why there is no text."""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic import ValidationError as PydanticError

from aeon.domain.errors import (
    AnswerError,
    ConnectionFailed,
    EmptyAnswer,
    Filtered,
    LLMError,
    Refused,
    ServerFailed,
    Truncated,
)
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.dialects.dialect import Limit, other_name
from aeon.llm.dialects.refusal import find_error
from aeon.llm.extract import ExtractError, extract_json, is_bare, read_json, text_of
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import error_of_refusal, not_an_api
from aeon.schema.validators import is_valid, validator_of
from aeon.schema.violations import find_errors, kind_of

_CONTEXT_FULL = frozenset({"model_length", "model_context_window_exceeded", "context_length_exceeded"})
"""The finish reasons of servers that tell a context that is full from a limit that is reached (Mistral, Anthropic)."""
_CUT_OFF = _CONTEXT_FULL | {"length"}

_CONTEXT_UNIT = 256
_SMALLEST_CONTEXT = 512
_RAISE = "Raise provider.max_tokens (or roles.*.max_tokens, reasoning.*.max_tokens), or lower the effort."


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Message(_Part):
    content: str | list[Any] | dict[str, Any] | None = None
    refusal: str | None = None
    tool_calls: list[Any] | None = None
    function_call: dict[str, Any] | None = None
    reasoning_content: Any = None
    reasoning: Any = None


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None
    error: Any = None


class _Completion(_Part):
    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None
    model: str | None = None
    id: str | None = None
    error: Any = None


def read_answer(
    body: bytes, request: LLMRequest, model: str, endpoint: Endpoint, limit: Limit | None = None
) -> LLMResponse:
    """The answer in a response's body; `model` is the one that was asked, for servers that do not
    name the one that answered, `limit` the limit of tokens that was sent.

    Raises `NotAnAPI` for anything but a chat completion, the error that the body tells of, `ConnectionFailed` for half
    a body, and `Truncated`, `Refused`, `Filtered` or `EmptyAnswer`, with the usage that was paid, for one without a
    usable text.
    """
    completion = _read(body)
    if completion is None or completion.error or completion.choices[0].error:
        raise _no_completion(body, endpoint)
    usage, counted = _usage_of(completion.usage)
    choice, model = completion.choices[0], endpoint.clean_name(completion.model or model)
    text = _text(choice.message, request)
    whole = choice.finish_reason in _CUT_OFF and follows_schema(text, request)
    # Every request has a prompt, and a text is made of tokens.
    reported = counted and usage.input_tokens > 0 and usage.output_tokens >= (1 if text.strip() else 0)
    if not whole:
        try:
            _check(choice, text, usage, model, request, endpoint, limit)
        except AnswerError as error:
            error.usage_reported = reported
            raise
    return LLMResponse(
        text=text,
        usage=usage,
        model=model,
        response_id=None if completion.id is None else endpoint.clean_name(completion.id),
        finish_reason="stop" if whole else endpoint.clean_name(choice.finish_reason or "stop"),
        endpoint=endpoint.name,
        usage_reported=reported,
    )


def follows_schema(text: str, request: LLMRequest) -> bool:
    """Whether a text is JSON of the request's schema and nothing else, as constrained decoding gives it."""
    try:
        return is_valid(request.schema, _bare_json(text))
    except ExtractError:
        return False


def follows_schema_but_for_ranges(text: str, request: LLMRequest) -> bool:
    """Whether a text that does not follow the request's schema has its form: only values are out of their ranges."""
    try:
        found = find_errors(validator_of(request.schema), _bare_json(text))
    except ExtractError:
        return False
    return kind_of(found) == "range"


def _bare_json(text: str) -> Any:
    """The JSON that a text is, reasoning before it aside. Raises ExtractError where it is anything else."""
    try:
        return read_json(text)
    except ExtractError:
        if not is_bare(text):
            raise
        return extract_json(text)


def _text(message: _Message, request: LLMRequest) -> str:
    """The message's text; where there is none, its reasoning, if that is the answer.

    Servers that take the reasoning out of an answer take the answer for reasoning when there was no reasoning.
    """
    text = text_of(vars(message), request.call)
    if text.strip():
        return text
    thoughts = (message.reasoning_content, message.reasoning)
    return next((t for t in thoughts if isinstance(t, str) and follows_schema(t, request)), text)


def _no_completion(body: bytes, endpoint: Endpoint) -> LLMError:
    refusal = find_error(body, endpoint.name, endpoint.key_sent)
    if refusal is not None:
        return error_of_refusal(refusal, endpoint)
    text = body.decode("utf-8", "replace")
    if _has_no_choice(text):
        return ServerFailed(
            f"{endpoint.address} answered without any choice: {endpoint.clean(text)}",
            status=200,
            hint="The server has taken the request and given no answer to it: see its log, and try again later.",
            usage=Usage(requests=1),
        )
    if _is_half(text):
        return ConnectionFailed(
            f"{endpoint.address} answered half a response: {endpoint.clean(text)}",
            hint="The server, or a proxy before it, ends answers too early: see its log.",
        )
    failure = not_an_api(text or "an empty body", endpoint)
    if text.startswith(("data:", "event:")):
        failure.hint = f"The server streams though that was not asked for; {failure.hint}"
    return failure


def _has_no_choice(text: str) -> bool:
    """Whether a text is a completion without an answer in it: `choices` is empty or null."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(body, dict) and "choices" in body and not body["choices"]


def _is_half(text: str) -> bool:
    """Whether a text begins as a JSON object and ends before that does."""
    if not text.lstrip().startswith("{"):
        return False
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return True
    except RecursionError:
        return False
    return False


def _read(body: bytes) -> _Completion | None:
    try:
        return _Completion.model_validate_json(body)
    except PydanticError:
        return None


def _usage_of(reported: Any) -> tuple[Usage, bool]:
    """Tokens of one request, and whether the server reports them; what it does not report counts as 0, and a part is at
    most the whole."""
    read, written = _count(reported, "prompt_tokens"), _count(reported, "completion_tokens")
    cached = _count(reported, "prompt_tokens_details", "cached_tokens") or 0
    reasoning = _count(reported, "completion_tokens_details", "reasoning_tokens") or 0
    whole_read, whole_written = read or 0, written or 0
    usage = Usage(whole_read, whole_written, min(whole_read, cached), min(whole_written, reasoning), requests=1)
    return usage, read is not None and written is not None


def _count(value: Any, *names: str) -> int | None:
    """A number of tokens in an object, never negative; None where there is none."""
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else None


def _check(
    choice: _Choice, text: str, usage: Usage, model: str, request: LLMRequest, endpoint: Endpoint, limit: Limit | None
) -> None:
    """Raise when the provider answered and there is no answer in it."""
    call, reason = request.call, choice.finish_reason
    if choice.message.refusal:
        raise Refused(
            f"the model declined the {call} call: {endpoint.clean(choice.message.refusal)}",
            hint="Word the task differently, or choose another model (provider.model, roles.*.model).",
            usage=usage,
            model=model,
        )
    if reason == "content_filter":
        raise Filtered(
            f"the provider's content filter withheld the answer to the {call} call",
            hint="Word the task or its inputs differently, or use a provider with another filter.",
            usage=usage,
            model=model,
        )
    if reason in _CUT_OFF:
        raise _truncated(call, reason, usage, limit, model)
    if not text.strip():
        raise EmptyAnswer(
            f"the answer to the {call} call holds no text (finish_reason {endpoint.clean(str(reason))})",
            hint=_empty_hint(choice.message),
            usage=usage,
            model=model,
        )


def _empty_hint(message: _Message) -> str:
    if message.reasoning_content or message.reasoning:
        return (
            "All of it is reasoning: raise provider.max_tokens, lower the effort, or turn off the server's reasoning."
        )
    return "Try again; if it stays so, try provider.structured_output=prompt: not every server does structured output."


def _truncated(call: str, reason: str, usage: Usage, limit: Limit | None, model: str) -> Truncated:
    """The error for an answer to `call` that was cut off; `limit` is the one that was sent."""
    message = (
        f"the answer to the {call} call was cut off after {usage.output_tokens} output tokens"
        f" ({usage.reasoning_tokens} of them reasoning)"
    )
    context_full = _is_context_full(reason, usage, limit)
    if context_full:
        state = "is full" if reason in _CONTEXT_FULL else "seems to be full"
        message += f"; the context {state}: {usage.input_tokens} tokens of prompt and these make {usage.total_tokens}"
        hint = (
            "Give less material, or a larger context to the server (llama-server -c, vLLM --max-model-len, Ollama's "
            "num_ctx) or another model: a larger provider.max_tokens does not help."
        )
    elif limit is None:
        hint = f"No limit was sent: the server, or the model, has one of its own. {_RAISE}"
    elif limit.is_above(usage):
        hint = (
            f"That is below {limit.name}={limit.tokens}, which was sent: the server has a limit of its own, its "
            f"context is full, or it knows the limit as provider.max_tokens_parameter={other_name(limit.name)}."
        )
    else:
        hint = _RAISE
    failure = Truncated(message, hint=hint, usage=usage, model=model)
    failure.context_full = context_full
    return failure


def _is_context_full(reason: str, usage: Usage, limit: Limit | None) -> bool:
    """Whether the context had no more room: by the reason, or because the tokens fill a context of a usual size (a
    multiple of 256) while the limit is far."""
    if reason in _CONTEXT_FULL:
        return True
    if usage.input_tokens == 0 or usage.total_tokens < _SMALLEST_CONTEXT or (limit and not limit.is_above(usage)):
        return False
    return (usage.total_tokens + 1) % _CONTEXT_UNIT <= 2
