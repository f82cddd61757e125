"""Aeon as a solver of Inspect: its calls go to the model that Inspect evaluates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.app.aeon import Aeon
from aeon.domain.errors import ConfigError, ProviderError
from aeon.domain.request import LLMRequest, LLMResponse, Message, Usage
from aeon.domain.result import RunResult
from aeon.domain.values import JsonObject
from aeon.llm.dialects.dialect import schema_in_words, with_system_text

# An extra: the functions that need it import it.
if TYPE_CHECKING:
    from inspect_ai.model import GenerateConfig, Model, ModelOutput
    from inspect_ai.solver import Generate, Solver, TaskState


_REASONS = {"max_tokens": "length", "model_length": "length", "content_filter": "content_filter"}


def inspect_solver(
    overrides: Sequence[str] = (), *, config_dir: str | Path | None = None
) -> Solver:
    """Return a solver for `inspect_ai.Task(solver=...)`: each sample is a run with these overrides,
    whose answer becomes the sample's output, with the run's figures in the metadata under `aeon`.
    Every call goes through Inspect's `get_model()`, so Inspect's limits, cache and log apply to it.
    Raises ConfigError without the extra `inspect`."""
    try:
        from inspect_ai.model import get_model
        from inspect_ai.solver import solver
    except ImportError:
        raise ConfigError(
            "inspect_solver needs an extra", hint='pip install "aeon-engine[inspect]"'
        ) from None

    async def solve(state: TaskState, _generate: Generate) -> TaskState:
        adapter = ModelAdapter(get_model(), asyncio.get_running_loop())
        aeon = Aeon.from_config(list(overrides), config_dir=config_dir, adapter=adapter)
        try:
            _put(await aeon.arun(state.input_text), state, adapter.model)
        finally:
            aeon.close()
        return state

    made: Solver = solver(name="aeon")(lambda: solve)()
    return made


def _put(result: RunResult, state: TaskState, model: str) -> None:
    """Make the result of a run the output of a sample."""
    from inspect_ai.model import ChatMessageAssistant, ModelOutput

    if result.error is not None:
        raise ProviderError(result.error.message, hint=result.error.hint)
    state.output = ModelOutput.from_content(model, result.answer)
    state.messages.append(ChatMessageAssistant(content=result.answer))
    state.metadata["aeon"] = {
        "ended": result.termination_reason,
        "converged": result.converged,
        "passes": result.passes,
        "calls": result.usage.total.requests,
        "tokens": result.usage.total.total_tokens,
    }


class ModelAdapter:
    """Asks a model of Inspect, from Aeon's threads, in Inspect's event loop. The schema of an
    answer is written into the prompt, which every model accepts."""

    def __init__(self, asked: Model, loop: asyncio.AbstractEventLoop) -> None:
        self.model = str(asked)
        self._asked = asked
        self._loop = loop
        # Inspect recognises by it which sample a call belongs to.
        self._context = copy_context()

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises ProviderError for any error of Inspect, which does its own
        retries."""
        messages = with_system_text(request.messages, schema_in_words(request))
        # A context of its own for each call: two threads cannot enter the same one.
        future = self._context.copy().run(
            asyncio.run_coroutine_threadsafe, self._generate(messages, request), self._loop
        )
        try:
            output = future.result()
        except CancelledError as error:
            raise ProviderError(f"{self.model}: RuntimeError: the sample was cancelled") from error
        except Exception as error:
            raise ProviderError(f"{self.model}: {type(error).__name__}: {error}") from error
        return _read_response(output, self.model)

    async def _generate(self, messages: Sequence[Message], request: LLMRequest) -> ModelOutput:
        from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser

        kinds: JsonObject = {
            "system": ChatMessageSystem,
            "user": ChatMessageUser,
            "assistant": ChatMessageAssistant,
        }
        written = [kinds[message.role](content=message.content) for message in messages]
        return await self._asked.generate(written, config=_configure(request))


def _configure(request: LLMRequest) -> GenerateConfig:
    from inspect_ai.model import GenerateConfig

    parameters = request.parameters
    named = {
        "temperature": parameters.temperature,
        "max_tokens": parameters.max_tokens,
        "reasoning_effort": parameters.effort,
    }
    config: GenerateConfig = GenerateConfig.model_validate(
        {name: value for name, value in named.items() if value is not None}
    )
    return config


def _read_response(output: ModelOutput, model: str) -> LLMResponse:
    used = output.usage
    usage = Usage(requests=1)
    if used is not None:
        usage = Usage(
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cached_tokens=used.input_tokens_cache_read or 0,
            reasoning_tokens=used.reasoning_tokens or 0,
            requests=1,
        )
    reason = _REASONS.get(output.stop_reason, "stop")
    return LLMResponse(
        text=output.completion, usage=usage, model=output.model or model, finish_reason=reason
    )
