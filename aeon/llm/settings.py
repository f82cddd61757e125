"""Settings of the provider, its retries and prices, the prompts and the schemas."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PlainSerializer,
    PositiveFloat,
    model_validator,
)

from aeon.domain.request import FileForm, Parameters
from aeon.domain.values import (
    Address,
    JsonObject,
    OfRow,
    StartsCode,
    Taken,
    Unneeded,
    Value,
    is_loopback,
)
from aeon.llm.roles import Count, Effort, Temperature

StructuredOutput = Literal["auto", "json_schema", "json_object", "prompt"]
ApiName = Literal["chat", "responses"]
CacheMarks = Literal["openai", "anthropic"]
"""How a request marks prompts for the provider's cache: `prompt_cache_breakpoint`, or
`cache_control`."""


class RetrySettings(Value):
    """Retrying a failed request: exponential backoff in seconds, with jitter. A wait that the
    server requests does not count as an attempt, while a call's requested waits total at most
    `max_wait_seconds`."""

    attempts: int = Field(default=3, ge=1, le=10)
    initial_seconds: NonNegativeFloat = 1.0
    factor: float = Field(default=2.0, ge=1)
    max_seconds: PositiveFloat = 60.0
    max_wait_seconds: NonNegativeFloat = 120.0
    jitter_seconds: NonNegativeFloat = 0.5

    def backoff(self, failed: int, jitter: float) -> float:
        """Return the seconds to wait after `failed` failed attempts, counted from 0."""
        return min(self.initial_seconds * self.factor**failed + jitter, self.max_seconds)

    @property
    def seconds_of_attempts(self) -> float:
        """The most seconds in which a call uses up its attempts at a server that fails at once."""
        return sum(self.backoff(number, self.jitter_seconds) for number in range(self.attempts - 1))


SIMULATED_RETRY = RetrySettings(
    initial_seconds=0.05, max_seconds=1.0, max_wait_seconds=1.0, jitter_seconds=0.0
)


class Price(Value):
    """Money per million tokens, in one currency of your choice. `cached` is the price of tokens
    read from a cache, `cache_write` of tokens written to one; None: the same as `input`."""

    input: NonNegativeFloat
    output: NonNegativeFloat
    cached: NonNegativeFloat | None = None
    cache_write: NonNegativeFloat | None = None


class BreakerSettings(Value):
    """A cooldown of `open_seconds` after `failures` failed attempts in a row; then one request
    tests the endpoint."""

    failures: Count = 5
    open_seconds: PositiveFloat = 30.0


class _Provider(Value):
    """Settings of every provider. `accepts` are the forms of files that its models accept;
    `shapes_answers` the keys, besides the model's, that its answers depend on."""

    shapes_answers: ClassVar[tuple[str, ...]] = ()
    accepts: Unneeded[tuple[FileForm, ...]] = ()
    retry: Unneeded[RetrySettings] = RetrySettings.model_construct()
    prices: Taken[dict[str, Price]] = Field(default_factory=dict)
    if TYPE_CHECKING:
        kind: str
        model: str

    @property
    def parameters(self) -> Parameters:
        """The generation parameters of calls that name none."""
        return Parameters(
            self.model,
            temperature=getattr(self, "temperature", None),
            max_tokens=getattr(self, "max_tokens", None),
            effort=getattr(self, "effort", None),
        )

    @property
    def seconds_of_call(self) -> float:
        """The most seconds a call may take, including its attempts and the waits that its server
        requests."""
        is_for_attempts = getattr(self, "timeout_per", "call") == "attempt"
        return math.inf if is_for_attempts else float(getattr(self, "timeout_seconds", math.inf))

    @property
    def display_name(self) -> str:
        """The provider's name in messages."""
        return str(getattr(self, "name", self.kind))


class LimitedProvider(_Provider):
    """A provider with limits: on concurrent requests (fewer while it answers 429), and on requests
    and tokens in any minute."""

    max_concurrency: Unneeded[Count] = 128
    requests_per_minute: Unneeded[Count | None] = None
    tokens_per_minute: Unneeded[Count | None] = None
    breaker: Unneeded[BreakerSettings] = BreakerSettings.model_construct()


PatienceSeconds = Unneeded[NonNegativeFloat]
"""Seconds that a run waits for endpoints that are down or busy; 0.0: not at all."""


