"""The composed configuration as frozen, validated settings.

`compose` is for Python, `settings_from` for a configuration that Hydra has composed already. Both report everything
that is wrong in one `ConfigError`: an unknown key with the nearest known one, a bad value with its path and what is
allowed. `environment` alone looks at the environment; `aeon.config.provider` settles which provider is used.
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
from pydantic import BeforeValidator, Field
from pydantic import ValidationError as PydanticError

from aeon.adaptive.table import complete_table, packaged_table
from aeon.config import files as config_files
from aeon.config import origin
from aeon.config import recompose as config_origin
from aeon.config.compose import compose as config_compose
from aeon.config.compose import problems as config_problems
from aeon.config.compose.literal import quote_overrides
from aeon.config.origin import Composition, Origin
from aeon.domain.assessment import ConvergenceSettings
from aeon.domain.errors import ConfigError
from aeon.domain.profile import TTLTable
from aeon.domain.values import FromRecording, Taken, Unneeded, Value
from aeon.kernel.settings import AnswerSettings, ExecutionSettings, ModeSettings
from aeon.llm.roles import ReasoningSettings, RoleSettings
from aeon.llm.settings import AutoProvider, PromptSettings, ProviderSettings, SchemaSettings
from aeon.llm.stack.limits import LimitSettings
from aeon.memory.settings import MemorySettings
from aeon.observability.settings import ObservabilitySettings
from aeon.plan.settings import RefinementSettings
from aeon.store.settings import StoreSettings
from aeon.tools.settings import ToolSettings

_NOT_ENGINE = frozenset(
    {"task", "task_file", "plan_file", "inputs", "input_files", "resume", "store", "output", "progress"}
)


class ProgressSettings(Value):
    """`progress`: what is shown on standard error while a run goes on.

    `auto` is `live` on a terminal, `plain` elsewhere; `plain` is a line for each thing that happens.
    """

    kind: Literal["auto", "live", "plain", "none"] = "auto"


class InteractionSettings(Value):
    """`interaction`: whether follow-up questions are put to a person.

    `none` goes on with the assumption made, `ask` puts them to the person at the terminal.
    """

    kind: Literal["none", "ask"] = "none"


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
    roles: Taken[RoleSettings] = RoleSettings.model_construct()
    reasoning: Taken[ReasoningSettings] = ReasoningSettings.model_construct()
    mode: Taken[ModeSettings] = ModeSettings.model_construct()
    convergence: Taken[ConvergenceSettings] = Field(default_factory=ConvergenceSettings)
    ttl: Annotated[Taken[TTLTable], BeforeValidator(complete_table)] = Field(default_factory=packaged_table)
    limits: Taken[LimitSettings] = LimitSettings.model_construct()
    refinement: Taken[RefinementSettings] = RefinementSettings.model_construct()
    execution: Taken[ExecutionSettings] = ExecutionSettings.model_construct()
    answer: Taken[AnswerSettings] = AnswerSettings.model_construct()
    prompts: Annotated[PromptSettings, _ANY_OPTION] = PromptSettings.model_construct()
    schemas: Annotated[SchemaSettings, _ANY_OPTION] = SchemaSettings.model_construct()
    tools: Annotated[ToolSettings, FromRecording("held", frozenset({"none", "builtin"}))] = (
        ToolSettings.model_construct()
    )
    memory: Annotated[MemorySettings, FromRecording("held", frozenset({"in_memory"}))] = (
        MemorySettings.model_construct()
    )
    store: Unneeded[StoreSettings] = StoreSettings.model_construct()
    observability: Unneeded[ObservabilitySettings] = ObservabilitySettings.model_construct()
    progress: Unneeded[ProgressSettings] = ProgressSettings.model_construct()
    interaction: Taken[InteractionSettings] = InteractionSettings.model_construct()


def compose(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Settings:
    """Compose the packaged configuration with Hydra overrides and validate it whole.

    Free text is literal, as on the command line: `task=...`, `inputs.NAME=...`, `convergence.criteria.NAME=...`.
    `config_dir` is a folder of one's own configuration files, looked in first. Hydra's global state is left as it was
    found. Raises ConfigError.
    """
    return compose_settings(composition(overrides, config_dir))


def composition(overrides: Sequence[str] = (), config_dir: str | Path | None = None) -> Composition:
    """What `compose` composes: the overrides, after those of the run that `resume=DIR` among them names.

    Raises ConfigError.
    """
    folder = Path(config_dir).expanduser().resolve() if config_dir else None
    return config_origin.composition(Composition(overrides=tuple(quote_overrides(overrides)), config_dir=folder))


def compose_settings(of: Composition) -> Settings:
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
            load_dotenv(stream=StringIO(config_files.read_dotenv(path)), override=False)
        except ValueError as error:
            raise ConfigError(f"{path}: {error}") from None
    return os.environ


def read_task(settings: Settings) -> str | None:
    """The task's text, byte for byte, from `task` or `task_file`, else from the run that is resumed.

    None when a `plan_file` is to say it. Raises TaskTextError when it is empty or not valid UTF-8, ConfigError when
    neither or both are given or the file cannot be read.
    """
    if settings.task is None and settings.task_file is None:
        recorded = find_recorded_origin(settings)
        if recorded is not None and not _says_task_anew(settings.plan_file, recorded):
            return recorded.task
        if settings.plan_file is not None:
            return None
        if settings.store.mode == "replay":
            from aeon.store.opening import check_store  # takes time, and only a replay needs it

            check_store(settings.store)  # the task was to come from a recording, which is not there
    return config_files.read_task_text(settings.task, settings.task_file)


def read_inputs(settings: Settings) -> dict[str, str]:
    """The texts of `inputs` and `input_files`, by name, beside those of the run that is resumed.

    Raises ConfigError for an unreadable file or a name given in both, TaskTextError for text that is not valid UTF-8.
    """
    recorded = find_recorded_origin(settings)
    given = config_files.read_input_texts(settings.inputs, settings.input_files)
    return {**recorded.inputs, **given} if recorded else given


def find_recorded_origin(settings: Settings) -> Origin | None:
    """Where the run comes from whose answers are used again, if there is one. Raises ConfigError."""
    if settings.resume:
        return origin.read(settings.resume)
    store = settings.store
    return config_origin.read_recorded_origin(store.path) if store.mode == "replay" and store.path else None


def _says_task_anew(plan_file: Path | None, recorded: Origin) -> bool:
    """Whether the task stood in a plan file, and it is another plan file now."""
    before = recorded.files.get("plan_file")
    same = before is not None and plan_file is not None and plan_file.expanduser().absolute() == Path(before.path)
    return recorded.task_in_plan and plan_file is not None and not same


def named_file(settings: Settings, key: str) -> Path | None:
    """The file that a key of the settings names, absolute; None when it names none."""
    value: Any = settings
    for name in ("answer.schema_file" if key == "answer.schema" else key).split("."):
        value = getattr(value, name, None)
    return value.expanduser().absolute() if isinstance(value, Path) else None


def configuration_hash(settings: Settings) -> str:
    """SHA-256, hex, of what configures the engine: canonical JSON without task, inputs, paths and what is but shown."""
    engine = {name: value for name, value in settings.model_dump().items() if name not in _NOT_ENGINE}
    text = json.dumps(_without_paths(engine), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
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
        read = config_files.read_criteria(convergence.criteria_file)
        convergence = convergence.model_copy(update={"criteria": {**read, **convergence.criteria}})
    if answer.schema_file is not None:
        answer = answer.model_copy(update={"json_schema": config_files.read_json_schema(answer.schema_file)})
    memory = config_files.read_entries(settings.memory)
    return settings.model_copy(update={"convergence": convergence, "answer": answer, "memory": memory})


def _without_paths(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_paths(item) for name, item in value.items() if not isinstance(item, Path | None)}
    if isinstance(value, list | tuple):
        return [_without_paths(item) for item in value]
    return value
