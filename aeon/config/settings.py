"""The composed configuration as frozen, validated settings.

`compose` is for Python, `settings_from` for a configuration that Hydra has composed already. Both report everything
that is wrong in one `ConfigError`: an unknown key with the nearest known one, a bad value with its path and what is
allowed. `environment` and `resolve_provider` alone look at the environment.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import load_dotenv
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import Field
from pydantic import ValidationError as PydanticError

from aeon.config import files as config_files
from aeon.config.compose import compose as config_compose
from aeon.config.compose import origin
from aeon.config.compose import problems as config_problems
from aeon.config.compose import recompose as config_origin
from aeon.config.compose.literal import literal_overrides
from aeon.config.compose.origin import Composition, Origin, ProviderOrigin
from aeon.config.endpoints import check_chain, own_adapter, reached
from aeon.config.terminal import InteractionSettings, ProgressSettings
from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.errors import ConfigError
from aeon.domain.profile import TTLTable
from aeon.domain.values import FromRecording, Taken, Unneeded, Value
from aeon.kernel.settings import AnswerSettings, ExecutionSettings, ModeSettings
from aeon.llm.prices import check_prices, price_book
from aeon.llm.settings import (
    SIMULATED_RETRY,
    AutoProvider,
    CustomProvider,
    LocalProvider,
    OpenAIProvider,
    PromptSettings,
    ProviderSettings,
    ReasoningSettings,
    RetrySettings,
    RoleSettings,
    SchemaSettings,
    SimulatedProvider,
)
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.settings import MemorySettings
from aeon.observability.settings import ObservabilitySettings
from aeon.plan.settings import RefinementSettings
from aeon.store.settings import StoreSettings
from aeon.tools.settings import ToolSettings

_NOT_ENGINE = frozenset(
    {"task", "task_file", "plan_file", "inputs", "input_files", "resume", "store", "output", "progress"}
)


_ANY_OPTION = FromRecording("held", None)
"""Any option of the group may be chosen; each of its keys says for itself whether it is taken."""


class Settings(Value):
    """Everything a run is configured by; one field per configuration group, each owned by its room.

    `task` or `task_file` is the task, `inputs` and `input_files` the material to work on, by name; `plan_file` a plan
    that a person wrote, run instead of a generated one. `output` is what goes to standard output: the answer, or the
    whole result as JSON. `resume` is the directory of a run whose answers are used again, its task and inputs too
    where none are given.
    """

    task: str | None = None
    task_file: Path | None = None
    plan_file: Path | None = None
    inputs: dict[str, str] = Field(default_factory=dict)
    input_files: dict[str, Path] = Field(default_factory=dict)
    resume: Path | None = None
    output: Unneeded[Literal["answer", "json"]] = "answer"
    env: Taken[str] = "dev"
    provider: Annotated[ProviderSettings, _ANY_OPTION] = Field(default_factory=AutoProvider)
    roles: Taken[RoleSettings] = RoleSettings()
    reasoning: Taken[ReasoningSettings] = ReasoningSettings()
    mode: Taken[ModeSettings] = ModeSettings()
    convergence: Taken[ConvergenceSettings] = Field(default_factory=ConvergenceSettings)
    ttl: Taken[TTLTable] = Field(default_factory=TTLTable)
    limits: Taken[LimitSettings] = LimitSettings()
    refinement: Taken[RefinementSettings] = RefinementSettings()
    execution: Taken[ExecutionSettings] = ExecutionSettings()
    answer: Taken[AnswerSettings] = AnswerSettings()
    prompts: Annotated[PromptSettings, _ANY_OPTION] = PromptSettings()
    schemas: Annotated[SchemaSettings, _ANY_OPTION] = SchemaSettings()
    tools: Annotated[ToolSettings, FromRecording("held", frozenset({"none", "builtin"}))] = ToolSettings()
    memory: Annotated[MemorySettings, FromRecording("held", frozenset({"in_memory"}))] = MemorySettings()
    store: Unneeded[StoreSettings] = StoreSettings()
    observability: Unneeded[ObservabilitySettings] = ObservabilitySettings()
    progress: Unneeded[ProgressSettings] = ProgressSettings()
    interaction: Taken[InteractionSettings] = InteractionSettings()


def compose(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Settings:
    """Compose the packaged configuration with Hydra overrides and validate it whole.

    Free text is literal, as on the command line: `task=...`, `inputs.NAME=...`, `convergence.criteria.NAME=...`.
    `config_dir` is a folder of one's own configuration files, looked in first. Hydra's global state is left as it was
    found. Raises ConfigError.
    """
    return composed(composition(overrides, config_dir))


def composition(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Composition:
    """What `compose` composes: the overrides, after those of the run that `resume=DIR` among them names.

    Raises ConfigError.
    """
    folder = Path(config_dir).expanduser().resolve() if config_dir else None
    return config_origin.composition(Composition(overrides=tuple(literal_overrides(overrides)), config_dir=folder))


def composed(of: Composition) -> Settings:
    """The settings that a composition gives. Raises ConfigError."""
    return settings_from(config_compose.compose(of.overrides, of.config_dir, config_name=of.config_name))


def settings_from(cfg: DictConfig) -> Settings:
    """Validate a composed configuration whole; the files it names for criteria and the answer's schema are read.

    Raises ConfigError with every problem found, SchemaFileError when the answer's schema file is all that is wrong.
    """
    values = _plain(cfg)
    try:
        settings = Settings.model_validate(values)
    except PydanticError as error:
        raise config_problems.settings_error(error, Settings, values) from None
    if wrong := list(config_problems.booleans_as_numbers(values, settings.model_dump(by_alias=True))):
        raise config_problems.problems_error(wrong)
    return _with_files(settings)


def environment(directory: Path | None = None) -> Mapping[str, str]:
    """The process environment, after a `.env` file in `directory` (the current one) has filled in what is not set.

    Raises ConfigError when that file cannot be read.
    """
    path = (directory or Path.cwd()) / ".env"
    if path.is_file() or path.is_fifo():
        try:
            load_dotenv(stream=StringIO(config_files.dotenv_text(path)), override=False)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
    return os.environ


def resolve_provider(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """Settle which provider is used, once, before anything runs.

    `auto` becomes openai when OPENAI_API_KEY, OPENAI_BASE_URL or `provider.base_url` is set, else simulated; or what it
    was in the run whose answers are used again. Raises ConfigError when `env=prod` would not call a model, when an
    endpoint lacks its model, address or key, or when `limits.max_cost` is set and a model has no price.
    """
    provider = settings.provider
    if settings.env == "prod" and isinstance(provider, AutoProvider | SimulatedProvider):
        raise ConfigError(
            f"provider={provider.kind}: env=prod calls a real model and never falls back to the simulated provider",
            hint="Use provider=openai or another that calls a model, or env=dev for trying things out.",
        )
    if isinstance(provider, AutoProvider | CustomProvider):
        before = recorded_origin(settings)
        provider = _settled(provider, environ, before.provider if before else None)
        settings = settings.model_copy(update={"provider": provider})
    if isinstance(provider, OpenAIProvider):
        if settings.store.mode != "replay":  # which calls nothing
            check_chain(provider, environ, without_model=_without_model(settings))
        settings = settings.model_copy(update={"provider": reached(provider, environ)})
    if isinstance(provider, LocalProvider):
        _require_one_model(settings, provider.model)
    check_prices(price_book(settings.provider), settings.limits.max_cost, _overriding(settings).values())
    return settings


def _without_model(settings: Settings) -> str:
    """How Aeon is tried without a model; what env=prod refuses is not advised."""
    return "env=dev provider=simulated" if settings.env == "prod" else "provider=simulated"


def read_task(settings: Settings) -> str | None:
    """The task's text, byte for byte, from `task` or `task_file`, else from the run that is resumed.

    None when a `plan_file` is to say it. Raises TaskTextError when it is empty or not valid UTF-8, ConfigError when
    neither or both are given or the file cannot be read.
    """
    if settings.task is None and settings.task_file is None:
        recorded = recorded_origin(settings)
        if recorded is not None and not _says_task_anew(settings.plan_file, recorded):
            return recorded.task
        if settings.plan_file is not None:
            return None
        if settings.store.mode == "replay":
            from aeon.store.session.source import check_store  # takes time, and only a replay needs it

            check_store(settings.store)  # the task was to come from a recording, which is not there
    return config_files.task_text(settings.task, settings.task_file)


def read_inputs(settings: Settings) -> dict[str, str]:
    """The texts of `inputs` and `input_files`, by name, beside those of the run that is resumed.

    Raises ConfigError for an unreadable file or a name given in both, TaskTextError for text that is not valid UTF-8.
    """
    recorded = recorded_origin(settings)
    given = config_files.input_texts(settings.inputs, settings.input_files)
    return {**recorded.inputs, **given} if recorded else given


def recorded_origin(settings: Settings) -> Origin | None:
    """Where the run comes from whose answers are used again, if there is one. Raises ConfigError."""
    if settings.resume:
        return origin.read(settings.resume)
    store = settings.store
    return config_origin.replayed(store.path) if store.mode == "replay" and store.path else None


def _says_task_anew(plan_file: Path | None, recorded: Origin) -> bool:
    """Whether the task stood in a plan file, and it is another plan file now."""
    before = recorded.files.get("plan_file")
    same = before is not None and plan_file is not None and plan_file.expanduser().absolute() == Path(before.path)
    return recorded.task_in_plan and plan_file is not None and not same


def configuration_hash(settings: Settings) -> str:
    """SHA-256, hex, of what configures the engine: canonical JSON without task, inputs, paths and what is but shown."""
    kept = {name: value for name, value in settings.model_dump().items() if name not in _NOT_ENGINE}
    text = json.dumps(_without_paths(kept), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _plain(cfg: DictConfig) -> dict[str, Any]:
    own = OmegaConf.masked_copy(cfg, [str(name) for name in cfg if name != "hydra"])
    try:
        values = OmegaConf.to_container(own, resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        reason = str(error.msg or error).splitlines()[0]
        raise ConfigError(f"{error.full_key or 'configuration'}: {reason}") from None
    assert isinstance(values, dict)
    return {str(name): value for name, value in values.items()}


def _with_files(settings: Settings) -> Settings:
    convergence, answer = settings.convergence, settings.answer
    if convergence.criteria_file is not None:
        read = config_files.criteria(convergence.criteria_file)
        convergence = convergence.model_copy(update={"criteria": {**read, **convergence.criteria}})
    if answer.schema_file is not None:
        answer = answer.model_copy(update={"json_schema": config_files.json_schema(answer.schema_file)})
    memory = config_files.with_entries(settings.memory)
    return settings.model_copy(update={"convergence": convergence, "answer": answer, "memory": memory})


def _settled(
    auto: AutoProvider | CustomProvider, environ: Mapping[str, str], recorded: ProviderOrigin | None
) -> OpenAIProvider | SimulatedProvider | CustomProvider:
    if isinstance(auto, CustomProvider) or (recorded is not None and recorded.kind == "custom"):
        return own_adapter(auto, recorded)
    address = auto.address(environ)
    # No server gets the key of another.
    same_key = recorded is not None and recorded.api_key_env in (None, auto.api_key_env)
    if recorded is not None and recorded.base_url and same_key and not address:
        auto = auto.model_copy(update={"base_url": recorded.base_url})
        address = recorded.base_url
    has_model = recorded.kind != "simulated" if recorded else bool(address or environ.get("OPENAI_API_KEY"))
    if has_model:
        values = {name: getattr(auto, name) for name in OpenAIProvider.model_fields if name != "kind"}
        # A server of one's own may need no key; OpenAI's does.
        needs_key = auto.require_key and not address
        return OpenAIProvider(**{**values, "require_key": needs_key})
    shared = set(SimulatedProvider.model_fields) & set(AutoProvider.model_fields) - {"kind", "model", "retry"}
    values = {name: getattr(auto, name) for name in sorted(shared)}
    return SimulatedProvider(**values, retry=_short_waits(auto.retry))


def _short_waits(retry: RetrySettings) -> RetrySettings:
    """What a person has set, and else the waits of a provider that nobody has to wait for."""
    usual = RetrySettings()
    own = {name: getattr(retry, name) for name in type(retry).model_fields}
    return SIMULATED_RETRY.model_copy(update={name: v for name, v in own.items() if v != getattr(usual, name)})


def _require_one_model(settings: Settings, model: str) -> None:
    """ConfigError when a role or a reasoning mode names another model than the one that is in memory."""
    for key, named in _overriding(settings).items():
        if named != model:
            raise ConfigError(
                f"{key}={named}: provider=local has one model, {model}",
                hint=f"Set {key} to null, or use a server that has both models.",
            )


def _overriding(settings: Settings) -> dict[str, str]:
    """The models that roles and reasoning modes name in place of the provider's own, by configuration key."""
    groups = {"roles": settings.roles, "reasoning": settings.reasoning}
    named = {
        f"{g}.{name}.model": getattr(group, name).model
        for g, group in groups.items()
        for name in type(group).model_fields
    }
    return {key: model for key, model in named.items() if model is not None}


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_paths(item) for name, item in value.items() if not isinstance(item, Path | None)}
    if isinstance(value, list | tuple):
        return [_without_paths(item) for item in value]
    return value
