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
"""A multirun ends with the first of these that one of its jobs ended with: an interruption leaves jobs undone, a
failure lost work, a bad configuration did none, and a job that did not converge has a result."""

_FILE = Path(".hydra") / "exit_status"


def guarded(program: Callable[[], int]) -> int:
    """Run a program; whichever way it ends, the exit status.

    AeonError is reported with its hint: 2 when it is a ConfigError, else 1; any other exception is 1. A traceback is
    shown only when the person has set HYDRA_FULL_ERROR.
    """
    status = _status_of(program)
    error = undelivered()
    return status if error is None else status or _unread(error)


def _unread(error: OSError) -> int:
    """The status of a program whose output nobody could read; a reader that has gone away (`| head`) has read it."""
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
        if isinstance(error, OSError) and (unread := undelivered(error)) is not None:
            return _unread(unread)
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
    """Leave a job's status in its directory: jobs may run in other processes, and on other machines.

    One that cannot be written counts as FAILED.
    """
    path = directory / _FILE
    with contextlib.suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{status}\n", encoding="ascii")


def read_statuses(sweep_directory: Path) -> list[int]:
    """The statuses that the jobs of a multirun left; FAILED for a job that could leave none."""
    return [read_status(path.parent) for path in sorted(sweep_directory.rglob(_FILE.parent.name))]


def read_status(directory: Path) -> int:
    """The status that the job of a directory left; FAILED when it could leave none."""
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
