"""The user's state folder: small files that Aeon writes for them, readable by nobody else."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import NamedTemporaryFile

from aeon.domain.errors import ArtefactError

VARIABLE = "AEON_STATE_DIR"
"""The variable that names the folder; by default `aeon` in `$XDG_STATE_HOME` or
`~/.local/state`."""
_WRITABLE_BY_OTHERS = 0o022


def state_folder() -> Path | None:
    """Return the folder, absolute, whether or not it exists; None for a user without a home."""
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().absolute()
    base = Path(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"))  # noqa: PTH111
    return base / "aeon" if base.is_absolute() else None


def read_state(name: str) -> bytes | None:
    """Return the content of a file in the folder; None when it does not exist, or when somebody
    else could have written it."""
    folder = state_folder()
    if folder is None:
        return None
    try:
        if not (_is_own(folder) and _is_own(folder / name)):
            return None
        return (folder / name).read_bytes()
    except OSError:
        return None


def write_state(name: str, content: bytes, *, replace: bool = True) -> None:
    """Write a file in the folder, whole or not at all; without `replace` an existing one is not
    changed. Raises ArtefactError."""
    folder = state_folder()
    hint = f"Name a writable folder of your own: {VARIABLE}=/path."
    if folder is None:
        raise ArtefactError("there is no home folder to remember this in", hint=hint)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # One that existed may be open to others, and would then not be read.
        folder.chmod(0o700)
        _write(folder / name, content, replace=replace)
    except OSError as error:
        problem = f"{folder / name} cannot be written: {error.strerror or error}"
        raise ArtefactError(problem, hint=hint) from None


def _write(path: Path, content: bytes, *, replace: bool) -> None:
    # A temporary file is readable by its owner alone.
    with NamedTemporaryFile(dir=path.parent, delete=False) as file:
        written = Path(file.name)
        try:
            file.write(content)
            file.flush()
            # After a crash the name must not lead to an empty file: a lost key breaks every seal.
            os.fsync(file.fileno())
            if replace:
                written.replace(path)
            elif not path.exists():
                path.hardlink_to(written)  # only one of several processes succeeds
        except FileExistsError:
            pass
        finally:
            written.unlink(missing_ok=True)


def _is_own(path: Path) -> bool:
    if not hasattr(os, "getuid"):  # Windows
        return True
    status = path.stat()
    return status.st_uid == os.getuid() and not status.st_mode & _WRITABLE_BY_OTHERS
