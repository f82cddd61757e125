"""The entry point: a first word that names a subcommand runs it; everything else is a run
configured by Hydra. Only the imports of `--version` and help stand here; a command's module is
imported when it is called."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from itertools import takewhile

from aeon import __version__
from aeon.cli.syntax.commands import COMMANDS, find_command, make_parser, quote_task
from aeon.cli.terminal.status import DONE, run_guarded
from aeon.cli.terminal.streams import own_streams, put, say, stderr, stdout

_VERSION = {"--version"}
_HELP = {"--help", "-h"}
_COMPLETION = {"--shell-completion", "-sc"}
_NO_PROJECT = "--no-project"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status. 0 converged or done, 1 failed, 2 bad
    configuration or usage, 3 finished without convergence, 130 interrupted. Errors are reported on
    standard error; a traceback is shown only when HYDRA_FULL_ERROR is set."""
    # A process first makes mostly modules and classes, which are not garbage.
    gc.set_threshold(50_000)
    # A log line without a reader (`| head`) is not an error.
    logging.raiseExceptions = False
    with own_streams():
        return run_guarded(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(given: list[str]) -> int:
    words = _put_command_first(given)
    name = find_command(words)
    rest = words[len(name.split()) :]
    # Words behind `--` are not for this program, such as those to be completed.
    flags = set(takewhile(lambda word: word != "--", rest))
    if flags & _VERSION:
        put(f"aeon-engine {__version__}")
        return DONE
    if flags & _HELP:
        from aeon.cli.syntax.help import show_help  # not for a run

        show_help(name, rest)
        return DONE
    if flags & _COMPLETION and not name:
        name = "completion"
        rest = [word.removeprefix("install=") for word in rest if not word.startswith("-")]
    if name == "ask":
        rest = quote_task(rest)
    parser = make_parser(name)
    parsed = parser.parse(rest)
    if _takes_long(name, rest):
        say("Aeon is starting ...")
    with _prints_of(name):
        return parser.carry_out(parsed)


def _takes_long(name: str, words: Sequence[str]) -> bool:
    """Check whether a person at a terminal waits for a run to begin."""
    if name not in ("", "ask", "plan") or "progress=none" in words or not stderr().isatty():
        return False
    return not any(word.startswith("-") and word not in ("-m", "--multirun") for word in words)


def _prints_of(name: str) -> AbstractContextManager[object]:
    """Redirect the prints of a registered command, whose output they are, to standard output; for
    packaged commands standard output is reserved for the answer."""
    is_packaged = not name or name in COMMANDS
    return nullcontext() if is_packaged else redirect_stdout(stdout() or sys.stdout)


def _put_command_first(given: list[str]) -> list[str]:
    """Return the arguments with `--no-project` moved behind the command that follows it; dropped
    for a command that reads no project file."""
    flag, *others = given or [""]
    name = find_command(others) if flag == _NO_PROJECT else ""
    if name not in COMMANDS:
        return given
    return [*others, flag] if make_parser(name).takes_flag(flag) else others
