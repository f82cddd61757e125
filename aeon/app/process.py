"""Builds what the runs of a process share: the provider's adapter, prompts, schemas, tools and the
plan file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aeon.app import tools
from aeon.app.job import Job
from aeon.app.parent import Parent, find_parent
from aeon.checks.selection import CheckMaker, CheckSet
from aeon.config.environment import Environment
from aeon.config.provider import check_endpoint, list_addressed_secrets
from aeon.config.settings import Settings, configuration_hash
from aeon.domain.errors import ConfigError
from aeon.domain.request import LLMAdapter
from aeon.execution.settings import UNJUDGED_MODES
from aeon.llm.custom import CustomAdapter, load_adapter
from aeon.llm.prices import AnyEndpoint, name_endpoints, price_list
from aeon.llm.prompts import PromptLibrary
from aeon.llm.protocols import close
from aeon.llm.schemas import SchemaLibrary
from aeon.llm.settings import (
    ChainSettings,
    CustomProvider,
    EndpointSettings,
    LocalProvider,
    OpenAIProvider,
    ProviderSettings,
    SimulatedProvider,
)
from aeon.llm.stack import build as stack
from aeon.llm.stack.build import EndpointAdapter, Endpoints
from aeon.llm.stack.endpoint_state import EndpointState
from aeon.llm.stack.limiter import Limiter
from aeon.llm.stack.patience import Patience
from aeon.memory.run_memory import InMemory
from aeon.refinement.own_components import OwnComponents, load_components
from aeon.store.cassette_export import Scrubber, secret_names
from aeon.store.opening import check_store
from aeon.tools.registry import Tool, ToolRegistry

if TYPE_CHECKING:
    from openai import OpenAI

    from aeon.plan.workflow.load import Workflow

OpenEndpoints = Callable[[ProviderSettings, Mapping[str, str], LLMAdapter | None], Endpoints]


@dataclass(frozen=True)
class Process:
    """The parts that the runs of a `job` share; `parent` is the run that they resume. `synthetic`:
    no model is called. `check_maker` prepares the checks of a row; `checks` are those of a run
    without its own."""

    job: Job
    parent: Parent | None
    adapter: LLMAdapter
    prompts: PromptLibrary
    schemas: SchemaLibrary
    registry: ToolRegistry
    workflow: Workflow | None
    warnings: tuple[str, ...]
    synthetic: bool = False
    own_components: OwnComponents = field(default_factory=OwnComponents)
    check_maker: CheckMaker = field(default_factory=CheckMaker)
    checks: CheckSet = field(default_factory=CheckSet)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.job.settings

    def with_settings(self, settings: Settings) -> Process:
        """Return a copy with other settings in force."""
        return replace(self, job=replace(self.job, settings=settings))

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256, hex, of prompts, schemas and configuration."""
        digests = {"prompts": self.prompts.digest(), "schemas": self.schemas.digest()}
        return {**digests, "configuration": configuration_hash(self.settings)}


def build_process(
    job: Job, environ: Mapping[str, str], open_endpoints: OpenEndpoints | None = None
) -> Process:
    """Find the run that is resumed, load prompts and schemas, start tools. A program's own tools
    come after the configured ones. A replay needs no key and loads no adapter. Raises ConfigError.
    """
    settings = job.settings
    own = job.own
    parent = find_parent(job)
    check_store(settings.store)
    components = load_components(job.chosen.components.by_name(), own.components)
    adapter = own.adapter
    if own.client is not None and isinstance(settings.provider, OpenAIProvider):
        adapter = _build_openai_adapter(settings.provider, environ, own.client)
    prompts = PromptLibrary(settings.prompts.dir, settings.prompts.set)
    schemas = _load_schemas(settings)
    warnings: list[str] = list(environ.warnings) if isinstance(environ, Environment) else []
    registry = _start_tools(settings, environ, own.tools, warnings)
    # From here on servers run, which an error must not leave behind.
    try:
        workflow = _load_workflow(settings, registry)
        check_maker = _make_check_maker(job, registry)
        checks = check_maker.prepare(workflow.checks if workflow else {})
        if settings.store.mode == "replay":  # needs no key, and imports no adapter
            endpoints = stack.absent_stack(settings.provider)
        else:
            endpoints = (open_endpoints or process_stack)(settings.provider, environ, adapter)
        synthetic = _is_synthetic(job, endpoints)
        _refuse_synthetic_in_production(settings, synthetic=synthetic)
    except BaseException:
        registry.close()
        raise
    if workflow is not None:
        warnings += workflow.describe_warnings()
    return Process(
        job=job,
        parent=parent,
        adapter=endpoints,
        prompts=prompts,
        schemas=schemas,
        registry=registry,
        workflow=workflow,
        warnings=tuple(warnings),
        synthetic=synthetic,
        own_components=components,
        check_maker=check_maker,
        checks=checks,
    )


