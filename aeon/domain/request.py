"""What passes between Aeon and a language model. A leaf: values and one protocol, no behaviour of a
vendor."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import add, attrgetter
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
_Planning = Literal["task_profile", "plan", "semantic_validation", "refinement", "subplan"]
_Working = Literal["direct", "step", "tool_arguments"]
_Judging = Literal["convergence", "comparison"]
CallName = Literal[_Planning, _Working, _Judging, "repair"]
Role = Literal["planner", "worker", "grader", "repairer"]
ReasoningMode = Literal["shallow", "balanced", "deep"]
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and requests; `cached_tokens` (read from a cache) and `cache_write_tokens` (written to
    one) are parts of `input_tokens`, `reasoning_tokens` of `output_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def of_unanswered(cls, request: LLMRequest) -> Usage:
        """What a request that was sent and not answered has used at least, estimated by the length
        of its texts."""
        return cls(input_tokens=estimate_tokens(request), requests=1)

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens

    def by_name(self) -> dict[str, int]:
        """The counts by their names."""
        return dict(zip(Usage.__slots__, _COUNTS(self), strict=True))

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _COUNTS(self), _COUNTS(other)))


FileForm = Literal["image", "pdf", "audio"]


@dataclass(frozen=True)
class InputFile:
    """A file that a model is given as it is, as the input of this `name`. `size` is in bytes,
    `sha256` of its `content`, in hex; a replay, which sends nothing, may have no content."""

    name: str
    form: FileForm
    media_type: str
    size: int
    sha256: str
    content: bytes = field(default=b"", repr=False, compare=False)

    @property
    def text(self) -> str:
        """What stands in prompts in the place of the file."""
        return (
            f"[attached file: {self.media_type}, {self.size:,} bytes, SHA-256 {self.sha256[:16]}]"
        )

    @property
    def noun(self) -> str:
        """What a person calls it."""
        return {"image": "image", "pdf": "PDF", "audio": "audio"}[self.form]

    @cached_property
    def base64(self) -> str:
        """The content as requests carry it."""
        return base64.b64encode(self.content).decode()

    def describe(self) -> dict[str, Any]:
        """The file without its content, as values of JSON."""
        return {
            "name": self.name,
            "form": self.form,
            "media_type": self.media_type,
            "size": self.size,
            "sha256": self.sha256,
        }


def show_inputs(inputs: Mapping[str, str | InputFile]) -> dict[str, str]:
    """The inputs as prompts show them: each file by its text."""
    return {
        name: given.text if isinstance(given, InputFile) else given
        for name, given in inputs.items()
    }


def select_files(inputs: Mapping[str, object]) -> dict[str, InputFile]:
    """Those of the inputs that are files."""
    return {name: given for name, given in inputs.items() if isinstance(given, InputFile)}


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message, with the `files` that go with it. `part_ends` are the places, in
    characters, at which a part of it ends that may begin later prompts too: they decide what a call
    costs, never what it is."""

    role: Literal["system", "user", "assistant"]
    content: str
    part_ends: tuple[int, ...] = field(default=(), compare=False, repr=False)
    files: tuple[InputFile, ...] = ()


def end_part(message: Message) -> Message:
    """The message as one that begins later prompts whole."""
    return replace(message, part_ends=(*message.part_ends, len(message.content)))


