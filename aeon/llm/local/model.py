"""A model in memory, through llama-cpp-python: loads it and answers under a grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from aeon.domain.errors import ProviderError, RequestRefused
from aeon.domain.request import LLMRequest, Message
from aeon.domain.values import JsonMapping
from aeon.llm.local.grammar import closest_grammar

if TYPE_CHECKING:
    from llama_cpp import Llama, LlamaGrammar


@dataclass(frozen=True, slots=True)
class Loading:
    """The parameters for loading a model, as in `LocalProvider`; equal ones share one model."""

    path: Path
    context: int
    gpu_layers: int
    threads: int | None


class LocalModel:
    """One model and its context, used by one thread at a time. Raises ProviderError if it cannot be
    loaded."""

    def __init__(self, loading: Loading) -> None:
        self._llama = _load(loading)
        self._grammars: dict[str, LlamaGrammar] = {}

    @property
    def tokens(self) -> int:
        """Number of tokens in the context: the latest prompt and its answer."""
        return int(self._llama.n_tokens)

    def answer(
        self, request: LLMRequest, messages: Sequence[Message], **parameters: Any
    ) -> Iterator[tuple[str, str | None]]:
        """Yield the answer piece by piece, constrained by the schema's grammar; the last piece
        comes with the finish reason. Raises RequestRefused for a prompt that is too long,
        ProviderError if the model fails."""
        fixed = {"grammar": self._grammar(request.schema), "repeat_penalty": 1.0, "stream": True}
        given: dict[str, Any] = {**fixed, **parameters}
        try:
            try:
                chunks = self._llama.create_chat_completion(list(map(asdict, messages)), **given)
            except (TemplateError, ValueError):  # some templates take no system message
                chunks = self._llama.create_chat_completion(
                    list(map(asdict, merge_messages(messages))), **given
                )
            for chunk in chunks:
                choice = chunk["choices"][0]
                yield choice["delta"].get("content") or "", choice["finish_reason"]
        except (RuntimeError, ValueError, TemplateError) as error:
            if too_long := re.search(
                r"Requested tokens \((\d+)\) exceed context window of (\d+)", str(error)
            ):
                raise RequestRefused(
                    f"the {request.call} call's prompt has {too_long[1]} tokens, the "
                    f"context holds {too_long[2]}",
                    hint="Raise provider.n_ctx, as far as model and memory allow, or "
                    "give the task less material; "
                    "provider.schema_in_prompt=false makes every prompt shorter.",
                ) from error
            raise ProviderError(
                f"the local model failed: {error}",
                hint="Too little memory shows like this: lower provider.n_ctx or "
                "provider.n_gpu_layers.",
            ) from error

    def takes(self, grammar: str) -> bool:
        """Whether llama.cpp accepts a grammar (GBNF with a rule `root`); generating with one it
        rejects crashes."""
        import llama_cpp

        vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        sampler = llama_cpp.llama_sampler_init_grammar(vocabulary, grammar.encode(), b"root")
        if sampler:
            llama_cpp.llama_sampler_free(sampler)
        return bool(sampler)

    def close(self) -> None:
        """Free the memory."""
        self._llama.close()

    def _grammar(self, schema: JsonMapping) -> LlamaGrammar:
        from llama_cpp.llama_grammar import JSON_GBNF, LlamaGrammar

        key = json.dumps(schema)
        if key not in self._grammars:
            closest = closest_grammar(schema)
            self._grammars[key] = LlamaGrammar.from_string(
                closest if self.takes(closest) else JSON_GBNF, verbose=False
            )
        return self._grammars[key]


def merge_messages(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with the system message merged into the first user message."""
    system = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"] or [Message("user", "")]
    first = Message(others[0].role, "\n\n".join([*system, others[0].content]).rstrip())
    return [first, *others[1:]]


def _load(loading: Loading) -> Llama:
    try:
        from llama_cpp import Llama

        return Llama(
            str(loading.path),
            n_ctx=loading.context,
            n_gpu_layers=loading.gpu_layers,
            n_threads=loading.threads,
            n_threads_batch=loading.threads,
            verbose=False,
        )
    except (ImportError, ValueError, RuntimeError, MemoryError, OSError, TemplateError) as error:
        raise ProviderError(
            f"{loading.path}: the model could not be loaded: {error}",
            hint="Is the file complete, is there memory for it (provider.n_ctx takes some too), "
            "and does the installed llama-cpp-python know this kind of model?",
        ) from error
