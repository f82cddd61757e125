"""What Aeon reads of a chat completion: the text and what it cost, or why there is no text."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WrapValidator
from pydantic import ValidationError as ShapeError

from aeon.domain.errors import AnswerError, ConnectionFailed, EmptyAnswer, Filtered, LLMError, Refused, ServerFailed
from aeon.domain.request import LLMRequest, LLMResponse, Usage
from aeon.llm.dialects.dialect import Limit
from aeon.llm.dialects.refusal import error_in
from aeon.llm.dialects.truncation import REASONS, truncated
from aeon.llm.extract import ExtractError, extract_json, is_bare, text_of
from aeon.llm.openai.endpoint import Endpoint
from aeon.llm.openai.errors import not_an_api, of_refusal
from aeon.schema.validators import is_valid, validator_of
from aeon.schema.violations import find_errors, kind_of


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _InputDetails(_Part):
    cached_tokens: int | None = None


class _OutputDetails(_Part):
    reasoning_tokens: int | None = None


class _Usage(_Part):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _InputDetails | None = None
    completion_tokens_details: _OutputDetails | None = None


def _or_none(value: Any, read: Callable[[Any], Any]) -> Any:
    """An answer is not thrown away because the server counts its tokens in a way of its own."""
    try:
        return read(value)
    except ShapeError:
        return None


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


class Completion(_Part):
    """A chat completion, as far as it matters here."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, WrapValidator(_or_none)] = None
    model: str | None = None
    id: str | None = None
    error: Any = None


def read_answer(
    body: bytes, request: LLMRequest, model: str, endpoint: Endpoint, limit: Limit | None = None
) -> LLMResponse:
    """The answer in a response's body; `model` is who was asked, for servers that do not say who answered, `limit` the
    limit of tokens that was sent.

    Raises `NotAnAPI` for anything but a chat completion, the error that the body tells of, `ConnectionFailed` for half
    a body, and `Truncated`, `Refused`, `Filtered` or `EmptyAnswer`, with the usage that was paid, for one without a
    usable text.
    """
    completion = _read(body)
    if completion is None or completion.error or completion.choices[0].error:
        raise _no_completion(body, endpoint)
    usage = usage_of(completion)
    choice, model = completion.choices[0], endpoint.clean_name(completion.model or model)
    text = _text(choice.message, request)
    whole = choice.finish_reason in REASONS and holds(text, request)
    reported = _is_reported(completion.usage, text)
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


def holds(text: str, request: LLMRequest) -> bool:
    """Whether a text is JSON of the request's schema and nothing else, as constrained decoding gives it."""
    try:
        return is_bare(text) and is_valid(request.schema, extract_json(text))
    except ExtractError:
        return False


def holds_but_for_ranges(text: str, request: LLMRequest) -> bool:
    """Whether a text that does not hold to the request's schema has its form: only values are out of their ranges."""
    try:
        found = find_errors(validator_of(request.schema), extract_json(text)) if is_bare(text) else []
    except ExtractError:
        return False
    return kind_of(found) == "range"


def _text(message: _Message, request: LLMRequest) -> str:
    """The message's text; where there is none, its reasoning, if that is the answer.

    Servers that take the reasoning out of an answer take the answer for reasoning when there was no reasoning.
    """
    text = text_of(message.model_dump(), request.call)
    if text.strip():
        return text
    thoughts = (message.reasoning_content, message.reasoning)
    return next((t for t in thoughts if isinstance(t, str) and holds(t, request)), text)


def _no_completion(body: bytes, endpoint: Endpoint) -> LLMError:
    refusal = error_in(body, endpoint.name, endpoint.key_sent)
    if refusal is not None:
        return of_refusal(refusal, endpoint)
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


def _read(body: bytes) -> Completion | None:
    try:
        return Completion.model_validate_json(body)
    except ShapeError:
        return None


def usage_of(completion: Completion) -> Usage:
    """Tokens of one request; what the server does not report counts as 0, and a part is at most the whole."""
    usage = completion.usage or _Usage()
    read, written = _counted(usage.prompt_tokens), _counted(usage.completion_tokens)
    cached = (usage.prompt_tokens_details or _InputDetails()).cached_tokens
    reasoning = (usage.completion_tokens_details or _OutputDetails()).reasoning_tokens
    return Usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=min(read, _counted(cached)),
        reasoning_tokens=min(written, _counted(reasoning)),
        requests=1,
    )


def _counted(tokens: int | None) -> int:
    return max(0, tokens or 0)


def _is_reported(usage: _Usage | None, text: str) -> bool:
    """Whether a server said what an answer used: every request has a prompt, and a text is made of tokens."""
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return False
    return usage.prompt_tokens > 0 and usage.completion_tokens >= (1 if text.strip() else 0)


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
    if reason in REASONS:
        raise truncated(call, reason, usage, limit, model)
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
