"""The directory of a run or a multirun: created exclusively, before Hydra starts, so that no two
runs share one."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from aeon.config.compose.composed import Composed
from aeon.domain.errors import ConfigError, StoreFailed
from aeon.files.shortage import find_shortage

if TYPE_CHECKING:
    from aeon.app.run import Run

RUN_ID = "AEON_RUN_ID"


def identify_start() -> None:
    """Set the id of this start of the program, for the directory of its run."""
    os.environ[RUN_ID] = secrets.token_hex(4)


def claim_run_directory(whole: Composed, run: Run) -> Path:
    """Begin the run in its directory. Raises ConfigError when the directory cannot be created or
    already holds a run."""
    return _claim(
        whole,
        "hydra.run.dir",
        lambda directory: run.begin(directory, lambda made: (made / ".hydra").mkdir()),
    )


def claim_sweep_directory(whole: Composed) -> Path:
    """Create the directory of a multirun, in which each job creates its own. Raises ConfigError."""

    def mark(directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Of two programs that start at once, one fails here. Hydra writes the overrides as typed.
        (directory / "multirun.yaml").touch(0o600, exist_ok=False)

    return _claim(whole, "hydra.sweep.dir", mark)


def _claim(whole: Composed, key: str, claim: Callable[[Path], object]) -> Path:
    hint = f"Choose another directory ({key}=...), or omit it: by default each run gets its own."
    directory = whole.find_directory(key)
    try:
        claim(directory)
    except (OSError, StoreFailed) as error:
        shortage = find_shortage(error)
        why = getattr(error, "strerror", None) or error
        problem = f"cannot be written: {shortage.message if shortage else why}"
        hint = shortage.hint if shortage else hint
        if isinstance(error, FileExistsError):
            problem = (
                "this directory already holds a run"
                if directory.is_dir()
                else "is not below a directory"
            )
        raise ConfigError(f"{key}={directory}: {problem}", hint=hint) from None
    return directory
