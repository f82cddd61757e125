"""The configuration as frozen, validated settings; each field declares whether a recording may set
it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, JsonValue

from aeon.adaptive.table import complete_table, load_packaged_table
from aeon.domain.assessment import ConvergenceSettings, EvaluationSettings
from aeon.domain.profile import TTLTable
from aeon.domain.values import FromOthers, JsonObject, OwnObject, StartsCode, Taken, Unneeded, Value
from aeon.execution.settings import AnswerSettings, ExecutionSettings, ModeSettings
from aeon.llm.roles import ReasoningSettings, RoleSettings
from aeon.llm.settings import (
    AutoProvider,
    EndpointSettings,
    PromptSettings,
    ProviderSettings,
    SchemaSettings,
)
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.settings import MemorySettings
from aeon.observability.settings import ObservabilitySettings
from aeon.plan.settings import RefinementSettings
from aeon.store.settings import StoreSettings
from aeon.tools.settings import ToolSettings

_NOT_ENGINE = {
    "task",
    "task_file",
    "plan_file",
    "inputs",
    "input_files",
    "input_as",
    "input_max_bytes",
    "input_max_characters",
    "resume",
    "store",
    "output",
    "progress",
}
"""The keys that no answer depends on, apart from those that are never dumped."""


class ProgressSettings(Value):
    """`progress`: the display while a run is under way. `auto` is `live` on a terminal, `plain`
    (lines) elsewhere; with `stream`, the live picture shows the text of steps as it comes, where
    the provider streams."""

    kind: Literal["auto", "live", "plain", "none"] = "auto"
    stream: bool = False


class InteractionSettings(Value):
    """`interaction`: whether a person is asked: `none` continues with the stated assumptions, `ask`
    asks at the terminal, `defer` ends the run until `aeon answer` has the answers. A deferred
    question is open for `deadline_seconds`; None: forever."""

    kind: Literal["none", "ask", "defer"] = "none"
    deadline_seconds: float | None = Field(default=None, gt=0)


class BatchColumns(Value):
    """`batch.columns`: the columns of a dataset for each part of a row."""

    id: str = "id"
    task: str = "task"
    overrides: str = "overrides"
    target: str = "target"
    metadata: str = "metadata"
    checks: str = "checks"
    inputs: dict[str, str] = Field(default_factory=dict)

    def list_named(self) -> set[str]:
        """Return the columns that the user named."""
        own = {column for part, column in self if part not in ("inputs", column)}
        return own | set(self.inputs.values())


class RaySettings(Value):
    """`batch.ray`: the cluster of `batch.backend=ray`, HOST:PORT or `auto`; None starts one on this
    machine."""

    address: str | None = None
    actors_per_node: int = Field(default=1, ge=1)


class GroupSettings(Value):
    """Settings common to the rows of a batch and the jobs of a sweep: `parallel` run at once, the
    caps apply to all of them together, and `patience_seconds` is how long they wait for a provider
    that is down."""

    parallel: int = Field(ge=1)
    patience_seconds: float = Field(default=600.0, ge=0)
    max_cost: float | None = Field(default=None, gt=0)
    max_llm_calls: int | None = Field(default=None, gt=0)

    @property
    def caps(self) -> LimitSettings:
        """The caps on the total usage."""
        return LimitSettings(
            max_cost=self.max_cost, max_llm_calls=self.max_llm_calls, max_passes=None
        )


class BatchSettings(GroupSettings):
    """`batch`: how `aeon batch` processes a dataset. `confirm_above_cost` is in the currency of the
    prices."""

    parallel: int = Field(default=16, ge=1)
    order: Literal["ended", "dataset"] = "ended"
    records: Literal["none", "failed", "all"] = "failed"
    columns: BatchColumns = BatchColumns.model_construct()
    changed: Literal["refuse", "again"] = "refuse"
    confirm_above_cost: float | None = Field(default=None, ge=0)
    backend: Literal["local", "ray"] = "local"
    ray: RaySettings = RaySettings.model_construct()


class SweepSettings(GroupSettings):
    """`sweep`: how the jobs of a multirun run in this process. `objective` is the path of a number
    in `result.json`, passed to a sweeper for each job."""

    parallel: int = Field(default=4, ge=1)
    fail_fast: bool = False
    objective: str | None = None
    resume: Path | None = None


class ServingSettings(Value):
    """Settings common to both servers: `parallel` runs are carried out at once, `queue` may
    wait."""

    parallel: int = Field(default=4, ge=1)
    queue: int = Field(default=16, ge=0)


class McpServing(ServingSettings):
    """`mcp`: how `aeon mcp` serves. `plans` is a folder of plan files, `folder` that of the
    runs."""

    plans: Path | None = None
    transport: Literal["stdio", "http"] = "stdio"
    port: int = Field(default=8643, ge=0, le=65_535)
    folder: Path = Path("outputs/mcp")


class ServeSettings(ServingSettings):
    """`serve`: the address of `aeon serve`, its limits, its folder of runs, and the named
    configurations that it serves, each a list of overrides; without any it serves one."""

    host: str = Field(default="127.0.0.1", min_length=1)
    port: int = Field(default=8642, ge=0, le=65535)
    token_env: str = Field(default="AEON_SERVE_TOKEN", min_length=1)
    folder: Path = Path("outputs/serve")
    max_body_bytes: int = Field(default=4_000_000, ge=1)
    models: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class ComponentSettings(Value):
    """`components`: the user's own replacements for parts of the engine, with the published
    interfaces."""

    planner: StartsCode[OwnObject | None] = None
    validator: StartsCode[OwnObject | None] = None
    convergence: StartsCode[OwnObject | None] = None
    adaptive_depth: StartsCode[OwnObject | None] = None
    supervisor: StartsCode[OwnObject | None] = None
    memory: StartsCode[OwnObject | None] = None

    def by_name(self) -> dict[str, OwnObject]:
        """Return the replaced components by name."""
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: own for name, own in values.items() if own is not None}

    def describe(self) -> dict[str, JsonValue]:
        """Return the replaced components as JSON values."""
        return self.model_dump(mode="json", exclude_none=True)


_ANY_OPTION = FromOthers("held", None)  # each key has its own mark


class Settings(Value):
    """The whole configuration of a run; one field per configuration group. docs/configuration.md
    explains the keys."""

    task: str | None = None
    task_file: Path | None = None
    plan_file: Path | None = None
    inputs: dict[str, str] = Field(default_factory=dict)
    input_files: dict[str, Path] = Field(default_factory=dict)
    input_as: dict[str, Literal["text"]] = Field(default_factory=dict)
    input_max_bytes: Unneeded[int] = Field(default=20_000_000, ge=1)
    input_max_characters: Unneeded[int] = Field(default=200_000, ge=1)
    resume: Path | None = None
    trust: Unneeded[bool | str] = Field(default=False, exclude=True)
    output: Unneeded[Literal["answer", "json"]] = "answer"
    env: Taken[str] = "dev"
    provider: Annotated[ProviderSettings, _ANY_OPTION] = Field(default_factory=AutoProvider)
    roles: Taken[RoleSettings] = RoleSettings.model_construct()
    reasoning: Taken[ReasoningSettings] = ReasoningSettings.model_construct()
    mode: Taken[ModeSettings] = ModeSettings.model_construct()
    convergence: Taken[ConvergenceSettings] = Field(default_factory=ConvergenceSettings)
    evaluation: Taken[EvaluationSettings] = EvaluationSettings.model_construct()
    ttl: Annotated[Taken[TTLTable], BeforeValidator(complete_table)] = Field(
        default_factory=load_packaged_table
    )
    limits: Taken[LimitSettings] = LimitSettings.model_construct()
    refinement: Taken[RefinementSettings] = RefinementSettings.model_construct()
    execution: Taken[ExecutionSettings] = ExecutionSettings.model_construct()
    answer: Taken[AnswerSettings] = AnswerSettings.model_construct()
    prompts: Annotated[PromptSettings, _ANY_OPTION] = PromptSettings.model_construct()
    schemas: Annotated[SchemaSettings, _ANY_OPTION] = SchemaSettings.model_construct()
    components: ComponentSettings = ComponentSettings.model_construct()
    tools: Annotated[ToolSettings, FromOthers("held", frozenset({"none", "builtin"}))] = (
        ToolSettings.model_construct()
    )
    memory: Annotated[MemorySettings, FromOthers("held", frozenset({"in_memory"}))] = (
        MemorySettings.model_construct()
    )
    store: Unneeded[StoreSettings] = StoreSettings.model_construct()
    observability: Unneeded[ObservabilitySettings] = ObservabilitySettings.model_construct()
    batch: Unneeded[BatchSettings] = Field(default=BatchSettings.model_construct(), exclude=True)
    arms: Unneeded[dict[str, tuple[str, ...]]] = Field(default_factory=dict, exclude=True)
    sweep: Unneeded[SweepSettings] = Field(default=SweepSettings.model_construct(), exclude=True)
    mcp: Unneeded[McpServing] = Field(default=McpServing.model_construct(), exclude=True)
    serve: Unneeded[ServeSettings] = Field(default=ServeSettings.model_construct(), exclude=True)
    progress: Unneeded[ProgressSettings] = ProgressSettings.model_construct()
    interaction: Taken[InteractionSettings] = InteractionSettings.model_construct()

    @property
    def evaluates_whole_answers(self) -> bool:
        """Whether only passes with the complete answer are evaluated, as `mode=auto` does unless
        `evaluation.when` says otherwise."""
        when = self.evaluation.when
        return self.mode.kind == "auto" if when is None else when == "answer_complete"


def find_named_file(settings: Settings, key: str) -> Path | None:
    """Return the file that a key of the settings names, absolute; None when it names none."""
    value: Any = settings
    for name in ("answer.schema_file" if key == "answer.schema" else key).split("."):
        value = getattr(value, name, None)
    return value.expanduser().absolute() if isinstance(value, Path) else None


def configuration_hash(settings: Settings) -> str:
    """Return SHA-256, hex, of the engine's configuration: canonical JSON without task, inputs,
    paths and display settings."""
    return hash_of_json(engine_settings(settings))


def engine_settings(settings: Settings) -> JsonObject:
    """Return the engine's configuration, by group, as JSON values."""
    # Sending requests singly or in batches affects no answer.
    batches: JsonObject = {
        name: True for name in EndpointSettings.model_fields if name.startswith("batch")
    }
    of_provider = {**batches, "fallbacks": {"__all__": batches}}
    engine = settings.model_dump(
        exclude={**dict.fromkeys(_NOT_ENGINE, True), "provider": of_provider}
    )
    return {
        name: _without_paths(part)
        for name, part in engine.items()
        if not isinstance(part, Path | None)
    }


def hash_of_json(value: object) -> str:
    """Return SHA-256, hex, of a value's canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _without_paths(value: object) -> Any:
    if isinstance(value, dict):
        return {
            str(name): _without_paths(item)
            for name, item in value.items()
            if not isinstance(item, Path | None)
        }
    if isinstance(value, list | tuple):
        return [_without_paths(item) for item in value if not isinstance(item, Path)]
    return value
