"""Settings -> what the runs of a process share: the provider's adapter, prompts, schemas, tools and the plan file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from aeon.app import tools
from aeon.config.load import find_recorded_origin
from aeon.config.provider import check_endpoint, resolve_provider
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError
from aeon.domain.request import LLMAdapter
from aeon.llm.custom import CustomAdapter, describe_given, load_adapter
from aeon.llm.prices import AnyEndpoint, named_endpoints, price_list
from aeon.llm.prompts import PromptLibrary
from aeon.llm.protocols import close
from aeon.llm.schemas import SchemaLibrary
from aeon.llm.settings import (
    AutoProvider,
    CustomProvider,
    EndpointSettings,
    LocalProvider,
    ProviderSettings,
    SimulatedProvider,
)
from aeon.llm.stack import build as stack
from aeon.llm.stack.build import Endpoint, Endpoints
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.limiter import Limiter
from aeon.memory.run_memory import InMemory
from aeon.plan.workflow.load import Workflow, format_problem, load_workflow
from aeon.store.opening import check_store
from aeon.tools.registry import Tool, ToolRegistry


@dataclass(frozen=True)
class Process:
    """What many runs share. `settings` name a definite provider, `warnings` what a person should know before a run.

    `synthetic` says that no model is called.
    """

    settings: Settings
    adapter: LLMAdapter
    prompts: PromptLibrary
    schemas: SchemaLibrary
    registry: ToolRegistry
    workflow: Workflow | None
    warnings: tuple[str, ...]
    synthetic: bool = False

    @cached_property
    def prompts_digest(self) -> str:
        """SHA-256, hex, of the templates."""
        return self.prompts.digest()

    @cached_property
    def schemas_digest(self) -> str:
        """SHA-256, hex, of the schemas."""
        return self.schemas.digest()


def build_process(
    settings: Settings,
    environ: Mapping[str, str],
    own_tools: Sequence[Tool] = (),
    own_adapter: LLMAdapter | None = None,
) -> Process:
    """Resolve the provider, load prompts and schemas, start tools; `own_tools` come after the configured ones.

    `own_adapter` is asked instead of the configured provider, and the caller closes it. Raises ConfigError for whatever
    cannot be used.
    """
    check_store(settings.store)
    settings = settle_provider(settings, environ, own_adapter)
    prompts = PromptLibrary(settings.prompts.dir, settings.prompts.set)
    schemas = _schemas(settings)
    warnings: list[str] = []
    registry = tools.build(settings.tools, environ, report=warnings.append)
    try:
        for made in own_tools:
            registry.register(made)
        workflow = _workflow(settings, tools.build_run_registry(registry, InMemory(), settings=settings.tools))
        adapter = build_adapter(settings, environ, own_adapter)
    except BaseException:
        registry.close()
        raise
    if workflow is not None:
        warnings += (format_problem(workflow.path, problem) for problem in workflow.warnings)
    return Process(
        settings=settings,
        adapter=adapter,
        prompts=prompts,
        schemas=schemas,
        registry=registry,
        workflow=workflow,
        warnings=tuple(warnings),
        synthetic=is_synthetic(settings, adapter),
    )


def _schemas(settings: Settings) -> SchemaLibrary:
    dimensions = {name: dimension.answer_schema for name, dimension in settings.ttl.dimensions.items()}
    schemas = SchemaLibrary(settings.schemas.dir, settings.ttl.levels, dimensions)
    schemas.check()
    return schemas


def _workflow(settings: Settings, registry: ToolRegistry) -> Workflow | None:
    if settings.plan_file is None:
        return None
    return load_workflow(
        settings.plan_file,
        tool_names={tool.name: tool.input_schema for tool in registry.list()},
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        unavailable=registry.unavailable,
    )


def close_process(shared: Process) -> None:
    """Close what a process holds open."""
    close(shared.adapter)
    shared.registry.close()


def settle_provider(settings: Settings, environ: Mapping[str, str], own: LLMAdapter | None = None) -> Settings:
    """The settings with a definite provider; `own` is an adapter that is asked instead. Raises ConfigError."""
    if own is not None:
        settings = settings.model_copy(update={"provider": describe_given(own, settings.provider)})
    return resolve_provider(settings, environ)


def build_adapter(settings: Settings, environ: Mapping[str, str], own: LLMAdapter | None = None) -> stack.Endpoints:
    """What is asked; `own` stays the caller's. A replay calls no model: it needs no key, and loads no adapter.

    Raises ConfigError for an adapter that cannot be had, or that calls no model where `env=prod` asks for one.
    """
    if settings.store.mode == "replay":
        return stack.absent_stack(settings.provider)
    made = process_stack(settings.provider, environ, own)
    if settings.env == "prod" and is_synthetic(settings, made):
        made.close()
        raise ConfigError(
            f"provider={settings.provider.kind}: env=prod calls a real model, and this adapter says that it calls none",
            hint="Use env=dev for trying things out.",
        )
    return made


def is_synthetic(settings: Settings, adapter: stack.Endpoints) -> bool:
    """Whether no model is called; of an adapter of one's own that a replay does not load, the recording says it."""
    if settings.store.mode == "replay" and isinstance(settings.provider, CustomProvider):
        recorded = find_recorded_origin(settings)
        return recorded is not None and recorded.synthetic
    return isinstance(settings.provider, SimulatedProvider) or adapter.synthetic


