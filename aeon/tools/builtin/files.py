"""Reading files and listing folders under one folder, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
    """The tools for files, when there is a `root`. Raises ConfigError when the folder is missing."""
    return file_tools(settings.root, settings.max_file_bytes) if settings.root else ()


def file_tools(root: Path, max_bytes: int, max_entries: int = MAX_ENTRIES) -> tuple[Tool, Tool]:
    """`read_file` and `list_files` for one folder. Raises ConfigError when `root` is missing."""
    top = root.expanduser().resolve()
    if not top.is_dir():
        raise ConfigError(f"tools.builtin.root={root}: there is no such folder")

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
        text = _read_text(_locate(top, path), path, max_bytes)
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
        folder = _locate(top, path)
        if not folder.is_dir():
            raise ValueError(f"{path}: there is no such folder")
        found = list(islice(_walk(folder, recursive), max_entries + 1))
        entries = sorted(
            (_describe(each, top) for each in found[:max_entries]), key=lambda entry: entry.path
        )
        return Listing(entries=entries, complete=len(found) <= max_entries)

    return read_file, list_files


def _locate(root: Path, path: str) -> Path:
    found = (root / path).resolve()
    if not found.is_relative_to(root):
        raise ValueError(f"{path}: leads out of the tools' folder")
    return found


def _read_text(file: Path, path: str, max_bytes: int) -> str:
    if not file.is_file():
        raise ValueError(f"{path}: there is no such file")
    with file.open("rb") as opened:
        content = opened.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{path}: larger than {max_bytes} bytes")
    if b"\0" in content:
        raise ValueError(f"{path}: not a text file")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not a text file in UTF-8 (byte {error.start})") from None


def _walk(folder: Path, recursive: bool) -> Iterator[Path]:
    for within, folders, files in os.walk(folder):
        folders.sort()
        yield from (Path(within, name) for name in sorted(folders + files))
        if not recursive:
            return


def _describe(found: Path, root: Path) -> Entry:
    path = os.fsencode(found.relative_to(root).as_posix()).decode("utf-8", "backslashreplace")
    if not found.is_symlink() and found.is_file():
        return Entry(path=path, kind="file", size=found.stat().st_size)
    return Entry(
        path=path,
        kind="link" if found.is_symlink() else "folder" if found.is_dir() else "other",
        size=None,
    )
