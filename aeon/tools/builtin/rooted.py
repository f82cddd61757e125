"""Opening what lies under a folder and nothing else.

Each part of a path is opened from the folder before it and never through a link, so that nobody who changes the folder
meanwhile can lead outside either.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# Not waiting, since opening a pipe would wait for somebody to write.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)

supported = os.open in os.supports_dir_fd and bool(_NO_LINK)
"""Whether this system can open relative to a folder and refuse links."""


def parts(path: str) -> tuple[str, ...]:
    """The names along a relative path. Raises ValueError for an absolute one, for `..` and for a NUL character."""
    if "\0" in path:
        raise ValueError("a path has no NUL character")
    if PurePosixPath(path).is_absolute() or Path(path).is_absolute():
        raise ValueError(f"{path}: paths are relative to the tools' folder")
    found = PurePosixPath(path).parts
    if ".." in found:
        raise ValueError(f"{path}: '..' is not allowed")
    return found


@contextmanager
def opened_folder(root: Path, path: str) -> Iterator[int]:
    """A file descriptor of a folder under `root`. Raises ValueError, in words, if there is none or behind a link."""
    with _walked(root, path, parts(path)) as descriptor:
        yield descriptor


@contextmanager
def opened_file(root: Path, path: str) -> Iterator[int]:
    """A file descriptor of a regular file under `root`, for reading. Raises ValueError, in words, for anything else."""
    *folders, name = parts(path) or (".",)
    with _walked(root, path, tuple(folders)) as folder:
        descriptor = _opened(path, name, _FILE | _NO_LINK, folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"{path}: not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _walked(root: Path, path: str, names: tuple[str, ...]) -> Iterator[int]:
    descriptor = _opened(str(root), str(root), _FOLDER)
    try:
        for name in names:
            inner = _opened(path, name, _FOLDER | _NO_LINK, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _opened(path: str, name: str, flags: int, folder: int | None = None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise ValueError(f"{path}: {_in_words(error, name, folder)}") from None


def _in_words(error: OSError, name: str, folder: int | None) -> str:
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, folder)):
        return "links are not followed"
    words = {errno.ENOENT: "there is no such file or folder", errno.ENOTDIR: "not a folder"}
    return words.get(error.errno or 0) or error.strerror or "cannot be opened"


def _is_link(name: str, folder: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
