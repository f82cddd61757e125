"""One job: a composed configuration to a run, its answer on standard output, and an exit status."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from aeon.cli.interrupt import interruptible
from aeon.cli.output import say, summary, write_answer
from aeon.cli.status import INTERRUPTED, guarded, write_status
from aeon.config import Settings, environment, read_inputs, read_task, resolve_provider, settings_from
from aeon.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prepared:
    """A job that has been checked: its settings with the provider settled, and the texts it works on."""

    settings: Settings
    task: str
    inputs: dict[str, str]


def checked(cfg: DictConfig) -> Prepared:
    """Check a composed configuration as far as that is possible without calling a model. Raises ConfigError."""
    settings = settings_from(cfg)
    task = read_task(settings)
    inputs = read_inputs(settings)
    if settings.interaction.kind == "ask" and not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError("interaction=ask: there is no terminal to ask at", hint="Use interaction=none.")
    return Prepared(resolve_provider(settings, environment()), task, inputs)


def job(cfg: DictConfig) -> int:
    """What Hydra calls, perhaps in another process: run, and return the exit status.

    It never raises, so that every job of a multirun gets its turn; but an interrupted job ends the multirun.
    """
    hydra = HydraConfig.get()
    directory = Path(hydra.runtime.output_dir)
    status = guarded(lambda: execute(checked(cfg), directory))
    if hydra.mode == RunMode.MULTIRUN:
        write_status(directory, status)
        if status == INTERRUPTED:
            raise KeyboardInterrupt
    return status


def execute(prepared: Prepared, directory: Path) -> int:
    """Run a checked job with its artefacts in `directory`; prints the answer, and on standard error how it ended."""
    from aeon.api import Aeon
    from aeon.cli.progress import progress_for

    settings = prepared.settings
    with interruptible() as control, progress_for(settings.progress, sys.stderr) as progress:
        result = Aeon(settings).run(
            prepared.task, inputs=prepared.inputs, directory=directory, observers=[progress], control=control
        )
    write_answer(result, settings.output)
    say(summary(result, directory))
    return result.exit_status
