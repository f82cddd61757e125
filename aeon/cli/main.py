"""The entry point: a first word that is a subcommand runs it; everything else is a run configured by Hydra. Only what
`--version` and help need is imported here; a command's module is imported when it is called."""

from __future__ import annotations

import gc
import logging
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from importlib import import_module

from aeon import __version__
from aeon.cli.job.syntax import COMMANDS, NO_PROJECT, READS_PROJECT
from aeon.cli.registered import function_of, is_registered, load_command
from aeon.cli.terminal.status import DONE, run_guarded
from aeon.cli.terminal.streams import own_streams, put, say, stderr, stdout


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit status. 0 converged or done, 1 failed, 2 bad configuration or usage, 3
    finished without convergence, 130 interrupted. Errors are reported on standard error; a traceback is shown only when
    HYDRA_FULL_ERROR is set."""
    gc.set_threshold(
        50_000
    )  # most of what a process makes at first is modules and classes, which are no garbage
    logging.raiseExceptions = (
        False  # a log line that nobody can read any more (`| head`) is no error
    )
    with own_streams():
        return run_guarded(lambda: _run(list(sys.argv[1:] if arguments is None else arguments)))


def _run(given: list[str]) -> int:
    given = _put_command_first(given)
    command = _find_command(given)
    rest = given[1:] if command else given
    flags = set(rest[: rest.index("--")] if "--" in rest else rest)
    if "--version" in flags:
        put(f"aeon-engine {__version__}")
        return DONE
    if flags & {"--help", "-h"}:
        command, rest = "help", [command, *rest] if command else rest
    elif flags & {"--shell-completion", "-sc"} and not command:
        command = "completion"
    command = command or "run"
    if command not in (*COMMANDS, "run"):
        # What a registered command prints is what it was called for.
        with redirect_stdout(stdout() or sys.stdout):
            return int(load_command(command)(rest) or DONE)
    shows = any(text.startswith("-") and text not in ("-m", "--multirun") for text in rest)
    if (
        command in ("run", "ask", "plan")
        and not shows
        and "progress=none" not in rest
        and stderr().isatty()
    ):
        say("Aeon is starting ...")
    module = import_module(f"aeon.cli.commands.{COMMANDS.get(command, command)}")
    return int(getattr(module, function_of(command))(rest))


def _find_command(given: Sequence[str]) -> str:
    """The command that the arguments begin with; empty where they begin with none."""
    word = given[0] if given else ""
    return word if word in COMMANDS or is_registered(word) else ""


def _put_command_first(given: list[str]) -> list[str]:
    """The arguments with `--no-project` behind the command that it stands before; a command that reads no project file
    is not given it."""
    flag, *others = given or [""]
    if flag != NO_PROJECT or not others or others[0] not in COMMANDS:
        return given
    is_subcommand = others[:2] in (["batch", "merge"], ["batch", "record"])
    reads_project = others[0] in READS_PROJECT and not is_subcommand
    return [*others, flag] if reads_project else others
