"""Reads files and lists folders under one folder, and nothing else.

A path is resolved and then opened name by name, each from the folder before it and never through a
link, so that changing the folder meanwhile cannot lead outside it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Value
from aeon.tools.function import tool
from aeon.tools.registry import Tool
from aeon.tools.settings import BuiltinSettings

MAX_ENTRIES = 1_000
SECRET_NAMES = (
    *(".env", ".env.*", "*.env", ".git", ".git-credentials", ".netrc", "_netrc", ".pgpass"),
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".npmrc", ".pypirc", ".htpasswd"),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.p12", "*.pfx", "*.ppk"),
    *("*.jks", "*.keystore", "*.kdbx", "credentials", "credentials.*"),
)
"""Names of files and folders that usually hold keys, in any case: they are neither read nor
searched."""
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
# O_NONBLOCK, because opening a pipe would wait for a writer.
_FILE = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class FolderEntry(Value):
    """A file, folder, link or something else; its path from the tools' folder; its size in bytes,
    of files only."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int | None


class Listing(Value):
    """What is in a folder, sorted by path; `complete` is false when there is more than is
    listed."""

    entries: list[FolderEntry]
    complete: bool


def from_settings(settings: BuiltinSettings) -> tuple[Tool, ...]:
    """Return the file tools if there is a `root`. Raises ConfigError if the folder is missing."""
    if settings.root is None:
        return ()
    allowed = settings.allowed_secret_files
    return file_tools(settings.root, settings.max_file_bytes, allowed_secrets=allowed)


def file_tools(
    root: Path,
    max_bytes: int,
    max_entries: int = MAX_ENTRIES,
    allowed_secrets: Sequence[str] = (),
) -> tuple[Tool, Tool]:
    """Return `read_file` and `list_files` for one folder; SECRET_NAMES in `allowed_secrets` are
    treated as ordinary files. Raises ConfigError if `root` is missing, and on a system that cannot
    open files relative to folders."""
    folder = _open_folder(root, allowed_secrets)

    @tool(
        examples=[{"path": "notes/meeting.md"}, {"path": "big.csv", "first_line": 1, "lines": 50}]
    )
    def read_file(
        path: Annotated[
            str,
            Field(min_length=1, description="Relative to the tools' folder, with / between names."),
        ],
        first_line: Annotated[
            int, Field(ge=1, description="The line to start with; 1 is the first.")
        ] = 1,
        lines: Annotated[
            int | None, Field(ge=1, description="How many lines to read; null for all.")
        ] = None,
    ) -> str:
        """Read a text file (UTF-8), or some lines of it."""
        text = folder.read(path, max_bytes)
        if first_line == 1 and lines is None:
            return text
        return "".join(
            islice(text.splitlines(keepends=True), first_line - 1, lines and first_line - 1 + lines)
        )

    @tool(examples=[{}, {"path": "notes", "recursive": True}])
    def list_files(
        path: Annotated[
            str, Field(description="A folder, relative to the tools' folder; '.' is that folder.")
        ] = ".",
        recursive: Annotated[
            bool, Field(description="Whether to list what is in folders within, too.")
        ] = False,
    ) -> Listing:
        """List the files and folders in a folder. Links are listed and not followed."""
        found = list(islice(folder.walk(path, recursive), max_entries + 1))
        entries = sorted(found[:max_entries], key=lambda entry: entry.path)
        return Listing(entries=entries, complete=len(found) <= max_entries)

    return read_file, list_files


def _open_folder(root: Path, allowed_secrets: Sequence[str]) -> _Folder:
    top = root.expanduser().resolve()
    if not top.is_dir():
        raise ConfigError(f"tools.builtin.root={root}: there is no such folder")
    if os.open not in os.supports_dir_fd or not _NO_LINK:
        raise ConfigError("tools.builtin.root: this system cannot keep tools within a folder")
    return _Folder(top, allowed_secrets)


class _Folder:
    """The content of one folder. Raises ValueError with a readable message for everything else."""

    def __init__(self, root: Path, allowed_secrets: Sequence[str]) -> None:
        self._root = root
        self._secrets = tuple(name for name in SECRET_NAMES if name not in allowed_secrets)
        self._allowed = tuple(allowed_secrets)

    def read(self, path: str, max_bytes: int) -> str:
        with self._open(path, _FILE, "there is no such file") as descriptor:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ValueError(f"{path}: there is no such file")
            with open(descriptor, "rb", closefd=False) as opened:
                content = opened.read(max_bytes + 1)
        if len(content) > max_bytes:
            raise ValueError(f"{path}: larger than {max_bytes} bytes")
        if b"\0" in content:
            raise ValueError(f"{path}: not a text file")
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path}: not a text file in UTF-8 (byte {error.start})") from None

    def walk(self, path: str, recursive: bool) -> Iterator[FolderEntry]:
        start = self._locate(path)
        with self._open(path, _FOLDER, "there is no such folder") as top:
            for within, folders, files, descriptor in os.fwalk(".", dir_fd=top):
                place = Path(*start, within)
                for name in sorted(folders + files):
                    yield _describe(place / name, name, descriptor)
                if not recursive:
                    return
                folders[:] = sorted(name for name in folders if not self._is_secret(name))

    def _is_secret(self, name: str) -> bool:
        lower = name.lower()
        is_named = any(fnmatchcase(lower, pattern) for pattern in self._secrets)
        return is_named and name not in self._allowed

    def _locate(self, path: str) -> tuple[str, ...]:
        """Return the path's names below the folder, with links resolved."""
        try:
            found = (self._root / path).resolve()
        except OSError:  # a link is being replaced
            raise ValueError(f"{path}: there is no such file or folder") from None
        if not found.is_relative_to(self._root):
            raise ValueError(f"{path}: leads out of the tools' folder")
        names = found.relative_to(self._root).parts
        if any(self._is_secret(name) for name in names):
            raise ValueError(
                f"{path}: files of this name hold keys as a rule, and are read only if "
                "tools.builtin.allowed_secret_files names them"
            )
        return names

    @contextmanager
    def _open(self, path: str, flags: int, missing: str) -> Iterator[int]:
        names = self._locate(path)
        opened = [os.open(self._root, _FOLDER)]
        try:
            for place, name in enumerate(names, start=1):
                how = flags if place == len(names) else _FOLDER
                opened.append(os.open(name, how | _NO_LINK, dir_fd=opened[-1]))
            yield opened[-1]
        except OSError:
            raise ValueError(f"{path}: {missing}") from None
        finally:
            for descriptor in opened:
                os.close(descriptor)


def _describe(path: Path, name: str, folder: int) -> FolderEntry:
    shown = os.fsencode(path.as_posix()).decode("utf-8", "backslashreplace")
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return FolderEntry(path=shown, kind="other", size=None)
    if stat.S_ISREG(found.st_mode):
        return FolderEntry(path=shown, kind="file", size=found.st_size)
    if stat.S_ISDIR(found.st_mode):
        return FolderEntry(path=shown, kind="folder", size=None)
    return FolderEntry(
        path=shown, kind="link" if stat.S_ISLNK(found.st_mode) else "other", size=None
    )