@dataclass(frozen=True, slots=True)
class Parameters:
    """How a call is to be generated. None leaves the choice to the provider's own settings."""

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    effort: str | None = None

    def over(self, base: Parameters) -> Parameters:
        """These parameters, with `base` filling what is None here."""
        pairs = zip(_PARAMETERS(self), _PARAMETERS(base), strict=True)
        return Parameters(*(theirs if mine is None else mine for mine, theirs in pairs))


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where in a run a structured call is made. `cycle` is the TTL cycle it is charged to (0: the
    free profile call), `sequence` the number of its first event, `attempt` 0 for the call itself
    and 1, 2 for its repairs; `sample` numbers, from 0, the answers that one step is asked for,
    `round` the rounds of a step that uses tools, each of which is a cycle."""

    pass_number: int = 0
    phase: str = ""
    cycle: int = 0
    sequence: int = 0
    step_id: str | None = None
    mode: ReasoningMode | None = None
    attempt: int = 0
    sample: int = 0
    round: int = 0


_site: ContextVar[CallSite] = ContextVar("call_site", default=CallSite())  # noqa: B039 - frozen


def current_site() -> CallSite:
    """The site of the call being made in this thread; an empty one outside a run."""
    return _site.get()


@contextmanager
def at_site(site: CallSite) -> Iterator[None]:
    """Make calls in this block at `site`. So a component needs no more arguments than its interface
    has."""
    token = _site.set(site)
    try:
        yield
    finally:
        _site.reset(token)


class Budget(Protocol):
    """What a part of a run may spend: the kernel's TTL, one cycle a call unless it says how
    many."""

    def affordable(self, cycles: int = 1) -> bool:
        """Whether so many cycles are left."""

    def call(self, name: CallName, ask: Callable[[], T], *, cycles: int = 1) -> T:
        """Make one structured call, charged."""


def ask_sample(number: int, ask: Callable[[], T]) -> T:
    """Make a call of this site once more, as its sample of that number."""
    with at_site(replace(current_site(), sample=number)):
        return ask()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that a model asks for: `arguments` are JSON text. `extra` is what else its
    server gave with the call, and is given back to it."""

    tool: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The calls that a model asked for in one round, with the texts of their results, and what else
    its message had (`extra`)."""

    calls: tuple[ToolCall, ...]
    results: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolConversation:
    """The rounds of a step so far. `tools` have a name, a description and an input_schema each.
    `is_over`: no more calls are taken, and the answer is asked for."""

    tools: tuple[Mapping[str, Any], ...]
    turns: tuple[ToolTurn, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCalling:
    """A request that offers tools, as a server with function calling takes it: the messages before
    the conversation, and the schema of the answer alone."""

    opening: tuple[Message, ...]
    schema: Mapping[str, Any]
    strict: bool
    schema_prompt: str
    conversation: ToolConversation


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """One structured request. `sample` numbers the answers to equal requests. `schema_prompt` is
    the schema in words, for a server that does not take it. `variables` are what the messages were
    rendered from, for an adapter without a model. `functions` is another form of the same request,
    for a server with function calling. None of them is sent as it stands."""

    call: CallName
    messages: tuple[Message, ...]
    schema: Mapping[str, Any]
    role: Role = "planner"
    strict: bool = True
    parameters: Parameters = field(default_factory=Parameters)
    site: CallSite = field(default_factory=CallSite)
    sample: int = 0
    schema_prompt: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    functions: FunctionCalling | None = field(default=None, repr=False, compare=False)


def estimate_tokens(request: LLMRequest) -> int:
    """About how many tokens a request's texts are; its files are not counted."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    return size // BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """A model's answer. `synthetic`: no model was called. `endpoint` is the configured provider
    that answered, where there are several. `usage_reported` is False where `usage` is an estimate,
    or empty."""

    text: str
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    response_id: str | None = None
    finish_reason: str = "stop"
    synthetic: bool = False
    endpoint: str = ""
    usage_reported: bool = True


@runtime_checkable
class LLMAdapter(Protocol):
    """Anything that answers an `LLMRequest`; called from many threads at once."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; blocks until the answer is there. Raises
        `aeon.domain.errors.LLMError`."""
        ...


# Of fields alone: `dataclasses.astuple` copies their values, and these are added up with every
# call.
_COUNTS = attrgetter(*(each.name for each in fields(Usage)))
_PARAMETERS = attrgetter(*(each.name for each in fields(Parameters)))
