"""A run of the task, or several in a multirun; the configuration is checked before the engine is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from hydra.types import RunMode

from aeon.app.directory import identify_start
from aeon.cli.job.arguments import parse
from aeon.config.compose import compose as config_compose


def main(arguments: Sequence[str]) -> int:
    """Run the task, or let Hydra print what a flag asks for; the exit status.

    Raises ConfigError for everything that is wrong with the configuration, before any model is called and before any
    directory is made.
    """
    given = parse(arguments)
    if given.shows:
        from aeon.cli.job.show import show

        return show(given)
    from aeon.cli.job.material import read_material  # slow to load, and not for what Hydra shows

    identify_start()
    plain = config_compose.without_sweeps(given.overrides)
    whole, added = given.compose(plain, with_hydra=True)
    several = given.flags.multirun or whole.hydra.mode == RunMode.MULTIRUN
    if not several and len(plain) < len(given.overrides):
        whole, _ = given.compose(given.overrides, with_hydra=True)
    # Each job of several has values of its own, and reads its material itself.
    material = None if several else read_material(whole)
    from aeon.cli.job.start import run_one, run_several  # slow to load, and not for a configuration error

    return run_several(given, whole, added) if material is None else run_one(given, whole, material)
