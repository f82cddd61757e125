"""Why an answer was cut off, and what to do about it. Pure."""

from __future__ import annotations

from aeon.domain.errors import Truncated
from aeon.domain.request import Usage
from aeon.llm.dialects.dialect import Limit, other_name

CONTEXT_FULL = frozenset({"model_length", "model_context_window_exceeded", "context_length_exceeded"})
"""The finish reasons of servers that tell a context that is full from a limit that is reached (Mistral, Anthropic)."""
REASONS = CONTEXT_FULL | {"length"}

_CONTEXT_UNIT = 256
_SMALLEST_CONTEXT = 512
_RAISE = "Raise provider.max_tokens (or roles.*.max_tokens, reasoning.*.max_tokens), or lower the effort."


def truncated(call: str, reason: str, usage: Usage, limit: Limit | None, model: str) -> Truncated:
    """The error for an answer to `call` that was cut off; `limit` is the one that was sent."""
    message = (
        f"the answer to the {call} call was cut off after {usage.output_tokens} output tokens"
        f" ({usage.reasoning_tokens} of them reasoning)"
    )
    context_full = is_context_full(reason, usage, limit)
    if context_full:
        said = "is full" if reason in CONTEXT_FULL else "seems to be full"
        message += f"; the context {said}: {usage.input_tokens} tokens of prompt and these make {usage.total_tokens}"
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


def is_context_full(reason: str, usage: Usage, limit: Limit | None) -> bool:
    """Whether the context had no more room: by the reason, or because the tokens fill a context of a usual size (a
    multiple of 256) while the limit is far."""
    if reason in CONTEXT_FULL:
        return True
    if usage.input_tokens == 0 or usage.total_tokens < _SMALLEST_CONTEXT or (limit and not limit.is_above(usage)):
        return False
    return (usage.total_tokens + 1) % _CONTEXT_UNIT <= 2
