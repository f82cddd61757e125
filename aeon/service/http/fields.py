"""The treatment of each field that a client of OpenAI's interface may send: read, ignored, or
refused. No field that a client relies on is ignored silently."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aeon.domain.values import JsonMapping
from aeon.service.http.errors import refuse

_TOOLS = "tools are configured on the server"
_SEVERAL = "a run gives one answer"
_LOGPROBS = "the likelihood of tokens is not known of a run"
_LEFT_OUT = frozenset(
    {
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "temperature",
        "top_p",
        "user",
    }
)


@dataclass(frozen=True, slots=True)
class RefusedField:
    """Why a field is refused, unless it has one of the values that change nothing."""

    why: str
    harmless: tuple[Any, ...] = ()


_REFUSED_TOOLS = {
    "tools": RefusedField(_TOOLS, ([],)),
    "tool_choice": RefusedField(_TOOLS, ("auto", "none")),
    "moderation": RefusedField("it is not moderated on the way"),
}


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one kind of request, by their treatment. `flags` are those read as true or
    false."""

    read: frozenset[str]
    left_out: frozenset[str]
    refused: Mapping[str, RefusedField]
    flags: frozenset[str]

    def check(self, body: JsonMapping) -> None:
        """Raise ApiError for a field with an unsupported request, an unknown field, and a flag that
        is not true or false. A null field counts as missing."""
        for name, value in body.items():
            if value is None or name in self.left_out:
                continue
            refusal = self.refused.get(name)
            if refusal is not None and value not in refusal.harmless:
                raise refuse(f"{name}: {refusal.why}", name, "unsupported_parameter")
            if refusal is None and name not in self.read:
                raise refuse(
                    f"{name[:100]}: there is no such field", name[:100], "unknown_parameter"
                )
            if name in self.flags and not isinstance(value, bool):
                raise refuse(f"{name} must be true or false", name)


CHAT = Fields(
    read=frozenset(
        {"inputs", "messages", "metadata", "model", "response_format", "stream", "stream_options"}
    ),
    left_out=_LEFT_OUT
    | {
        "frequency_penalty",
        "max_completion_tokens",
        "max_tokens",
        "prediction",
        "presence_penalty",
        "reasoning_effort",
        "seed",
        "verbosity",
    },
    refused={
        **_REFUSED_TOOLS,
        "audio": RefusedField("answers are text"),
        "function_call": RefusedField(_TOOLS, ("auto", "none")),
        "functions": RefusedField(_TOOLS, ([],)),
        "logit_bias": RefusedField("which tokens are likely is up to the server's models", ({},)),
        "logprobs": RefusedField(_LOGPROBS, (False,)),
        "modalities": RefusedField("answers are text", (["text"],)),
        "n": RefusedField(_SEVERAL, (1,)),
        "stop": RefusedField("an answer is whole, and is not cut off", ([], "")),
        "top_logprobs": RefusedField(_LOGPROBS, (0,)),
        "web_search_options": RefusedField(_TOOLS),
    },
    flags=frozenset({"stream"}),
)
RESPONSES = Fields(
    read=frozenset(
        {
            "background",
            "input",
            "inputs",
            "instructions",
            "metadata",
            "model",
            "stream",
            "text",
        }
    ),
    left_out=_LEFT_OUT
    | {
        "access_programs",
        "background_options",
        "context_management",
        "image",
        "max_output_tokens",
        "reasoning",
        "stream_options",
        "truncation",
    },
    refused={
        **_REFUSED_TOOLS,
        "conversation": RefusedField("send the conversation itself as `input`"),
        "include": RefusedField(
            "a response has its text alone", ([], ["reasoning.encrypted_content"])
        ),
        "max_tool_calls": RefusedField(_TOOLS),
        "previous_response_id": RefusedField("send the conversation itself as `input`", ("",)),
        "prompt": RefusedField("prompts are configured on the server"),
        "top_logprobs": RefusedField(_LOGPROBS, (0,)),
    },
    flags=frozenset({"background", "stream"}),
)
