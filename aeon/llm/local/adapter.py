"""A model in this process: no server and no key. llama-cpp-python (the extra `local`) is imported
with the first call.

One model is in memory per process, and one call runs at a time; the others wait.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from aeon.domain.errors import ConfigError, ProviderError, RequestRefused, Truncated
from aeon.domain.request import LLMRequest, LLMResponse, Message, Usage
from aeon.llm.dialects.dialect import schema_in_words, with_system_text
from aeon.llm.local.model import Loading, LocalModel
from aeon.llm.settings import LocalProvider
from aeon.llm.watching import piece_teller

CLOSING_SECONDS = 5.0
SEEDS = 2**32
MAGIC = b"GGUF"

# One call at a time: a model in memory holds the state of one prompt.
_lock = threading.Lock()
_in_memory: tuple[Loading, LocalModel] | None = None


class LocalAdapter:
    """Answers requests with a GGUF model in this process; a grammar constrains each answer to its
    schema. A request's own parameters override `settings`; effort has no effect. Raises what
    `check` raises."""

    def __init__(self, settings: LocalProvider) -> None:
        check(settings)
        self.model = settings.model
        self._settings = settings
        self._closings = 0
        self._loading: Loading | None = None

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request. Raises `RequestRefused` for a prompt longer than the context and for
        a model other than this one; `Truncated` for an answer cut off by a limit; `ProviderError`
        if the model cannot be loaded, fails, exceeds `timeout_seconds` (counted from its turn) or
        is closed meanwhile."""
        if request.parameters.model not in (None, self.model):
            raise RequestRefused(
                f"the {request.call} call requests the model {request.parameters.model}; "
                f"only {self.model} is available",
                hint="provider=local has one model: leave roles.*.model and "
                "reasoning.*.model at null.",
            )
        closings = self._closings
        settings = self._settings
        with _lock:
            self._check_open(request, closings, Usage())
            if self._loading is None:
                path = locate_model(settings)
                self._loading = Loading(
                    path, settings.n_ctx, settings.n_gpu_layers, settings.n_threads
                )
                # Destroying a model at interpreter exit while a thread generates may crash the
                # process.
                atexit.register(self.close)
            return self._answer(_load(self._loading), request, closings)

    def close(self) -> None:
        """Free the memory; calls under way fail. A later call loads the model again."""
        self._closings += 1
        if self._loading is not None and _lock.acquire(timeout=CLOSING_SECONDS):
            try:
                if _in_memory is not None and _in_memory[0] == self._loading:
                    _release()
            finally:
                _lock.release()

    def _answer(self, model: LocalModel, request: LLMRequest, closings: int) -> LLMResponse:
        settings = self._settings
        wished = request.parameters
        deadline = time.monotonic() + settings.timeout_seconds
        text = ""
        ended = None
        prompt_tokens = 0
        pieces = model.answer(
            request,
            self._messages(request),
            max_tokens=wished.max_tokens or settings.max_tokens,
            temperature=settings.temperature if wished.temperature is None else wished.temperature,
            # Several answers to one request must be able to differ.
            seed=(settings.seed + request.sample) % SEEDS,
        )
        tell = piece_teller(request)
        for piece, ended in pieces:
            # At the first token, a bracket by itself, the count is the prompt's: the newest token is
            # not evaluated yet.
            prompt_tokens = prompt_tokens or model.tokens
            usage = Usage(
                prompt_tokens, model.tokens - prompt_tokens + (ended == "length"), requests=1
            )
            text += piece
            if tell is not None:
                tell(piece)
            self._check_open(request, closings, usage)
            if ended is None and time.monotonic() >= deadline:
                raise ProviderError(
                    f"the local model gave no answer to the {request.call} call within "
                    f"{settings.timeout_seconds:g} s ({usage.output_tokens} tokens were generated)",
                    hint="Raise provider.timeout_seconds, lower provider.max_tokens, or "
                    "take a smaller model.",
                    usage=usage,
                )
        if ended == "length":
            raise Truncated(
                f"the answer to the {request.call} call was cut off after "
                f"{usage.output_tokens} tokens",
                hint="Raise provider.max_tokens (or that of the role or the mode), and "
                "provider.n_ctx if it is full.",
                usage=usage,
                model=self.model,
            )
        return LLMResponse(text, usage, self.model)

    def _check_open(self, request: LLMRequest, closings: int, usage: Usage) -> None:
        if self._closings != closings:
            raise ProviderError(
                f"the provider was closed before the {request.call} call was answered", usage=usage
            )

    def _messages(self, request: LLMRequest) -> Sequence[Message]:
        # A repair prompt contains the schema already.
        tells_schema = self._settings.schema_in_prompt and request.call != "repair"
        if not tells_schema:
            return request.messages
        return with_system_text(request.messages, schema_in_words(request))


def _load(loading: Loading) -> LocalModel:
    global _in_memory
    if _in_memory is None or _in_memory[0] != loading:
        _release()
        _in_memory = (loading, LocalModel(loading))
    return _in_memory[1]


def _release() -> None:
    global _in_memory
    released = _in_memory
    _in_memory = None
    if released is not None:
        released[1].close()


def check(settings: LocalProvider) -> None:
    """Raise ConfigError if the extra is not installed, no model is named, or `model_path` is no
    GGUF file."""
    path = settings.model_path
    hub = (settings.repo_id, settings.filename, settings.revision)
    if any(hub) if path is not None else None in hub[:2]:
        raise ConfigError(
            "provider=local: "
            + ("no model is named" if path is None else "a file and a repository are both named"),
            hint="Set provider.model_path=model.gguf, or provider.repo_id=owner/name and "
            "provider.filename=model.gguf.",
        )
    modules = ("llama_cpp",) if path is not None else ("llama_cpp", "huggingface_hub")
    if missing := [name for name in modules if find_spec(name) is None]:
        raise ConfigError(
            f"provider=local needs the extra `local`: {' and '.join(missing)} cannot be imported",
            hint="Install it: pip install 'aeon-engine[local]' (it takes minutes and "
            "needs a C++ compiler).",
        )
    if path is not None:
        _check_file(path)


def _check_file(path: Path) -> None:
    try:
        with path.expanduser().open("rb") as file:
            is_gguf = file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise ConfigError(
            f"provider.model_path={path}: cannot be read: {error.strerror}"
        ) from error
    if not is_gguf:
        raise ConfigError(
            f"provider.model_path={path}: not a GGUF file (it does not begin with "
            f"{MAGIC.decode()})",
            hint="Models in other formats (safetensors, ggml) have to be converted to GGUF first.",
        )


def locate_model(settings: LocalProvider) -> Path:
    """Return the path of the model's file; one from a hub is downloaded once. Raises ProviderError
    if the hub cannot provide it."""
    if settings.model_path is not None:
        return settings.model_path.expanduser()
    from huggingface_hub import hf_hub_download

    repo_id = settings.repo_id or ""
    filename = settings.filename or ""
    try:
        return Path(hf_hub_download(repo_id, filename, revision=settings.revision))
    except (OSError, ValueError) as error:  # the hub library raises one of these
        reason = " ".join(str(error).split())
        raise ProviderError(
            f"{filename} of {repo_id} could not be downloaded: {reason}",
            hint="Check provider.repo_id, provider.filename and the network; a "
            "repository that is not public needs "
            "HF_TOKEN in the environment. A file downloaded otherwise: provider.model_path.",
        ) from error
