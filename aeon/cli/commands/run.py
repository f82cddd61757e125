"""A run of the task, or several in a multirun; the configuration is checked before the engine is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.types import RunMode

from aeon.app.directory import identify_start
from aeon.cli.job.arguments import parse
from aeon.cli.job.prepare import composition_of, prepare_job
from aeon.config.compose import compose as config_compose


def main(arguments: Sequence[str]) -> int:
    """Run the task; the exit status.

    Raises ConfigError for everything that is wrong with the configuration, before any model is called and before any
    directory is made.
    """
    given = parse(arguments, several=True)
    identify_start()
    plain = config_compose.without_sweeps(given.overrides)
    folder, name = given.config_dir, given.config_name
    whole, added = config_compose.compose_adding(plain, folder, config_name=name, with_hydra=True)
    if whole.hydra.mode == RunMode.MULTIRUN:
        from aeon.cli.job.job import run_several  # slow to load, and not for a configuration error

        return run_several(given, whole, added)
    if len(plain) < len(given.overrides):
        whole = config_compose.compose(given.overrides, folder, config_name=name, with_hydra=True)
    job = prepare_job(whole, composition_of(whole.hydra))
    from aeon.cli.job.job import run_one  # likewise

    return run_one(job, whole, name)
