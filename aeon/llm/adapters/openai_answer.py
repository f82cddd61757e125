"""What Aeon reads of a chat completion: the text and what it cost, or why there is no text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WrapValidator
from pydantic import ValidationError as ShapeError

from aeon.errors import EmptyAnswer, Filtered, Refused, Truncated
from aeon.llm.adapters.openai_errors import Endpoint, not_an_api
from aeon.llm.interface import LLMRequest, LLMResponse, Usage


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
    content: str | None = None
    refusal: str | None = None


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None


class Completion(_Part):
    """A chat completion, as far as it matters here."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, WrapValidator(_or_none)] = None
    model: str | None = None
    id: str | None = None


def read_answer(body: bytes, request: LLMRequest, model: str, endpoint: Endpoint) -> LLMResponse:
    """The answer in a response's body; `model` is who was asked, for servers that do not say who answered.

    Raises `NotAnAPI` for anything but a chat completion, and `Truncated`, `Refused`, `Filtered` or `EmptyAnswer`, with
    the usage that was paid, for one without a usable text.
    """
    completion = _read(body)
    if completion is None:
        raise not_an_api(body.decode("utf-8", "replace") or "an empty body", endpoint)
    usage = usage_of(completion)
    choice, model = completion.choices[0], completion.model or model
    _check(choice, usage, model, request, endpoint)
    return LLMResponse(
        text=choice.message.content or "",
        usage=usage,
        model=model,
        response_id=completion.id,
        finish_reason=choice.finish_reason or "stop",
    )


def _read(body: bytes) -> Completion | None:
    try:
        return Completion.model_validate_json(body)
    except ShapeError:
        return None


def usage_of(completion: Completion) -> Usage:
    """Tokens of one request; what the server does not report counts as 0."""
    usage = completion.usage or _Usage()
    return Usage(
        input_tokens=usage.prompt_tokens or 0,
        output_tokens=usage.completion_tokens or 0,
        cached_tokens=(usage.prompt_tokens_details or _InputDetails()).cached_tokens or 0,
        reasoning_tokens=(usage.completion_tokens_details or _OutputDetails()).reasoning_tokens or 0,
        requests=1,
    )


def _check(choice: _Choice, usage: Usage, model: str, request: LLMRequest, endpoint: Endpoint) -> None:
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
    if reason == "length":
        raise Truncated(
            f"the answer to the {call} call was cut off after {usage.output_tokens} output tokens"
            f" ({usage.reasoning_tokens} of them reasoning)",
            hint="Raise provider.max_tokens (or roles.*.max_tokens, reasoning.*.max_tokens), or lower the effort.",
            usage=usage,
            model=model,
        )
    if not (choice.message.content or "").strip():
        raise EmptyAnswer(
            f"the answer to the {call} call holds no text (finish_reason {reason})",
            hint="Try again; if it stays so, check that this model and server support structured output.",
            usage=usage,
            model=model,
        )
