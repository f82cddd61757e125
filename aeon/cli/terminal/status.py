"""Exit statuses: what each means, how a program's end becomes one, and how those of a multirun become one."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from aeon.cli.terminal.stderr import report, say
from aeon.cli.terminal.streams import undelivered
from aeon.domain.errors import AeonError, ConfigError

DONE, FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130

WORST_FIRST = (INTERRUPTED, FAILED, USAGE, NOT_CONVERGED, DONE)
"""The order in which a multirun takes its exit status from those of its jobs."""

_FILE = Path(".hydra") / "exit_status"


def run_guarded(program: Callable[[], int]) -> int:
    """Run a program and return its exit status, however it ends.

    AeonError is reported with its hint: 2 when it is a ConfigError, else 1; any other exception is 1. A traceback is
    shown only when HYDRA_FULL_ERROR is set.
    """
    status = _status_of(program)
    error = undelivered()
    return status if error is None else status or _unwritten_status(error)


def _unwritten_status(error: OSError) -> int:
    """The status when standard output cannot be written; a reader that has gone away (`| head`) is no failure."""
    if isinstance(error, BrokenPipeError):
        return DONE
    say(f"Error: standard output cannot be written: {error.strerror}")
    return FAILED


def _status_of(program: Callable[[], int]) -> int:
    try:
        return program()
    except SystemExit as end:
        return _as_status(end.code)
    except KeyboardInterrupt:
        say("Interrupted.")
        return INTERRUPTED
    except AeonError as error:
        _trace()
        report(error)
        return USAGE if isinstance(error, ConfigError) else FAILED
    except Exception as error:
        if isinstance(error, OSError) and (unwritten := undelivered(error)) is not None:
            return _unwritten_status(unwritten)
        _trace()
        say(f"Error: Aeon failed unexpectedly: {type(error).__name__}: {error}")
        say("HYDRA_FULL_ERROR=1 in the environment shows where.")
        return FAILED


def worst(statuses: Iterable[int]) -> int:
    """The worst of the statuses of a multirun's jobs, in the order of WORST_FIRST; FAILED when there are none."""
    found = set(statuses)
    if not found or found - set(WORST_FIRST):
        return FAILED
    return next(status for status in WORST_FIRST if status in found)


def write_status(directory: Path, status: int) -> None:
    """Write a job's status into its directory, since jobs may run in other processes and on other machines; a status
    that cannot be written counts as FAILED."""
    path = directory / _FILE
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{status}\n", encoding="ascii")


def read_statuses(sweep_directory: Path) -> list[int]:
    """The statuses in the directories of a multirun's jobs; FAILED for a job without one."""
    return [read_status(path.parent) for path in sorted(sweep_directory.rglob(_FILE.parent.name))]


def read_status(directory: Path) -> int:
    """The status in a job's directory; FAILED when there is none."""
    try:
        return int((directory / _FILE).read_text(encoding="ascii"))
    except (OSError, ValueError):
        return FAILED


def _as_status(code: object) -> int:
    if isinstance(code, int):
        return code
    return DONE if code is None else FAILED


def _trace() -> None:
    if os.environ.get("HYDRA_FULL_ERROR", "0") not in ("", "0"):
        traceback.print_exc()
