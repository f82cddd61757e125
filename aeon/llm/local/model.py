"""A model in memory, through llama-cpp-python: loading it, writing its prompt, generating under a grammar."""

from __future__ import annotations

import ctypes
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import ProviderError
from aeon.domain.request import Message
from aeon.llm.local.grammar import grammars

if TYPE_CHECKING:
    from llama_cpp import Llama, LlamaGrammar

_ERROR = 3
LOGGED = 10
_callbacks: list[Any] = []
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


@dataclass(frozen=True, slots=True)
class Generated:
    """What was generated. `reused` tokens of the prompt were in memory from the call before; `complete`: the model
    ended by itself, and was not cut off."""

    text: str
    tokens: int
    reused: int
    complete: bool


class LocalModel:
    """One model and its context; for one thread at a time. Raises ProviderError when the file cannot be loaded."""

    def __init__(self, loading: Loading) -> None:
        self._llama = _loaded(loading)
        self._grammars: dict[str, LlamaGrammar] = {}
        self._format = _formatter(self._llama)

    @property
    def context(self) -> int:
        """Tokens that prompt and answer may have together."""
        return int(self._llama.n_ctx())

    def prompt(self, messages: Sequence[Message]) -> list[int]:
        """The messages as tokens, by the model's chat template, or plainly where it has none that takes them."""
        text = self._format(messages)
        # A template that writes the first token itself would have it twice.
        beginning = text.startswith(_token_text(self._llama, self._llama.token_bos()) or "\0")
        tokens = self._llama.tokenize(text.encode("utf-8", "replace"), add_bos=not beginning, special=True)
        return [int(token) for token in tokens]

    def generate(
        self,
        prompt: list[int],
        schema: Mapping[str, Any],
        *,
        max_tokens: int,
        temperature: float,
        seed: int,
        proceed: Callable[[int], None],
    ) -> Generated:
        """An answer of at most `max_tokens`, held to the schema's grammar.

        `proceed` is called with the number of tokens generated, before each and between the batches of the prompt, and
        may raise: the model can be used again afterwards. Raises ProviderError when llama.cpp fails.
        """
        grammar = self._grammar(schema)
        with _llama_fails("the local model failed"):
            reused = self._read(prompt, proceed)
            self._llama.set_seed(seed)
            made: list[int] = []
            complete = False
            for token in self._llama.generate(prompt, temp=temperature, grammar=grammar):
                complete = _ends(self._llama, token)
                if complete or len(made) == max_tokens:
                    break
                made.append(token)
                proceed(len(made))
            text = bytes(self._llama.detokenize(made, prev_tokens=prompt)).decode("utf-8", "replace")
        return Generated(text, len(made), reused, complete)

    def takes(self, grammar: str) -> bool:
        """Whether llama.cpp takes a grammar (GBNF with a rule `root`); generating with one it does not take crashes."""
        import llama_cpp

        sampler = llama_cpp.llama_sampler_init_grammar(_vocabulary(self._llama), grammar.encode(), b"root")
        if sampler:
            llama_cpp.llama_sampler_free(sampler)
        return bool(sampler)

    def close(self) -> None:
        """Give the memory back."""
        self._llama.close()

    def _read(self, prompt: list[int], proceed: Callable[[int], None]) -> int:
        """Evaluate the prompt batch by batch, from where it parts from what is in memory; how many tokens were there.

        One token at least is evaluated, since what follows is sampled from it.
        """
        known = min(_common(self._llama.eval_tokens, prompt), len(prompt) - 1)
        if known and not _forget(self._llama, known):
            known = 0
        if known == 0:
            self._llama.reset()
        self._llama.n_tokens = known
        for start in range(known, len(prompt), self._llama.n_batch):
            proceed(0)
            self._llama.eval(prompt[start : start + self._llama.n_batch])
        return known

    def _grammar(self, schema: Mapping[str, Any]) -> LlamaGrammar:
        """The first of the schema's grammars that llama.cpp takes."""
        from llama_cpp import LlamaGrammar

        key = json.dumps(schema)
        if key not in self._grammars:
            taken = next(filter(self.takes, grammars(schema)), None)
            if taken is None:
                raise ProviderError("llama.cpp takes no JSON grammar", hint="Another version of llama-cpp-python may.")
            self._grammars[key] = LlamaGrammar.from_string(taken, verbose=False)
        return self._grammars[key]


