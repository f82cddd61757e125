"""The values between Aeon and a language model. A leaf: values and one protocol, no vendor's
behaviour."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import add, attrgetter
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

T = TypeVar("T")
CallName = Literal[
    "task_profile",
    "plan",
    "semantic_validation",
    "refinement",
    "subplan",
    "direct",
    "step",
    "tool_arguments",
    "convergence",
    "comparison",
    "repair",
]
Role = Literal["planner", "worker", "grader", "repairer"]
ReasoningMode = Literal["shallow", "balanced", "deep"]
BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and requests; `cached_tokens` (read from a cache) and `cache_write_tokens` (written to
    one) are included in `input_tokens`, `reasoning_tokens` in `output_tokens`."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def of_unanswered(cls, request: LLMRequest) -> Usage:
        """Return the minimum usage of a request that was sent but not answered, estimated from the
        length of its texts."""
        return cls(input_tokens=estimate_tokens(request), requests=1)

    @property
    def total_tokens(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    def by_name(self) -> dict[str, int]:
        """Return the counts by name."""
        return dict(zip(Usage.__slots__, _COUNTS(self), strict=True))

    def __add__(self, other: Usage) -> Usage:
        return Usage(*map(add, _COUNTS(self), _COUNTS(other)))


def add_costs(costs: Iterable[float | None]) -> float | None:
    """Add up costs; None if one of them is unknown."""
    known = []
    for cost in costs:
        if cost is None:
            return None
        known.append(cost)
    return math.fsum(known)


FileForm = Literal["image", "pdf", "audio"]


@dataclass(frozen=True)
class InputFile:
    """A file that a model receives unchanged, as the input `name`. `size` is in bytes, `sha256`
    (hex) is of its `content`; in a replay, which sends nothing, the content may be missing."""

    name: str
    form: FileForm
    media_type: str
    size: int
    sha256: str
    content: bytes = field(default=b"", repr=False, compare=False)

    @property
    def text(self) -> str:
        """The text that replaces the file in prompts."""
        return (
            f"[attached file: {self.media_type}, {self.size:,} bytes, SHA-256 {self.sha256[:16]}]"
        )

    @property
    def noun(self) -> str:
        """The name of its form in messages."""
        return {"image": "image", "pdf": "PDF", "audio": "audio"}[self.form]

    @cached_property
    def base64(self) -> str:
        """The content as requests encode it."""
        return base64.b64encode(self.content).decode()

    def describe(self) -> dict[str, Any]:
        """Return the file without its content, as JSON values."""
        return {
            "name": self.name,
            "form": self.form,
            "media_type": self.media_type,
            "size": self.size,
            "sha256": self.sha256,
        }


def show_inputs(inputs: Mapping[str, str | InputFile]) -> dict[str, str]:
    """Return the inputs as prompts show them: files as their text."""
    return {
        name: given.text if isinstance(given, InputFile) else given
        for name, given in inputs.items()
    }


def select_files(inputs: Mapping[str, object]) -> dict[str, InputFile]:
    """Return those of the inputs that are files."""
    return {name: given for name, given in inputs.items() if isinstance(given, InputFile)}


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message with its `files`. `part_ends` are the positions, in characters, where a part
    ends that later prompts may start with too: they affect a call's cost, never its meaning."""

    role: Literal["system", "user", "assistant"]
    content: str
    part_ends: tuple[int, ...] = field(default=(), compare=False, repr=False)
    files: tuple[InputFile, ...] = ()


def end_part(message: Message) -> Message:
    """Return the message marked as one that later prompts may start with as a whole."""
    return replace(message, part_ends=(*message.part_ends, len(message.content)))


@dataclass(frozen=True, slots=True)
class Parameters:
    """Generation parameters of a call. None leaves the choice to the provider's settings."""

    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    effort: str | None = None

    def over(self, base: Parameters) -> Parameters:
        """Return these parameters, with missing ones filled from `base`."""
        pairs = zip(_PARAMETERS(self), _PARAMETERS(base), strict=True)
        return Parameters(*(theirs if mine is None else mine for mine, theirs in pairs))


@dataclass(frozen=True, slots=True)
class CallSite:
    """The place of a structured call in a run. `cycle` is the TTL cycle it is charged to (0: the
    free profile call), `sequence` the number of its first event, `attempt` 0 for the call itself
    and 1, 2 for its repairs; `sample` numbers, from 0, the answers to one step, `round` the rounds
    of a step that uses tools, each of which is a cycle."""

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
    """Return the site of the current call in this thread; an empty one outside a run."""
    return _site.get()


@contextmanager
def at_site(site: CallSite) -> Iterator[None]:
    """Make the calls in this block at `site`, so that components need no arguments beyond their
    interface."""
    token = _site.set(site)
    try:
        yield
    finally:
        _site.reset(token)


class Budget(Protocol):
    """What a part of a run may spend: the kernel's TTL, by default one cycle per call."""

    def affordable(self, cycles: int = 1) -> bool:
        """Whether `cycles` cycles are left."""

    def call(self, name: CallName, ask: Callable[[], T], *, cycles: int = 1) -> T:
        """Make one structured call and charge it."""


def ask_sample(number: int, ask: Callable[[], T]) -> T:
    """Repeat a call of this site as its sample `number`."""
    with at_site(replace(current_site(), sample=number)):
        return ask()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call requested by a model: `arguments` are JSON text. `extra` are other fields that
    its server sent with the call and gets back."""

    tool: str
    arguments: str
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The calls that a model requested in one round, with the texts of their results and other
    fields of its message (`extra`). If its response held neither calls nor an answer, `text` is the
    response, and the only result is the request for another."""

    calls: tuple[ToolCall, ...]
    results: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolConversation:
    """The rounds of a step so far. `tools` have a name, a description and an input_schema each.
    `is_over`: no more calls are allowed, and the answer is requested."""

    tools: tuple[Mapping[str, Any], ...]
    turns: tuple[ToolTurn, ...] = ()
    is_over: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCalling:
    """A request that offers tools, in the form for servers with function calling: the messages
    before the conversation, and the schema of the answer alone."""

    opening: tuple[Message, ...]
    schema: Mapping[str, Any]
    strict: bool
    schema_prompt: str
    conversation: ToolConversation


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """One structured request. `sample` numbers the answers to equal requests. `schema_prompt` is
    the schema as text, for a server that does not accept it. `variables` are the values the
    messages were rendered from, for an adapter without a model. `functions` is another form of the
    same request, for a server with function calling. None of these is sent unchanged."""

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
    """Estimate the tokens of a request's texts; its files are not counted."""
    size = sum(len(message.content.encode("utf-8", "replace")) for message in request.messages)
    return size // BYTES_PER_TOKEN


@dataclass(frozen=True, slots=True)
class LLMResponse:
    """A model's answer. `synthetic`: no model was called. `endpoint` is the configured provider
    that answered, if there are several. `usage_reported` is False if `usage` is an estimate or
    empty."""

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
    """An object that answers `LLMRequest`s; called from many threads at once."""

    def complete(self, request: LLMRequest) -> LLMResponse:
        """Answer one request; blocks until the answer is there. Raises
        `aeon.domain.errors.LLMError`."""
        ...


# Fields only: `dataclasses.astuple` copies their values, and these are added up with every call.
_COUNTS = attrgetter(*(each.name for each in fields(Usage)))
_PARAMETERS = attrgetter(*(each.name for each in fields(Parameters)))
