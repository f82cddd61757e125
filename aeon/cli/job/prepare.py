"""Prepares settings for a run, and checks them as far as possible without calling a model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from aeon.app.job import resolve_job
from aeon.cli.job.arguments import read_composition, refuse_keys
from aeon.config.compose.literal import Composition
from aeon.config.environment import environment
from aeon.domain.errors import ConfigError

if TYPE_CHECKING:
    from argparse import Namespace

    from aeon.app.aeon import Aeon
    from aeon.app.process import OpenEndpoints
    from aeon.app.run import Run
    from aeon.config.settings import Settings


def read_settings(given: Namespace, *refused: str) -> tuple[Composition, Settings]:
    """Return the composition and the settings of a command that carries out many runs, and that
    does not read the keys of the `refused` groups. Raises ConfigError."""
    from aeon.config.load import compose_settings

    refuse_keys(given.overrides, *refused)
    composition = read_composition(given)
    settings = compose_settings(composition)
    keep_private(settings)
    return composition, settings


def prepare_job(
    settings: Settings,
    composition: Composition | None = None,
    open_endpoints: OpenEndpoints | None = None,
) -> tuple[Aeon, Run]:
    """Check settings, their texts, provider, prompts and schemas; the engine is
    loaded only for settings, task and inputs that can be used. `composition` is recorded in
    `run.json`. Raises ConfigError."""
    keep_private(settings)
    environ = environment(settings)
    job = resolve_job(settings, environ, composition, needs_task=True)
    # The engine is slow to load, and the mistakes above do not need it.
    from aeon.app.aeon import Aeon
    from aeon.cli.terminal.questions import at_terminal
    from aeon.store.opening import check_own_store

    if settings.interaction.kind == "ask" and settings.store.mode != "replay" and not at_terminal():
        raise ConfigError(
            "interaction=ask: there is no terminal to ask at",
            hint="Use interaction=none, or interaction=defer to answer later.",
        )
    check_own_store(settings.store)
    aeon = Aeon(job, environ, open_endpoints=open_endpoints)
    return aeon, aeon.prepare_run()


def keep_private(settings: Settings) -> None:
    """In `env=prod`, let only the owner read files that this program writes from now on."""
    if settings.env == "prod":
        os.umask(0o077)