def _import() -> None:
    """Import llama-cpp-python, which loads what was compiled. Raises ProviderError."""
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:
        raise ProviderError(
            f"llama-cpp-python cannot be imported: {error}",
            hint="Install it anew: pip install --force-reinstall --no-cache-dir llama-cpp-python",
        ) from error


def _loaded(loading: Loading) -> Llama:
    _import()
    from jinja2 import TemplateError
    from llama_cpp import Llama

    errors = _log()
    errors.clear()
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
        reason = "; ".join(dict.fromkeys(errors)) or str(error)
        raise ProviderError(
            f"{loading.path}: the model could not be loaded: {reason}",
            hint="Is the file complete, is there memory for it (provider.n_ctx takes some too), and does the installed "
            "llama-cpp-python know this kind of model?",
        ) from error


@cache
def _log() -> deque[str]:
    """llama.cpp's newest error messages, from the first call on; they are shown nowhere else."""
    import llama_cpp

    lines: deque[str] = deque(maxlen=LOGGED)

    @llama_cpp.llama_log_callback  # type: ignore[untyped-decorator]
    def keep(level: int, text: bytes, _data: ctypes.c_void_p) -> None:
        if level == _ERROR:
            lines.append(text.decode("utf-8", "replace").strip())

    llama_cpp.llama_log_set(keep, ctypes.c_void_p(0))
    # What C calls must not be collected.
    _callbacks.append(keep)
    return lines


@contextmanager
def _llama_fails(what: str) -> Iterator[None]:
    """llama.cpp's failures as ProviderError."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise ProviderError(
            f"{what}: {error}", hint="Too little memory shows like this: lower provider.n_ctx or provider.n_gpu_layers."
        ) from error


def _formatter(llama: Llama) -> Callable[[Sequence[Message]], str]:
    from jinja2 import TemplateError
    from llama_cpp.llama_chat_format import Jinja2ChatFormatter

    template = llama.metadata.get("tokenizer.chat_template")
    if not template:
        return plain
    eos, bos = (_token_text(llama, token) for token in (llama.token_eos(), llama.token_bos()))
    of_model = Jinja2ChatFormatter(template=template, eos_token=eos, bos_token=bos)

    def formatted(messages: Sequence[Message]) -> str:
        # Some templates take no system message.
        for form in (messages, merged(messages)):
            try:
                return str(of_model(messages=[{"role": m.role, "content": m.content} for m in form]).prompt)
            except (TemplateError, ValueError, TypeError):
                continue
        return plain(messages)

    return formatted


def merged(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages with the system message put before the first user message."""
    system = [message.content for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    if not others:
        return (Message("user", "\n\n".join(system)),)
    return (Message(others[0].role, "\n\n".join([*system, others[0].content])), *others[1:])


def plain(messages: Sequence[Message]) -> str:
    """The messages for a model without a chat template."""
    parts = [f"{_SPEAKERS[message.role]}:\n{message.content}\n\n" for message in messages]
    return "".join(parts) + f"{_SPEAKERS['assistant']}:\n"


def _common(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens they begin with alike."""
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _forget(llama: Llama, after: int) -> bool:
    """Remove what is in memory after so many tokens; False for a model that can only forget everything."""
    import llama_cpp

    return bool(llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(llama.ctx), -1, after, -1))


def _vocabulary(llama: Llama) -> Any:
    import llama_cpp

    return llama_cpp.llama_model_get_vocab(llama.model)


def _ends(llama: Llama, token: int) -> bool:
    import llama_cpp

    return bool(llama_cpp.llama_vocab_is_eog(_vocabulary(llama), token))


def _token_text(llama: Llama, token: int) -> str:
    import llama_cpp

    return llama_cpp.llama_vocab_get_text(_vocabulary(llama), token).decode("utf-8", "replace") if token != -1 else ""
