"""The entry point: a first word that is a subcommand runs it; everything else is a run configured by Hydra.

Only what `--version` and help need is imported here; a command's module is imported when it is called.
"""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from aeon import __version__
from aeon.cli.job.syntax import COMMANDS, COMPLETION, HELP
from aeon.cli.terminal.status import DONE, run_guarded
from aeon.cli.terminal.stderr import clear_passing, occupy_streams, own_stderr, say_in_passing, tolerate_encoding
from aeon.cli.terminal.streams import own_stdout

_LONG = ("run", "ask", "plan")
"""The commands that take long enough to say that they are starting."""

_OBJECTS_PER_COLLECTION = 50_000
"""Objects made before the garbage collector looks at them: by default 700, which costs a tenth of a short run."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status.

    0 converged or done, 1 failed, 2 bad configuration or usage, 3 finished without convergence, 130 interrupted. Errors
    are reported on standard error; a traceback is shown only when HYDRA_FULL_ERROR is set.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    occupy_streams()
    tolerate_encoding(sys.stdout, sys.stderr)
    with own_stdout(), own_stderr(), _few_collections():
        return run_guarded(lambda: _run(given))


def _run(given: Sequence[str]) -> int:
    command = given[0] if given and given[0] in COMMANDS else ""
    rest = given[1:] if command else given
    flags = set(rest[: rest.index("--")] if "--" in rest else rest)
    if flags & HELP:
        from aeon.cli.commands.help import print_for, print_general

        return print_for(command) if command else print_general(rest)
    if "--version" in flags:
        print(f"aeon-engine {__version__}")
        return DONE
    if flags & COMPLETION and not command:
        from aeon.cli.commands.completion import install

        return install(rest)
    with _silent_logging(), _starting(command or "run", rest):
        return int(import_module(f"aeon.cli.commands.{command or 'run'}").main(rest))


@contextmanager
def _starting(command: str, rest: Sequence[str]) -> Iterator[None]:
    """Loading and checking takes a second: until there is something else to show, a terminal says so."""
    shows = any(text.startswith("-") and text not in ("-m", "--multirun") for text in rest)
    if command in _LONG and not shows and "progress=none" not in rest:
        say_in_passing("Aeon is starting ...")
    try:
        yield
    finally:
        clear_passing()


@contextmanager
def _few_collections() -> Iterator[None]:
    """Most of what a process makes at first is modules and classes, which are no garbage."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_PER_COLLECTION, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _silent_logging() -> Iterator[None]:
    """A log line that nobody can read any more (`| head`) is no error, and none is printed for it."""
    before = logging.raiseExceptions
    logging.raiseExceptions = False
    try:
        yield
    finally:
        logging.raiseExceptions = before