def _start_tools(
    settings: Settings,
    environ: Mapping[str, str],
    own_tools: Sequence[Tool],
    warnings: list[str],
) -> ToolRegistry:
    registry = tools.build(settings.tools, environ, report=warnings.append)
    registry.hide = hide_secrets(settings, environ)
    try:
        if settings.tools.missing == "fail":
            tools.require_servers(registry)
        for made in own_tools:
            registry.register(made)
    except BaseException:
        registry.close()
        raise
    return registry


def _load_schemas(settings: Settings) -> SchemaLibrary:
    dimensions = {
        name: dimension.answer_schema for name, dimension in settings.ttl.dimensions.items()
    }
    schemas = SchemaLibrary(settings.schemas.dir, settings.ttl.levels, dimensions)
    schemas.check()
    return schemas


def _refuse_synthetic_in_production(settings: Settings, *, synthetic: bool) -> None:
    if synthetic and settings.env == "prod" and settings.store.mode != "replay":
        raise ConfigError(
            f"provider={settings.provider.kind}: env=prod calls a real model, "
            "and this adapter says that it calls none",
            hint="Use env=dev for trying things out.",
        )


def _refuse_more_than_one_call(settings: Settings, registry: ToolRegistry) -> None:
    """Raise ConfigError where `mode=single` is given settings that its one direct call cannot
    use."""
    if settings.mode.kind != "single":
        return
    if settings.plan_file is not None:
        raise ConfigError(
            "mode=single asks for the answer in one call, "
            f"and plan_file={settings.plan_file} is a plan",
            hint="Leave plan_file out, or take mode=core or mode=adaptive.",
        )
    if settings.answer.baseline:
        raise ConfigError(
            "answer.baseline=true compares a run with "
            "one direct call, and mode=single is that call",
            hint="Leave it out, or take another mode.",
        )
    if names := registry.names():
        raise ConfigError(
            "mode=single asks for the answer in one call, without "
            f"tools, and there are tools: {', '.join(names[:8])}",
            hint="Leave the tools out (tools=none), or take another mode.",
        )


def _refuse_too_many_samples(settings: Settings) -> None:
    """Raise ConfigError where the samples of one step need more than the whole configured
    budget, or more calls than the run may make."""
    if settings.mode.kind not in UNJUDGED_MODES:
        return
    needed = settings.execution.cycles_of_samples
    budgets = {"ttl.base": settings.ttl.base, "limits.max_llm_calls": settings.limits.max_llm_calls}
    for key, budget in budgets.items():
        if budget is not None and needed > budget:
            raise ConfigError(
                f"execution.samples={settings.execution.samples} "
                f"execution.select={settings.execution.select} takes {needed} LLM cycles, and "
                f"{key}={budget} is the whole budget in mode={settings.mode.kind}",
                hint=f"Set {key}={needed}, or ask for fewer samples.",
            )


def refuse_choice_without_checks(shared: Process, of_row: CheckSet | None) -> None:
    """Raise ConfigError where samples are chosen by checks and no program checks them: a rubric
    asks the judge, and only about the chosen answer. `of_row` are the checks of a dataset row."""
    execution = shared.settings.execution
    checks = shared.checks if of_row is None else shared.checks.for_row(of_row)
    if execution.samples > 1 and execution.select == "check" and not checks.checks:
        raise ConfigError(
            "execution.select=check: no check by a program is configured to choose among "
            f"execution.samples={execution.samples}",
            hint="Configure one (convergence.checks.NAME), or set execution.select=vote.",
        )


def hide_secrets(settings: Settings, environ: Mapping[str, str]) -> Callable[[Any], Any]:
    """Return a function that removes from a JSON value the values of variables that the
    configuration names as secret, and those in the queries of addresses."""
    of_addresses = list_addressed_secrets(settings.provider)
    names = secret_names(settings.model_dump(mode="json"), {}) | of_addresses.keys()
    return Scrubber(names, {**environ, **of_addresses}).value if names else lambda result: result


def _load_workflow(settings: Settings, registry: ToolRegistry) -> Workflow | None:
    _refuse_more_than_one_call(settings, registry)
    _refuse_too_many_samples(settings)
    step_tools = settings.execution.step_tools
    if settings.plan_file is None and not step_tools:
        return None
    of_run = tools.build_run_registry(registry, InMemory(), settings=settings.tools)
    # A replay calls no tool, and the tools of a server that is down have unknown names.
    if settings.store.mode != "replay" and not registry.servers_down:
        tools.require_step_tools(step_tools, of_run)
    if settings.plan_file is None:
        return None
    from aeon.plan.workflow.load import load_workflow  # takes time, and few runs have a plan file

    workflow = load_workflow(
        settings.plan_file,
        tool_names={tool.name: tool.input_schema for tool in of_run.list()},
        max_steps=settings.execution.max_steps,
        one_final_step=settings.answer.json_schema is not None,
        unavailable=of_run.unavailable,
    )
    if settings.tools.missing == "fail":
        tools.require_tools(workflow.content.steps, settings.tools, of_run)
    return workflow


