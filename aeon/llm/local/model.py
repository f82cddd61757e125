"""A model in memory, through llama-cpp-python: loading it, writing its prompt, generating under a grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import ProviderError
from aeon.domain.request import Message
from aeon.llm.local.grammar import closest_grammar

if TYPE_CHECKING:
    from llama_cpp import Llama, LlamaGrammar

_SPEAKERS = {"system": "Instructions", "user": "Request", "assistant": "Answer"}


@dataclass(frozen=True, slots=True)
class Loading:
    """What a model is loaded with; two that are equal share one model. None: what llama.cpp finds best.

    `context` 0: as long as the model was trained with. `gpu_layers` -1: all of them.
    """

    path: Path
    context: int
    gpu_layers: int
    threads: int | None


class LocalModel:
    """One model and its context; for one thread at a time. Raises ProviderError when the file cannot be loaded."""

    def __init__(self, loading: Loading) -> None:
        self._llama = _load(loading)
        import llama_cpp

        self.context = int(self._llama.n_ctx())
        self._vocabulary = llama_cpp.llama_model_get_vocab(self._llama.model)
        self._grammars: dict[str, LlamaGrammar] = {}

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The messages as tokens, by the model's chat template, or plainly where it has none that takes them."""
        text, begin = self._written(messages), self._token_text(self._llama.token_bos())
        # A template that writes the first token itself would have it twice.
        add_bos = not (begin and text.startswith(begin))
        return list(self._llama.tokenize(text.encode("utf-8", "replace"), add_bos=add_bos, special=True))

    def shared(self, prompt: list[int]) -> int:
        """How many tokens of a prompt are in memory from the call before; one at least is evaluated anew."""
        return min(int(self._llama.longest_token_prefix(self._llama.eval_tokens, prompt)), len(prompt) - 1)

    def generate(self, prompt: list[int], schema: Mapping[str, Any], *, temperature: float, seed: int) -> Iterator[int]:
        """The tokens of an answer, held to the schema's grammar, until the model ends it. It may be left at any token,
        and the model be used again. Raises ProviderError when llama.cpp fails."""
        import llama_cpp

        grammar = self._grammar(schema)
        self._llama.set_seed(seed)
        try:
            for token in self._llama.generate(prompt, temp=temperature, grammar=grammar):
                if llama_cpp.llama_vocab_is_eog(self._vocabulary, token):
                    return
                yield token
        except (RuntimeError, ValueError) as error:
            raise ProviderError(
                f"the local model failed: {error}",
                hint="Too little memory shows like this: lower provider.n_ctx or provider.n_gpu_layers.",
            ) from error

    def text(self, tokens: list[int], prompt: list[int]) -> str:
        """What was generated after a prompt, as text."""
        return bytes(self._llama.detokenize(tokens, prev_tokens=prompt)).decode("utf-8", "replace")

    def takes(self, grammar: str) -> bool:
        """Whether llama.cpp takes a grammar (GBNF with a rule `root`); generating with one it does not take crashes."""
        import llama_cpp

        sampler = llama_cpp.llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
        if sampler:
            llama_cpp.llama_sampler_free(sampler)
        return bool(sampler)

    def close(self) -> None:
        """Give the memory back."""
        self._llama.close()

    def _grammar(self, schema: Mapping[str, Any]) -> LlamaGrammar:
        from llama_cpp.llama_grammar import JSON_GBNF, LlamaGrammar

        key = json.dumps(schema)
        if key not in self._grammars:
            closest = closest_grammar(schema)
            self._grammars[key] = LlamaGrammar.from_string(closest if self.takes(closest) else JSON_GBNF, verbose=False)
        return self._grammars[key]

    def _written(self, messages: Sequence[Message]) -> str:
        from jinja2 import TemplateError
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        template = self._llama.metadata.get("tokenizer.chat_template")
        # Some templates take no system message.
        for form in (messages, merged(messages)) if template else ():
            eos, bos = (self._token_text(token) for token in (self._llama.token_eos(), self._llama.token_bos()))
            try:
                write = Jinja2ChatFormatter(template=template, eos_token=eos, bos_token=bos)
                return str(write(messages=[{"role": m.role, "content": m.content} for m in form]).prompt)
            except (TemplateError, ValueError, TypeError):
                continue
        return plain(messages)

    def _token_text(self, token: int) -> str:
        import llama_cpp

        if token < 0:
            return ""
        return str(llama_cpp.llama_vocab_get_text(self._vocabulary, token).decode("utf-8", "replace"))


def merged(messages: Sequence[Message]) -> list[Message]:
    """The messages with the system message put before the first user message."""
    system = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"] or [Message("user", "")]
    first = Message(others[0].role, "\n\n".join([*system, others[0].content]).rstrip())
    return [first, *others[1:]]


def plain(messages: Sequence[Message]) -> str:
    """The messages for a model without a chat template."""
    parts = [f"{_SPEAKERS[message.role]}:\n{message.content}\n\n" for message in messages]
    return "".join(parts) + f"{_SPEAKERS['assistant']}:\n"


def _load(loading: Loading) -> Llama:
    try:
        from jinja2 import TemplateError
        from llama_cpp import Llama
    except (ImportError, OSError, RuntimeError) as error:
        raise ProviderError(
            f"llama-cpp-python cannot be imported: {error}",
            hint="Install it anew: pip install --force-reinstall --no-cache-dir llama-cpp-python",
        ) from error
    try:
        return Llama(
            str(loading.path),
            n_ctx=loading.context,
            n_gpu_layers=loading.gpu_layers,
            n_threads=loading.threads,
            n_threads_batch=loading.threads,
            verbose=False,
        )
    except (ValueError, RuntimeError, MemoryError, OSError, TemplateError) as error:
        raise ProviderError(
            f"{loading.path}: the model could not be loaded: {error}",
            hint="Is the file complete, is there memory for it (provider.n_ctx takes some too), and does the installed "
            "llama-cpp-python know this kind of model?",
        ) from error
