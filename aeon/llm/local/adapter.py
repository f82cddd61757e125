"""A model in this process: no server and no key. llama-cpp-python (the extra `local`) is imported with the first call.

There is one model in memory per process, and one call at a time: a context cannot be shared between threads, and two
generations at once would only share the same processor. Calls wait for their turn.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from weakref import WeakSet

from aeon.domain.errors import ProviderError, RequestRefused, Truncated
from aeon.domain.request import LLMRequest, LLMResponse, Message, Usage
from aeon.llm.dialects.dialect import schema_in_words, with_system_text
from aeon.llm.local import files as local_files
from aeon.llm.local.model import Loading, LocalModel
from aeon.llm.settings import LocalProvider

CLOSING_SECONDS = 5.0
SEEDS = 2**32

_lock = threading.Lock()
_in_memory: tuple[Loading, LocalModel] | None = None
_adapters: WeakSet[LocalAdapter] = WeakSet()


class _Turn:
    """A call whose turn it is; `closed` tells whether the provider was closed since the call was made."""

    def __init__(self, call: str, seconds: float, closed: Callable[[], bool]) -> None:
        self._call, self._seconds, self._closed = call, seconds, closed
        self._deadline = time.monotonic() + seconds
        self.prompt_tokens = 0

    def proceed(self, generated: int = 0) -> None:
        """Raise ProviderError, with the usage of what was `generated`, when the call has to end."""
        usage = Usage(self.prompt_tokens, generated, requests=1) if self.prompt_tokens else Usage()
        if self._closed():
            raise ProviderError(f"the provider was closed while a {self._call} call was under way", usage=usage)
        if time.monotonic() >= self._deadline:
            raise ProviderError(
                f"the local model gave no answer to the {self._call} call within {self._seconds:g} s"
                f" ({generated} tokens were generated)",
                hint="Raise provider.timeout_seconds, lower provider.max_tokens, or take a smaller model.",
                usage=usage,
            )


class LocalAdapter:
    """Answers requests with a GGUF model in this process, each answer held to its schema by a grammar.

    `settings` say which model and how it generates; a request's own parameters win, effort has no meaning here. Raises
    `ConfigError` when the extra is not installed, or there is no such model file.
    """

    def __init__(self, settings: LocalProvider) -> None:
        local_files.check(settings)
        self._settings = settings
        self._closings = 0
        self._loading: Loading | None = None

    def __repr__(self) -> str:
        return f"LocalAdapter(model={self.model!r})"

    @property
    def model(self) -> str:
        """The name that answers are reported under."""
        return self._settings.model

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request, in at most `timeout_seconds` from when it is its turn and the model is loaded.

        Raises `RequestRefused` for a prompt that is longer than the context, and for another model than this one;
        `Truncated` for an answer that met a limit; `ProviderError` when the model cannot be loaded, fails, takes too
        long, or is closed meanwhile.
        """
        self._check_model(request)
        closings = self._closings
        with _lock:
            if self._closings != closings:
                raise ProviderError(f"the provider was closed before the {request.call} call had its turn")
            model = self._loaded()
            turn = _Turn(request.call, self._settings.timeout_seconds, lambda: self._closings != closings)
            return self._answer(model, request, turn)

    def close(self) -> None:
        """Give the memory back; calls under way fail. A later call loads the model anew."""
        self._closings += 1
        if self._loading is not None and _lock.acquire(timeout=CLOSING_SECONDS):
            try:
                if _in_memory is not None and _in_memory[0] == self._loading:
                    _release()
            finally:
                _lock.release()

    def _answer(self, model: LocalModel, request: LLMRequest, turn: _Turn) -> LLMResponse:
        settings, wished = self._settings, request.parameters
        prompt = model.prompt(self._messages(request))
        room = model.context - len(prompt)
        if room < 1:
            raise _too_long(request, len(prompt), model.context)
        turn.prompt_tokens = len(prompt)
        generated = model.generate(
            prompt,
            request.schema,
            max_tokens=min(room, wished.max_tokens or settings.max_tokens),
            temperature=settings.temperature if wished.temperature is None else wished.temperature,
            # Several answers to one request must be able to differ.
            seed=(settings.seed + request.sample) % SEEDS,
            proceed=turn.proceed,
        )
        usage = Usage(len(prompt), generated.tokens, cached_tokens=generated.reused, requests=1)
        if not generated.complete:
            raise self._truncated(request, usage, full=generated.tokens == room)
        return LLMResponse(generated.text, usage, self.model)

    def _check_model(self, request: LLMRequest) -> None:
        if request.parameters.model not in (None, self.model):
            raise RequestRefused(
                f"the {request.call} call asks for the model {request.parameters.model}; there is {self.model} only",
                hint="provider=local has one model: leave roles.*.model and reasoning.*.model at null.",
            )

    def _loaded(self) -> LocalModel:
        if self._loading is None:
            settings = self._settings
            path = local_files.located(settings)
            self._loading = Loading(path, settings.n_ctx, settings.n_gpu_layers, settings.n_threads)
            _adapters.add(self)
        return _model(self._loading)

    def _messages(self, request: LLMRequest) -> tuple[Message, ...]:
        """The request's messages; with the schema, since a grammar only shows what is not allowed, never what is
        meant. A repair has it in its prompt already."""
        if not self._settings.schema_in_prompt or request.call == "repair":
            return request.messages
        return with_system_text(request.messages, schema_in_words(request))

    def _truncated(self, request: LLMRequest, usage: Usage, *, full: bool) -> Truncated:
        return Truncated(
            f"the answer to the {request.call} call was cut off after {usage.output_tokens} tokens: "
            + ("the context is full" if full else "max_tokens is reached"),
            hint="Raise provider.n_ctx." if full else "Raise provider.max_tokens (or that of the role or the mode).",
            usage=usage,
            model=self.model,
        )


def _too_long(request: LLMRequest, prompt: int, context: int) -> RequestRefused:
    return RequestRefused(
        f"the {request.call} call's prompt has {prompt} tokens, the context holds {context}",
        hint="Raise provider.n_ctx, as far as model and memory allow, or give the task less material; "
        "provider.schema_in_prompt=false makes every prompt shorter.",
    )


@atexit.register
def _close_all() -> None:
    """A model that goes down with the interpreter while a thread generates may crash the process."""
    for adapter in tuple(_adapters):
        adapter.close()


def _model(loading: Loading) -> LocalModel:
    """The model, loaded instead of another; the caller holds the lock."""
    global _in_memory
    if _in_memory is None or _in_memory[0] != loading:
        _release()
        _in_memory = (loading, LocalModel(loading))
    return _in_memory[1]


def _release() -> None:
    global _in_memory
    if _in_memory is not None:
        model = _in_memory[1]
        _in_memory = None
        model.close()


def _forget() -> None:
    """A forked child has the model's data but not its threads: it loads its own."""
    global _lock, _in_memory
    _lock = threading.Lock()
    _in_memory = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
