"""A run of the task, or several in a multirun: `aeon task=...`, `aeon ask "TASK"`."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.types import RunMode

from aeon.app.directory import identify_start
from aeon.cli.job.arguments import parse, refuse_keys, trusted_by_asking
from aeon.config.compose import compose as config_compose
from aeon.config.compose.literal import key_of
from aeon.domain.errors import ConfigError


def run(arguments: Sequence[str]) -> int:
    """Run the task; the exit status. Raises ConfigError for everything that is wrong with the configuration, before any
    model is called and before any directory is made."""
    given = parse(arguments, several=True)
    refuse_keys(arguments, "batch", "`aeon batch`")
    if any(key_of(text) == "sweep.resume" for text in given.overrides):
        from aeon.cli.job.sweep_resume import compose_again

        given = trusted_by_asking(compose_again, given, "true")
    identify_start()
    plain = config_compose.without_sweeps(given.overrides)
    whole, added = config_compose.compose(given.with_overrides(plain), with_hydra=True)
    if whole.hydra.mode == RunMode.MULTIRUN:
        from aeon.cli.job.sweep import (
            run_several,
        )  # slow to load, and not for a configuration error

        return run_several(given, whole, added)
    if len(plain) < len(given.overrides):
        whole, _ = config_compose.compose(given, with_hydra=True)
    from aeon.cli.job.prepare import (
        composition_of,
        prepare_job,
    )  # not for what Hydra shows or refuses

    aeon, prepared = prepare_job(whole, composition_of(whole.hydra))
    from aeon.cli.job.job import run_one  # slow to load, and not for a configuration error

    return run_one(aeon, prepared, whole, given.config_name)


def ask(arguments: Sequence[str]) -> int:
    """Run the task that the first argument is, taken as it is. ConfigError when it is none, and as for a run."""
    task, *rest = arguments or [""]
    is_flag = task.startswith("-") and task != "-" and len(task.split()) == 1
    if (
        not arguments
        or is_flag
        or (rest and "=" not in rest[0] and not rest[0].startswith(("-", "~")))
    ):
        raise ConfigError(
            "aeon ask takes the task first, as one argument, then flags and overrides",
            hint='Quote it: `aeon ask "name three rivers" mode=core`',
        )
    if again := next((text for text in rest if text.startswith(("task=", "task_file="))), None):
        raise ConfigError(f"{again}: the task is given twice", hint="Leave one of them out.")
    return run([f"task={task}", *rest])
