"""What every file a run writes has in common: how JSON becomes bytes, and what is said when it cannot be written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aeon.domain.errors import ArtefactError


def encoded(value: Any, *, indent: int | None = None) -> bytes:
    """JSON as UTF-8, readable in every script; half a surrogate pair, which UTF-8 cannot carry, as its escape."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode("utf-8", "backslashreplace")


def unwritable(path: Path, error: OSError) -> ArtefactError:
    """What to raise when a file or folder cannot be written."""
    return ArtefactError(
        f"{path} cannot be written: {error.strerror or error}",
        hint="Free space or choose a folder that can be written, for example hydra.run.dir=/tmp/aeon.",
    )
