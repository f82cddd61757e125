"""A composed configuration made ready to run, checked as far as that is possible without calling a
model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.conf import HydraConf
from omegaconf import DictConfig, OmegaConf

from aeon.app.job import resolve_job
from aeon.config.compose.hydra_private import packaged_config_dir
from aeon.config.compose.literal import Composition
from aeon.config.environment import environment
from aeon.config.load import settings_from
from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    from aeon.app.aeon import Aeon
    from aeon.app.process import OpenEndpoints
    from aeon.app.run import Run
    from aeon.config.settings import Settings


def prepare_job(
    cfg: DictConfig,
    composition: Composition | None = None,
    open_endpoints: OpenEndpoints | None = None,
) -> tuple[Aeon, Run]:
    """Check a composed configuration, its texts, provider, prompts and schemas; the engine is
    loaded only for settings, task and inputs that can be used. `composition` is recorded in
    `run.json`. Raises ConfigError."""
    settings = settings_from(cfg)
    keep_private(settings)
    environ = environment(settings)
    job = resolve_job(settings, environ, composition, needs_task=True)
    from aeon.app.aeon import Aeon
    from aeon.cli.terminal.questions import at_terminal
    from aeon.store.opening import check_own_store

    if settings.interaction.kind == "ask" and settings.store.mode != "replay" and not at_terminal():
        raise ConfigError(
            "interaction=ask: there is no terminal to ask at", hint="Use interaction=none."
        )
    check_own_store(settings.store)
    aeon = Aeon(job, environ, open_endpoints=open_endpoints)
    return aeon, aeon.prepared_run()


def keep_private(settings: Settings) -> None:
    """In `env=prod`, let what this program writes from now on be its owner's alone."""
    if settings.env == "prod":
        os.umask(0o077)


def composition_of(hydra: DictConfig | HydraConf) -> Composition:
    """The overrides and files that a job was composed of, as Hydra's part of its configuration
    records them."""
    main = next(
        (source.path for source in hydra.runtime.config_sources if source.provider == "main"), None
    )
    own = Path(main) if main and Path(main) != packaged_config_dir() else None
    # As they were typed, interpolations unresolved.
    overrides: Any = OmegaConf.to_container(hydra.overrides, resolve=False)
    searched = [text for text in overrides["hydra"] if text.startswith("hydra.searchpath=")]
    name = str(hydra.job.config_name or Composition().config_name)
    return Composition(overrides=(*searched, *overrides["task"]), config_dir=own, config_name=name)