class SimulatedProvider(_Provider):
    """`provider=simulated`: no model at all; schema-valid answers, generated from `seed` or
    scripted by the YAML file `scenario`, each after `latency_seconds`."""

    shapes_answers = ("seed", "scenario")
    kind: Taken[Literal["simulated"]] = "simulated"
    model: OfRow[str] = "simulated"
    seed: Taken[NonNegativeInt] = 0
    scenario: Path | None = None
    latency_seconds: Unneeded[NonNegativeFloat] = 0.0
    retry: Unneeded[RetrySettings] = SIMULATED_RETRY


class LocalProvider(_Provider):
    """`provider=local`: a GGUF model in this process, from the file `model_path` or from `filename`
    in the hub's `repo_id`. `n_ctx` is in tokens, for prompt and answer together; 0: the model's
    training length. `n_gpu_layers` -1: all; `n_threads` None: llama.cpp's choice."""

    # Local models accept only text.
    accepts: Unneeded[tuple[FileForm, ...]] = Field(default=(), max_length=0)
    shapes_answers = ("seed", "repo_id", "filename", "revision", "schema_in_prompt")
    kind: Taken[Literal["local"]] = "local"
    model: OfRow[str] = "local"
    model_path: Unneeded[Path | None] = None
    repo_id: Taken[str | None] = None
    filename: Taken[str | None] = None
    revision: Taken[str | None] = None
    n_ctx: Taken[NonNegativeInt] = 8192
    n_gpu_layers: Unneeded[int] = Field(default=0, ge=-1)
    n_threads: Unneeded[Count | None] = None
    seed: Taken[int] = Field(default=0, ge=0, lt=2**32)
    temperature: Taken[Temperature] = 0.2
    max_tokens: Taken[Count] = 2048
    schema_in_prompt: Taken[bool] = True
    timeout_seconds: Unneeded[PositiveFloat] = 600.0
    retry: Unneeded[RetrySettings] = RetrySettings(attempts=1)

    @model_validator(mode="before")
    @classmethod
    def _fill_in_name_and_price(cls, given: object) -> Any:
        if not isinstance(given, dict):
            return given
        file = given.get("model_path") or given.get("filename")
        name = given.get("model") or (Path(str(file)).stem if file else "local")
        return {
            **given,
            "model": name,
            "prices": given.get("prices") or {name: Price(input=0, output=0)},
        }


NO_NAME = "custom"  # a custom adapter's model name until the adapter is known


class CustomProvider(LimitedProvider):
    """`provider=custom`: an adapter that you bring, the class `package.module:Class` called with
    `options`. `model` is the name sent in requests and stored with answers; it defaults to the
    reference."""

    shapes_answers = ("options",)
    kind: Taken[Literal["custom"]] = "custom"
    adapter: Unneeded[StartsCode[str | None]] = None
    options: Taken[dict[str, JsonValue]] = Field(default_factory=dict)
    model: OfRow[str] = NO_NAME
    patience_seconds: PatienceSeconds = 60.0

    @model_validator(mode="before")
    @classmethod
    def _fill_in_model(cls, given: object) -> Any:
        if not isinstance(given, dict):
            return given
        return {**given, "model": given.get("model") or given.get("adapter") or NO_NAME}


class ModelRule(Value):
    """`provider.models`: what models accept whose name, after its last slash, starts with a match
    of `match`. `temperature` without_effort: accepted if the effort is none or unset. `efforts`:
    the accepted ones; None: unknown. `prompt_cache`: how requests mark prompts for the cache; None:
    not at all."""

    match: Annotated[re.Pattern[str], PlainSerializer(lambda match: match.pattern)]
    temperature: Literal["taken", "left_out", "without_effort"] = "taken"
    efforts: tuple[Effort, ...] | None = None
    prompt_cache: CacheMarks | None = None