def _make_check_maker(job: Job, registry: ToolRegistry) -> CheckMaker:
    settings = job.settings
    configured = settings.convergence.checks
    # Checks may call tools of memory too; without checks its tools need not be imported.
    if configured:
        registry = tools.build_run_registry(registry, InMemory(), settings=settings.tools)
    return CheckMaker(
        configured,
        registry,
        has_judge=settings.mode.kind not in UNJUDGED_MODES or settings.answer.judge,
        is_replay=settings.store.mode == "replay",
        recorded_in=Path(job.origin.working_directory) if job.origin else None,
    )


def close_process(shared: Process) -> None:
    """Close the adapter and the tools of a process."""
    close(shared.adapter)
    shared.registry.close()


def _is_synthetic(job: Job, adapter: Endpoints) -> bool:
    """Check whether no model is called; for a custom adapter that a replay does not load, ask the
    recording."""
    if job.settings.store.mode == "replay" and isinstance(job.settings.provider, CustomProvider):
        return job.origin is not None and job.origin.synthetic
    return isinstance(job.settings.provider, SimulatedProvider) or adapter.synthetic


def process_stack(
    settings: ProviderSettings, environ: Mapping[str, str], own: LLMAdapter | None = None
) -> Endpoints:
    """Return the endpoints of a definite provider; each connects at its first call. `own` is the
    adapter of `provider=custom` that a program passes; the caller closes it. Raises ConfigError."""
    named = name_endpoints(settings)
    made: list[EndpointAdapter] = []
    try:
        for number, (name, endpoint) in enumerate(named, start=1):
            of_first = own if number == 1 else None
            adapter = _build_endpoint_adapter(endpoint, environ, of_first)
            has_next = number < len(named)
            state = _endpoint_state(name, endpoint, has_next=has_next)
            made.append(
                EndpointAdapter(
                    name,
                    adapter,
                    endpoint.retry,
                    price_list(endpoint),
                    state,
                    has_next,
                    endpoint.seconds_of_call,
                )
            )
    except BaseException:
        Endpoints(made).close()
        raise
    endpoints = Endpoints(made)
    if isinstance(settings, ChainSettings | CustomProvider):
        endpoints.patience = Patience(settings.patience_seconds)
    return endpoints


def _endpoint_state(name: str, settings: AnyEndpoint, *, has_next: bool) -> EndpointState | None:
    # Limits for single requests do not apply to requests sent in batches.
    if not isinstance(settings, EndpointSettings | CustomProvider) or getattr(
        settings, "batch", False
    ):
        return None
    rates = (settings.requests_per_minute, settings.tokens_per_minute)
    longest = settings.retry.max_wait_seconds
    limiter = Limiter(settings.max_concurrency, *rates, longest_pause=longest)
    return EndpointState(name, limiter, settings.breaker, settings.retry, has_next=has_next)


def _build_endpoint_adapter(
    settings: AnyEndpoint, environ: Mapping[str, str], own: LLMAdapter | None
) -> LLMAdapter:
    if isinstance(settings, CustomProvider):
        return CustomAdapter(own, settings, owned=False) if own else load_adapter(settings)
    if isinstance(settings, SimulatedProvider):
        from aeon.simulated.adapter import SimulatedAdapter

        return SimulatedAdapter(settings)
    if isinstance(settings, LocalProvider):
        from aeon.llm.local.adapter import LocalAdapter

        return LocalAdapter(settings)
    # A client that was given answers for the first endpoint.
    if own is not None:
        return own
    check_endpoint(settings, environ)
    client = None
    if settings.client is not None:
        from aeon.llm.openai.own_client import load_client

        client = load_client(settings.client)
    return _build_openai_adapter(settings, environ, client)


def _build_openai_adapter(
    settings: EndpointSettings, environ: Mapping[str, str], client: OpenAI | None
) -> LLMAdapter:
    headers = {
        header: environ[variable].strip() for header, variable in settings.extra_headers_env.items()
    }
    settings = settings.model_copy(update={"base_url": settings.address(environ)})
    key = environ.get(settings.api_key_env, "").strip() or None
    if client is not None:  # it has its own
        key = None
        headers = {}
    if settings.batch:
        from aeon.llm.openai.batches.adapter import BatchAdapter

        return BatchAdapter(settings, key, headers, client)
    from aeon.llm.openai.adapter import OpenAIAdapter

    return OpenAIAdapter(settings, key, headers, client)
