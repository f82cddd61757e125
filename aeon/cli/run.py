"""Running the task, or several in a multirun: everything is checked first, then Hydra starts the jobs."""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hydra._internal.hydra import Hydra
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode, TaskFunction
from hydra.version import setbase
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from aeon import config_compose
from aeon.cli.arguments import Arguments, parse
from aeon.cli.directory import claimed_run, claimed_sweep
from aeon.cli.job import prepared, run_job, sweep_job
from aeon.cli.jobs import read_jobs, summary, swept_keys
from aeon.cli.output import say
from aeon.cli.show import show
from aeon.cli.status import INTERRUPTED, guarded, read_statuses, worst
from aeon.config_literal import quoted
from aeon.config_problems import composition_error
from aeon.writing import unwritable

RUN_ID = "AEON_RUN_ID"
_BASIC_SWEEPER = "hydra._internal.core_plugins.basic_sweeper.BasicSweeper"


def main(arguments: Sequence[str]) -> int:
    """Run what the command line asks for, or show what it asks to see; the exit status.

    Raises ConfigError for everything that is wrong with the configuration, before any model is called and before any
    directory is made.
    """
    given = parse(arguments)
    if given.shows:
        return show(given)
    os.environ[RUN_ID] = secrets.token_hex(4)
    plain = config_compose.without_sweeps(given.overrides)
    whole, added = _composed(given, plain, with_hydra=True)
    if given.flags.multirun or whole.hydra.mode == RunMode.MULTIRUN:
        return _multirun(given, whole, added)
    if len(plain) < len(given.overrides):
        whole, added = _composed(given, given.overrides, with_hydra=True)
    return _single(given, whole, added)


def _single(given: Arguments, whole: DictConfig, added: frozenset[str]) -> int:
    job = prepared(whole, whole.hydra)
    directory = claimed_run(whole)

    def run(_: DictConfig) -> int:
        # Hydra prints the overrides, task and all, for a job that raises.
        return guarded(lambda: run_job(job, directory))

    overrides = _overrides(given, added, "hydra.run.dir", directory)
    ended = _start(given, overrides, directory, RunMode.RUN, run)
    return int(ended.return_value)


def _multirun(given: Arguments, whole: DictConfig, added: frozenset[str]) -> int:
    params = dict(whole.hydra.sweeper.get("params") or {})
    planned: list[list[str]] = []
    # Another sweeper draws its values as it goes; each of its jobs checks itself.
    if whole.hydra.sweeper.get("_target_") == _BASIC_SWEEPER:
        planned = config_compose.sweep_jobs(given.overrides, params, given.config_dir)
        for overrides in planned:
            job, more = _composed(given, overrides)
            prepared(job).aeon.close()
            added |= more
    directory = claimed_sweep(whole)
    overrides = _overrides(given, added, "hydra.sweep.dir", directory)
    keys = swept_keys(given.overrides, map(str, params))
    try:
        _start(given, overrides, directory, RunMode.MULTIRUN, partial(sweep_job, keys=keys, process=os.getpid()))
    except KeyboardInterrupt:
        say(f"\n{summary(read_jobs(directory, keys, planned), INTERRUPTED)}")
        raise
    status = worst(read_statuses(directory))
    say(f"\n{summary(read_jobs(directory, keys, planned), status)}")
    return status


def _composed(
    given: Arguments, overrides: Sequence[str], *, with_hydra: bool = False
) -> tuple[DictConfig, frozenset[str]]:
    return config_compose.compose_adding(
        overrides, given.config_dir, config_name=given.config_name, with_hydra=with_hydra
    )


def _overrides(given: Arguments, added: frozenset[str], key: str, directory: Path) -> list[str]:
    """What Hydra is told, so that it composes what has been checked, in the directory that has been claimed."""
    return [*config_compose.adding(given.overrides, added), f"{key}={quoted(str(directory))}"]


def _start(given: Arguments, overrides: Sequence[str], directory: Path, mode: RunMode, task: TaskFunction) -> Any:
    """Hand over to Hydra, as `hydra.main` would, but with its errors raised and what the job returned given back."""
    told = [*overrides, f"hydra.mode={mode.name}"]
    setbase(config_compose.HYDRA_VERSION_BASE)
    try:
        hydra = Hydra.create_main_hydra2("aeon", config_compose.search_path(given.config_dir))
        start = hydra.multirun if mode == RunMode.MULTIRUN else hydra.run
        return start(config_name=given.config_name, task_function=task, overrides=told)
    except (HydraException, OmegaConfBaseException) as error:
        raise composition_error(error) from error
    except OSError as error:
        # Of its own jobs Hydra writes the configuration.
        raise unwritable(Path(error.filename or directory), error) from error
    finally:
        GlobalHydra.instance().clear()
