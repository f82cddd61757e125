"""A run of the task, or several in a multirun: `aeon task=...`, `aeon ask "TASK"`."""

from __future__ import annotations

from argparse import Namespace

from aeon.cli.job.arguments import compose_trusted, read_composition, refuse_keys
from aeon.cli.job.directory import identify_start
from aeon.cli.job.garbage import put_off_collection, resume_collection
from aeon.config.compose import compose as config_compose
from aeon.config.compose.literal import key_of


def run(given: Namespace) -> int:
    """Run the task and return the exit status. Raises ConfigError for every mistake in the
    configuration, before any model is called and before any directory is made."""
    put_off_collection()
    of = read_composition(given, several=True)
    refuse_keys(given.overrides, "batch", "arms", "mcp", "serve")
    if any(key_of(text) == "sweep.resume" for text in of.overrides):
        from aeon.cli.job.sweep_resume import compose_again

        of = compose_trusted(compose_again, of, "true")
    identify_start()
    plain = config_compose.without_sweeps(of.overrides)
    whole = config_compose.compose(of.with_overrides(plain), with_hydra=True)
    # Loading a run's modules is slow, and a configuration error does not need them.
    if whole.is_multirun:
        from aeon.cli.job.sweep import run_several

        resume_collection()
        return run_several(of, whole)
    if len(plain) < len(of.overrides):
        whole = config_compose.compose(of, with_hydra=True)
    from aeon.cli.job.prepare import prepare_job
    from aeon.config.load import settings_from

    aeon, prepared = prepare_job(settings_from(whole), of)
    from aeon.cli.job.job import run_one

    return run_one(aeon, prepared, whole)
