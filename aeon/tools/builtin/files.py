"""Reading files and listing folders under one folder."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from aeon.domain.errors import ConfigError
from aeon.domain.values import Value
from aeon.tools.builtin import rooted
from aeon.tools.function import tool
from aeon.tools.registry import Tool

MAX_ENTRIES = 1_000


class Entry(Value):
    """A file, folder, link or something else; its path from the tools' folder; its size in bytes, of files only."""

    path: str
    kind: Literal["file", "folder", "link", "other"]
    size: int | None


class Listing(Value):
    """What is in a folder, sorted by path; `complete` is false when there is more than is listed."""

    entries: list[Entry]
    complete: bool


def read_file_tool(root: Path, max_bytes: int) -> Tool:
    """`read_file`: UTF-8 text of files under `root` of at most `max_bytes`. Raises ConfigError when it is missing."""
    folder = _checked(root)

    @tool(examples=[{"path": "notes/meeting.md"}, {"path": "big.csv", "first_line": 1, "lines": 50}])
    def read_file(
        path: Annotated[str, Field(min_length=1, description="Relative to the tools' folder, with / between names.")],
        first_line: Annotated[int, Field(ge=1, description="The line to start with; 1 is the first.")] = 1,
        lines: Annotated[int | None, Field(ge=1, description="How many lines to read; null for all.")] = None,
    ) -> str:
        """Read a text file (UTF-8), or some lines of it."""
        text = _text(folder, path, max_bytes)
        if first_line == 1 and lines is None:
            return text
        kept = text.splitlines(keepends=True)[first_line - 1 :]
        return "".join(kept if lines is None else kept[:lines])

    return read_file


def list_files_tool(root: Path, max_entries: int = MAX_ENTRIES) -> Tool:
    """`list_files`: what folders under `root` hold. Raises ConfigError when there is no root."""
    folder = _checked(root)

    @tool(examples=[{}, {"path": "notes", "recursive": True}])
    def list_files(
        path: Annotated[str, Field(description="A folder, relative to the tools' folder; '.' is that folder.")] = ".",
        recursive: Annotated[bool, Field(description="Whether to list what is in folders within, too.")] = False,
    ) -> Listing:
        """List the files and folders in a folder. Links are listed and not followed."""
        found: list[Entry] = []
        for entry in _entries(folder, path, recursive):
            if len(found) == max_entries:
                return Listing(entries=sorted(found, key=_path), complete=False)
            found.append(entry)
        return Listing(entries=sorted(found, key=_path), complete=True)

    return list_files


def _checked(root: Path) -> Path:
    folder = root.expanduser().absolute()
    if not folder.is_dir():
        raise ConfigError(f"tools.builtin.root={root}: there is no such folder")
    if not rooted.supported:
        raise ConfigError("tools.builtin.root: this system cannot keep files tools within a folder")
    return folder


def _path(entry: Entry) -> str:
    return entry.path


def _text(root: Path, path: str, max_bytes: int) -> str:
    with rooted.opened_file(root, path) as descriptor, open(descriptor, "rb", closefd=False) as file:
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
    base = "/".join(rooted.parts(path))
    with rooted.opened_folder(root, path) as top:
        for folder, inner, files, descriptor in os.fwalk(".", dir_fd=top, follow_symlinks=False):
            inner.sort()
            within = "/".join(part for part in (base, folder.removeprefix(".").lstrip("/")) if part)
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
