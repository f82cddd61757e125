"""What models take, where that is known beforehand: a table, each row with its source. Pure.

The first row that names the provider and matches the model's name (behind its last slash) holds; without one nothing
is assumed, and what the server then refuses by name is left out from then on (`aeon.llm.dialects.negotiation`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from aeon.domain.request import Parameters

TokenParameter = Literal["max_completion_tokens", "max_tokens"]
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")

_OPENAI = ("openai", "azure")
_REASONING = "https://platform.openai.com/docs/guides/reasoning"
_THINKING = "https://docs.ollama.com/capabilities/thinking"
_GROQ = "https://console.groq.com/docs/reasoning"
_GEMINI = "https://ai.google.dev/gemini-api/docs/openai"
_EFFORTS = "https://learn.microsoft.com/javascript/api/@azure/ai-projects/reasoningeffort"


@dataclass(frozen=True, slots=True)
class Row:
    """What the models whose name matches `model` take at the providers of these names.

    `temperature`: `yes`, `no`, or `without_effort` for models that take one only where the effort is `none` or unset.
    `efforts` are the values of `reasoning_effort`; empty: the parameter is not taken, None: not known.
    """

    providers: tuple[str, ...]
    model: str
    source: str
    temperature: Literal["yes", "no", "without_effort"] = "yes"
    efforts: tuple[str, ...] | None = None


MODELS: tuple[Row, ...] = (
    Row(_OPENAI, r"o1-(mini|preview)", _REASONING, "no", ()),
    Row(_OPENAI, r"o[134]\b", _REASONING, "no", ("low", "medium", "high")),
    Row(_OPENAI, r"gpt-5(\.\d+)?-chat", _REASONING),
    Row(_OPENAI, r"gpt-5-pro", _EFFORTS, "no", ("high",)),
    Row(_OPENAI, r"gpt-5\.\d+-pro", _REASONING, "no"),
    Row(_OPENAI, r"gpt-5(-|$)", _EFFORTS, "no", ("minimal", "low", "medium", "high")),
    Row(_OPENAI, r"gpt-5\.1(-|$)", _EFFORTS, "without_effort", ("none", "low", "medium", "high")),
    Row(_OPENAI, r"gpt-5\.\d", _EFFORTS, "without_effort", ("none", "low", "medium", "high", "xhigh")),
    Row(_OPENAI, r"(chat)?gpt-(3\.5|4)", _REASONING, "yes", ()),
    Row(("anthropic",), r".*", "https://docs.anthropic.com/en/api/openai-sdk", "yes", ()),
    Row(("gemini",), r"gemini-(1|2\.0)|gemma", _GEMINI, "yes", ()),
    Row(("gemini",), r"gemini-", _GEMINI, "yes", ("none", "minimal", "low", "medium", "high")),
    Row(("groq",), r"gpt-oss", _GROQ, "yes", ("low", "medium", "high")),
    Row(("groq",), r".*", _GROQ, "yes", ()),
    Row(("mistral",), r".*", "https://docs.mistral.ai/inference/conversations/reasoning", "yes", ()),
    Row(("ollama",), r"gpt-oss", _THINKING, "yes", ("low", "medium", "high")),
    Row(("ollama",), r"(code)?llama|gemma|ministral|mistral|mixtral|phi|qwen2|tinyllama", _THINKING, "yes", ()),
)

TOKEN_PARAMETERS: dict[str, tuple[TokenParameter, str]] = {
    "openai": ("max_completion_tokens", "https://platform.openai.com/docs/api-reference/chat/create"),
    "azure": ("max_completion_tokens", "https://learn.microsoft.com/azure/ai-foundry/openai/how-to/reasoning"),
    "groq": ("max_completion_tokens", "https://console.groq.com/docs/api-reference"),
    "vllm": ("max_completion_tokens", "https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"),
    "openrouter": ("max_tokens", "https://openrouter.ai/docs/api-reference/parameters"),
    "mistral": ("max_tokens", "https://docs.mistral.ai/api/"),
    "together": ("max_tokens", "https://docs.together.ai/reference/chat-completions-1"),
    "ollama": ("max_tokens", "https://docs.ollama.com/openai"),
    "llama_cpp": ("max_tokens", "https://github.com/ggml-org/llama.cpp/tree/master/tools/server"),
    "lm_studio": ("max_tokens", "https://lmstudio.ai/docs/app/api/endpoints/openai"),
}


def row_for(provider: str, model: str) -> Row | None:
    """The row that holds for a model at a provider; None where nothing is known."""
    name = model.rpartition("/")[2].lower()
    return next((row for row in MODELS if provider in row.providers and re.match(row.model, name)), None)


def token_parameter(provider: str) -> TokenParameter:
    """What the provider calls the limit of an answer's tokens."""
    return TOKEN_PARAMETERS.get(provider, ("max_completion_tokens", ""))[0]


def other(parameter: TokenParameter) -> TokenParameter:
    """The other name of the same."""
    return "max_tokens" if parameter == "max_completion_tokens" else "max_completion_tokens"


@dataclass(frozen=True, slots=True)
class Fitted:
    """Parameters as a model takes them, and in `changed` what a person should know of the difference, by parameter."""

    parameters: Parameters
    changed: tuple[tuple[str, str], ...] = ()


def fitted(provider: str, model: str, parameters: Parameters) -> Fitted:
    """The parameters without what the table knows the model does not take, the effort moved to the nearest it does.

    An effort for a model that knows none is left out silently: reasoning modes set one for every model.
    """
    row = row_for(provider, model)
    if row is None:
        return Fitted(parameters)
    changed: list[tuple[str, str]] = []
    effort = _nearest(parameters.effort, row.efforts)
    if effort is not None and effort != parameters.effort:
        changed.append(("reasoning_effort", f"takes no effort {parameters.effort}: {effort} is sent"))
    temperature = parameters.temperature if _takes_temperature(row, effort) else None
    if temperature != parameters.temperature:
        reason = " unless its effort is none" if row.temperature == "without_effort" else ""
        changed.append(("temperature", f"takes no temperature{reason}: it is left out"))
    return Fitted(replace(parameters, effort=effort, temperature=temperature), tuple(changed))


def _takes_temperature(row: Row, effort: str | None) -> bool:
    return row.temperature == "yes" or (row.temperature == "without_effort" and effort in (None, "none"))


def _nearest(effort: str | None, allowed: tuple[str, ...] | None) -> str | None:
    """The allowed effort that is nearest, the higher of two: some reasoning is not none; None where none is."""
    if effort is None or allowed is None:
        return effort
    at = EFFORTS.index(effort) if effort in EFFORTS else 0
    return min(allowed, key=lambda value: (abs(EFFORTS.index(value) - at), -EFFORTS.index(value)), default=None)