Environ = Mapping[str, str]


def process_stack(settings: ProviderSettings, environ: Environ, own: LLMAdapter | None = None) -> Endpoints:
    """The provider's endpoints, for the life of the process; each connects with its first call.

    `settings` name a definite provider, not `auto`; `environ` holds the key and the secret headers that they name.
    `own` is the adapter of `provider=custom` where a program gives it; the caller closes it. Raises ConfigError for a
    variable that is missing or cannot be sent, a base URL that is none, a scenario that cannot be read, or an adapter
    of one's own that cannot be loaded.
    """
    named = named_endpoints(settings)
    made: list[Endpoint] = []
    try:
        for name, endpoint in named:
            made.append(_endpoint(name, endpoint, environ, own, has_next=len(made) < len(named) - 1))
    except BaseException:
        Endpoints(made).close()
        raise
    return Endpoints(made)


def _endpoint(
    name: str, settings: AnyEndpoint, environ: Environ, own: LLMAdapter | None, *, has_next: bool
) -> Endpoint:
    adapter = _adapter(settings, environ, own)
    state = None
    if isinstance(settings, EndpointSettings | CustomProvider):
        limiter = Limiter(
            settings.max_concurrency,
            settings.requests_per_minute,
            settings.tokens_per_minute,
            longest_pause=settings.retry.max_wait_seconds,
        )
        state = EndpointState(name, limiter, settings.breaker, settings.retry, has_next=has_next)
    return Endpoint(name, adapter, settings.retry, price_list(settings), state, has_next)


def _adapter(settings: AnyEndpoint, environ: Environ, own: LLMAdapter | None) -> LLMAdapter:
    """The adapter of a provider's kind; each is imported only where it is used."""
    if isinstance(settings, CustomProvider):
        return CustomAdapter(own, settings, owned=False) if own else load_adapter(settings)
    if isinstance(settings, SimulatedProvider):
        from aeon.simulated.adapter import SimulatedAdapter

        return SimulatedAdapter(settings)
    if isinstance(settings, LocalProvider):
        from aeon.llm.local.adapter import LocalAdapter

        return LocalAdapter(settings)
    if isinstance(settings, EndpointSettings) and not isinstance(settings, AutoProvider):
        from aeon.llm.openai.adapter import OpenAIAdapter

        check_endpoint(settings, environ)
        headers = {header: environ[variable].strip() for header, variable in settings.extra_headers_env.items()}
        settings = settings.model_copy(update={"base_url": settings.address(environ)})
        return OpenAIAdapter(settings, environ.get(settings.api_key_env, "").strip() or None, headers)
    raise ConfigError(f"provider={settings.kind} names no adapter", hint="`resolve_provider` makes it a definite one.")
