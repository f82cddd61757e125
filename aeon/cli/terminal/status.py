"""Exit statuses: what each means, and how a program's end becomes one."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable

from aeon.cli.terminal.streams import report, say
from aeon.domain.errors import AeonError, ConfigError

DONE, FAILED, USAGE, NOT_CONVERGED, INTERRUPTED = 0, 1, 2, 3, 130


def run_guarded(program: Callable[[], int]) -> int:
    """Run a program and return its exit status, however it ends.

    AeonError is reported with its hint: 2 when it is a ConfigError, else 1; any other exception is 1. A traceback is
    shown only when HYDRA_FULL_ERROR is set.
    """
    try:
        return program()
    except SystemExit as end:
        return int(end.code or DONE) if isinstance(end.code, int | None) else FAILED
    except KeyboardInterrupt:
        say("Interrupted.")
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("HYDRA_FULL_ERROR", "0") not in ("", "0"):
            traceback.print_exc()
        if isinstance(error, AeonError):
            report(error)
            return USAGE if isinstance(error, ConfigError) else FAILED
        say(f"Error: Aeon failed unexpectedly: {type(error).__name__}: {error}")
        say("HYDRA_FULL_ERROR=1 in the environment shows where.")
        return FAILED
