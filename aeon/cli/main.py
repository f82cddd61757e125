"""What a person types: a registered first word is a subcommand, everything else is a run configured by Hydra."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import version

from aeon.cli.output import occupied, own_stderr, tolerant
from aeon.cli.status import DONE, guarded
from aeon.cli.streams import own_stdout

COMMANDS: Mapping[str, str] = {
    "cassette": "aeon.cli.cassette",
    "check": "aeon.cli.check",
    "doctor": "aeon.cli.doctor",
    "init": "aeon.cli.init",
    "plan": "aeon.cli.plan",
    "render": "aeon.cli.render",
    "tools": "aeon.cli.tools",
    "verify": "aeon.cli.verify",
}
"""Subcommands by name: the module whose `main(arguments) -> int` runs it, imported only when it is called."""

_RUN = "aeon.cli.run"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status.

    0 converged or done, 1 failed, 2 bad configuration or usage, 3 finished without convergence, 130 interrupted. What
    went wrong is said on standard error; a traceback is shown only when HYDRA_FULL_ERROR is set.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    occupied()
    tolerant(sys.stdout, sys.stderr)
    if given == ["--version"]:
        return guarded(_version)
    command = COMMANDS.get(given[0]) if given else None
    rest = given[1:] if command else given
    with own_stdout(), own_stderr():
        return guarded(lambda: int(import_module(command or _RUN).main(rest)))


def _version() -> int:
    print(f"aeon-engine {version('aeon-engine')}")
    return DONE