class EndpointSettings(LimitedProvider):
    """An OpenAI-compatible endpoint. Environment variables hold the address (if `base_url` is
    None), the key and secret headers.

    `structured_output` and `function_calling` auto find out what the server can do; `api` is the
    interface that requests use; `background` creates responses in the background and polls them;
    `stream` auto streams after an answer was cut off; `max_tokens_parameter` None tries both names;
    `prompt_cache` auto follows the rules in `models`. `batch` sends requests in batches
    (`aeon.llm.openai.batches`).
    """

    shapes_answers = ("extra_body",)
    accepts: Unneeded[tuple[FileForm, ...]] = ("image", "pdf")
    name: Taken[str] = Field(default="openai", pattern=r"^[a-z0-9][a-z0-9_.-]*$")
    model: OfRow[str] = "gpt-5-mini"
    base_url: Unneeded[Address | None] = None
    base_url_env: Unneeded[str | None] = "OPENAI_BASE_URL"
    structured_output: Taken[StructuredOutput] = "auto"
    function_calling: Unneeded[Literal["auto", "never"]] = "auto"
    api: Unneeded[ApiName] = "chat"
    background: Unneeded[bool] = False
    api_key_env: Unneeded[str] = "OPENAI_API_KEY"
    require_key: Unneeded[bool] = True
    token_provider: Unneeded[StartsCode[str | None]] = None
    api_version: Unneeded[str | None] = None
    client: Unneeded[StartsCode[str | None]] = None
    timeout_seconds: Unneeded[PositiveFloat] = 600.0
    timeout_per: Unneeded[Literal["call", "attempt"]] = "call"
    stream: Unneeded[Literal["auto", "always", "never"]] = "auto"
    temperature: Taken[Temperature | None] = None
    max_tokens: Taken[Count | None] = None
    effort: Taken[Effort | None] = None
    models: Unneeded[tuple[ModelRule, ...]] = ()
    max_tokens_parameter: Taken[Literal["max_completion_tokens", "max_tokens"] | None] = None
    prompt_cache: Unneeded[Literal["auto", "off", "openai", "anthropic"]] = "auto"
    extra_headers_env: Unneeded[dict[str, str]] = Field(default_factory=dict)
    extra_body: Taken[JsonObject] = Field(default_factory=dict)
    batch: Unneeded[bool] = False
    batch_wait_seconds: Unneeded[PositiveFloat] = 5.0
    batch_poll_seconds: Unneeded[PositiveFloat] = 30.0
    batch_price_factor: Unneeded[float] = Field(default=0.5, ge=0, le=1)
    batch_journal: Unneeded[Path | None] = None
    batch_cancel: Unneeded[bool] = False

    @model_validator(mode="after")
    def _check_api(self) -> Self:
        if self.background and self.api != "responses":
            raise ValueError("background=true needs api=responses")
        if self.batch and self.api == "responses":
            raise ValueError("batch=true needs api=chat")
        if "audio" in self.accepts and self.api == "responses":
            raise ValueError("accepts audio needs api=chat: the Responses API takes no recordings")
        return self

    def address(self, environ: Mapping[str, str]) -> str | None:
        """Return the address in use: `base_url`, else the value of the environment variable
        `base_url_env`; None if neither is set."""
        return self.base_url or environ.get(self.base_url_env or "", "").strip() or None

    def needs_key(self, environ: Mapping[str, str]) -> bool:
        """Whether a key is required: `require_key`, except for a server on this machine."""
        if self.client is not None or self.token_provider is not None:
            return False
        return self.require_key and not is_loopback(self.address(environ) or "")


class OpenAIFallback(EndpointSettings):
    """One of `provider.fallbacks`: an endpoint that answers when those before it cannot."""

    kind: Taken[Literal["openai"]] = "openai"


FallbackSettings = Annotated[OpenAIFallback | LocalProvider, Field(discriminator="kind")]


class ChainSettings(EndpointSettings):
    """An endpoint with fallbacks; a configuration names them by file, see
    `aeon.config.compose.compose`."""

    fallbacks: Unneeded[tuple[FallbackSettings, ...]] = ()
    patience_seconds: PatienceSeconds = 60.0


class OpenAIProvider(ChainSettings):
    """`provider=openai`."""

    kind: Taken[Literal["openai"]] = "openai"


class AutoProvider(ChainSettings):
    """`provider=auto`: openai if OPENAI_API_KEY or OPENAI_BASE_URL is set, else simulated; has the
    keys of both."""

    kind: Taken[Literal["auto"]] = "auto"
    seed: Taken[NonNegativeInt] = 0
    scenario: Path | None = None
    latency_seconds: Unneeded[NonNegativeFloat] = 0.0


ProviderSettings = Annotated[
    AutoProvider | SimulatedProvider | OpenAIProvider | LocalProvider | CustomProvider,
    Field(discriminator="kind"),
]


class PromptSettings(Value):
    """`prompts`: the prompt set, your folder of sets, and the most steps of the plan that a step is
    shown."""

    set: Taken[str] = "default"
    dir: Path | None = None
    outline_steps: Taken[Count] = 20


class SchemaSettings(Value):
    """`schemas`: your folder of schema files, searched before the packaged ones, and how often an
    answer that violates its schema is sent back for repair (FR-050)."""

    dir: Path | None = None
    repair_attempts: Taken[int] = Field(default=2, ge=0, le=10)
