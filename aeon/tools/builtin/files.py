"""Reading files and listing folders under one folder, and nothing else.

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
from typing import Annotated, Literal

from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

MAX_ENTRIES = 1_000
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# O_NONBLOCK, since opening a pipe would wait for somebody to write.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_IS_SUPPORTED = os.open in os.supports_dir_fd and bool(_NO_LINK)


class Entry(Value):
    """A file, folder, link or something else; its path from the tools' folder; its size in bytes, of files only."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int | None


class Listing(Value):
    """What is in a folder, sorted by path; `complete` is false when there is more than is listed."""

    entries: list[Entry]
    complete: bool


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:
    """`read_file` and `list_files`, when there is a `root`. Raises ConfigError when the folder is missing."""
    if settings.root is None:
        return ()
    return read_file_tool(settings.root, settings.max_file_bytes), list_files_tool(settings.root)


def read_file_tool(root: Path, max_bytes: int) -> Tool:
    """`read_file`: UTF-8 text of files under `root` of at most `max_bytes`. Raises ConfigError without `root`."""
    folder = _check_root(root)

    @tool(examples=[{"path": "notes/meeting.md"}, {"path": "big.csv", "first_line": 1, "lines": 50}])
    def read_file(
        path: Annotated[str, Field(min_length=1, description="Relative to the tools' folder, with / between names.")],
        first_line: Annotated[int, Field(ge=1, description="The line to start with; 1 is the first.")] = 1,
        lines: Annotated[int | None, Field(ge=1, description="How many lines to read; null for all.")] = None,
    ) -> str:
        """Read a text file (UTF-8), or some lines of it."""
        text = _read_text(folder, path, max_bytes)
        if first_line == 1 and lines is None:
            return text
        kept = text.splitlines(keepends=True)[first_line - 1 :]
        return "".join(kept if lines is None else kept[:lines])

    return read_file


def list_files_tool(root: Path, max_entries: int = MAX_ENTRIES) -> Tool:
    """`list_files`: the contents of folders under `root`. Raises ConfigError when `root` is missing."""
    folder = _check_root(root)

    @tool(examples=[{}, {"path": "notes", "recursive": True}])
    def list_files(
        path: Annotated[str, Field(description="A folder, relative to the tools' folder; '.' is that folder.")] = ".",
        recursive: Annotated[bool, Field(description="Whether to list what is in folders within, too.")] = False,
    ) -> Listing:
        """List the files and folders in a folder. Links are listed and not followed."""
        found: list[Entry] = []
        is_complete = True
        for entry in _entries(folder, path, recursive):
            if len(found) == max_entries:
                is_complete = False
                break
            found.append(entry)
        return Listing(entries=sorted(found, key=lambda entry: entry.path), complete=is_complete)

    return list_files


def _check_root(root: Path) -> Path:
    folder = root.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"tools.builtin.root={root}: there is no such folder")
    if not _IS_SUPPORTED:
        raise ConfigError("tools.builtin.root: this system cannot keep files tools within a folder")
    return folder


def _read_text(root: Path, path: str, max_bytes: int) -> str:
    with _open_file(root, path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{path}: larger than {max_bytes} bytes")
    if b"\0" in content:
        raise ValueError(f"{path}: not a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file in UTF-8 (byte {error.start})") from None


def _entries(root: Path, path: str, recursive: bool) -> Iterator[Entry]:
    names = _split(path)
    with _open_folder(root, path, names) as top:
        for folder, inner, files, descriptor in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            inner.sort()
            within = "/".join(part for part in ("/".join(names), folder.removeprefix(".").lstrip("/")) if part)
            for name in sorted(inner + files):
                yield _entry(f"{within}/{name}" if within else name, name, descriptor)
            if not recursive:
                return


def _entry(path: str, name: str, folder: int) -> Entry:
    shown = os.fsencode(path).decode("utf-8", "backslashreplace")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return Entry(path=shown, kind="other", size=None)
    if stat.S_ISREG(found.st_mode):
        return Entry(path=shown, kind="file", size=found.st_size)
    if stat.S_ISDIR(found.st_mode):
        return Entry(path=shown, kind="folder", size=None)
    return Entry(path=shown, kind="link" if stat.S_ISLNK(found.st_mode) else "other", size=None)


def _split(path: str) -> tuple[str, ...]:
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
def _open_file(root: Path, path: str) -> Iterator[int]:
    """A file descriptor of a regular file under `root`. Raises ValueError, in words, for anything else."""
    *folders, name = _split(path) or (".",)
    with _open_folder(root, path, tuple(folders)) as folder:
        descriptor = _open(path, name, _FILE | _NO_LINK, folder)
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"{path}: not a regular file")
            yield descriptor
        finally:
            os.close(descriptor)


@contextmanager
def _open_folder(root: Path, path: str, names: tuple[str, ...]) -> Iterator[int]:
    """A file descriptor of a folder under `root`. Raises ValueError, in words, if there is none or behind a link."""
    descriptor = _open(str(root), str(root), _FOLDER)
    try:
        for name in names:
            inner = _open(path, name, _FOLDER | _NO_LINK, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _open(path: str, name: str, flags: int, folder: int | None = None) -> int:
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise ValueError(f"{path}: {_explain(error, name, folder)}") from None


def _explain(error: OSError, name: str, folder: int | None) -> str:
    if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, folder)):
        return "links are not followed"
    words = {errno.ENOENT: "there is no such file or folder", errno.ENOTDIR: "not a folder"}
    return words.get(error.errno or 0) or error.strerror or "cannot be opened"


def _is_link(name: str, folder: int | None) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False
