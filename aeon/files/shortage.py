"""Explains what this machine has run out of, from an exception, with advice."""

from __future__ import annotations

import errno
import logging
import os
from contextlib import ExitStack
from pathlib import Path

from aeon.domain.errors import AeonError, Unexpected, list_causes

_logger = logging.getLogger(__name__)
_DEFECT = "This is a defect; HYDRA_FULL_ERROR=1 in the environment shows where."
_FILES = (
    "Raise the limit (ulimit -n), or lower execution.max_parallel, batch.parallel "
    "or sweep.parallel."
)
_SPACE = "Free space, or name a folder on another disk (hydra.run.dir=...)."
_FILES_OF_SQLITE = 4  # a database, its journal, the journal's index, and the folder
_OF_SYSTEM = {
    errno.EMFILE: ("too many files are open", _FILES),
    errno.ENFILE: ("too many files are open on this machine", _FILES),
    errno.ENOSPC: ("no space is left on the disk", _SPACE),
    errno.EDQUOT: ("the disk quota is used up", _SPACE),
}
_MEMORY = "Free memory, raise its limit (ulimit -v), or lower execution.max_parallel."
_THREADS = (
    "Raise the limits (ulimit -u, ulimit -v), end other programs, or lower execution.max_parallel."
)


class Shortage(AeonError):
    """The machine has run out of memory, threads, files or disk; answers stored so far can be
    reused."""


def explain_defect(failure: BaseException) -> AeonError:
    """Convert an unexpected exception to an AeonError: a shortage of the machine, or a defect."""
    _logger.debug("unexpected", exc_info=failure)
    message = f"{type(failure).__name__}: {failure}"
    return find_shortage(failure) or Unexpected(message, hint=_DEFECT)


def raise_shortage(problem: str, error: BaseException) -> None:
    """Raise a Shortage with the problem if one caused the error; otherwise return, so that the
    caller raises an error of its own."""
    if shortage := find_shortage(error):
        raise Shortage(f"{problem}: {shortage.message}", hint=shortage.hint) from error


def find_shortage(error: BaseException | None) -> Shortage | None:
    """Return the shortage that caused an exception, directly or through its causes; None if none
    did."""
    for each in list_causes(error):
        if isinstance(each, Shortage):
            return each
        if found := _describe(each):
            return Shortage(found[0], hint=found[1])
    return None


def _describe(error: BaseException) -> tuple[str, str] | None:
    if isinstance(error, OSError):
        return _OF_SYSTEM.get(error.errno or 0)
    # The loader of shared libraries gives a text, and no number.
    if isinstance(error, MemoryError) or _is_unmapped(error):
        return "there is not enough memory", _MEMORY
    if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
        return "no more threads can be started", _THREADS
    # By name, because importing sqlite3 would delay messages about command-line mistakes.
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return _OF_SYSTEM[errno.ENOSPC]
    # SQLite does not say why it could not open a file.
    is_short = name.startswith("SQLITE_CANTOPEN") and not _can_open(_FILES_OF_SQLITE)
    return _OF_SYSTEM[errno.EMFILE] if is_short else None


def _is_unmapped(error: BaseException) -> bool:
    return isinstance(error, ImportError) and "failed to map segment" in str(error)


def _can_open(count: int) -> bool:
    """Whether `count` more files can be open at once."""
    try:
        with ExitStack() as opened:
            for _ in range(count):
                opened.enter_context(Path(os.devnull).open("rb"))
    except OSError as error:
        return error.errno not in (errno.EMFILE, errno.ENFILE)
    return True
