"""Temporary folders that last as long as their process: a later process removes those that a kill
left behind."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from aeon.files.text import lock_file

_PREFIX = "aeon-batch-"
_LOCK = "lock"


@contextmanager
def make_passing_folder() -> Iterator[Path]:
    """Yield a new folder, which exists while the block lasts. Folders whose process is gone are
    removed first."""
    _remove_left(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        with (folder / ".lock").open("wb") as file:
            lock_file(file)
            # Named only once locked: another process might else take it for abandoned.
            (folder / ".lock").rename(folder / _LOCK)
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(place: Path) -> None:
    for path in place.glob(f"{_PREFIX}*/{_LOCK}"):
        with suppress(OSError):
            if path.parent.stat().st_uid == os.getuid() and not path.is_symlink():
                with path.open("rb") as file:
                    if lock_file(file):
                        shutil.rmtree(path.parent)
