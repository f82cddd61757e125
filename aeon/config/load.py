"""From a composed configuration to settings, task and inputs.

`compose` is for Python, `settings_from` for a configuration that Hydra has composed already. Both report everything
that is wrong in one `ConfigError`: an unknown key with the nearest known one, a bad value with its path and what is
allowed. `environment` alone looks at the environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from dotenv import load_dotenv
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError as PydanticError

from aeon.config import files as config_files
from aeon.config import origin, recompose
from aeon.config.compose import compose as config_compose
from aeon.config.compose.literal import quote_overrides
from aeon.config.compose.problems import settings_error
from aeon.config.origin import Composition, Origin
from aeon.config.settings import Settings
from aeon.domain.errors import ConfigError


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
    return recompose.composition(Composition(overrides=tuple(quote_overrides(overrides)), config_dir=folder))


def compose_settings(of: Composition) -> Settings:
    """The settings that a composition gives. Raises ConfigError."""
    return settings_from(config_compose.compose(of.overrides, of.config_dir, config_name=of.config_name))


def settings_from(cfg: DictConfig) -> Settings:
    """Validate a composed configuration whole; the files it names for criteria and the answer's schema are read.

    Raises ConfigError with every problem found, SchemaFileError when the answer's schema file is all that is wrong.
    """
    try:
        # Each by itself: Hydra's own part refers to a job that may not run.
        values = {str(name): _plain(cfg[name]) for name in cfg if name != "hydra"}
    except OmegaConfBaseException as error:
        reason = str(error.msg or error).splitlines()[0]
        raise ConfigError(f"{error.full_key or 'configuration'}: {reason}") from None
    try:
        settings = Settings.model_validate(values)
    except PydanticError as error:
        raise settings_error(error, Settings, values) from None
    convergence, answer = settings.convergence, settings.answer
    if convergence.criteria_file is not None:
        read = config_files.read_criteria(convergence.criteria_file)
        convergence = convergence.model_copy(update={"criteria": {**read, **convergence.criteria}})
    if answer.schema_file is not None:
        answer = answer.model_copy(update={"json_schema": config_files.read_json_schema(answer.schema_file)})
    memory = config_files.read_entries(settings.memory)
    return settings.model_copy(update={"convergence": convergence, "answer": answer, "memory": memory})


def _plain(value: Any) -> Any:
    return OmegaConf.to_container(value, resolve=True, throw_on_missing=True) if OmegaConf.is_config(value) else value


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


def _says_task_anew(plan_file: Path | None, recorded: Origin) -> bool:
    """Whether the task stood in a plan file, and it is another plan file now."""
    if plan_file is None or not recorded.task_in_plan:
        return False
    before = recorded.files.get("plan_file")
    return before is None or plan_file.expanduser().absolute() != Path(before.path)


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
    return recompose.read_recorded_origin(store.path) if store.mode == "replay" and store.path else None
