"""What a folder would make take effect: `aeon.yaml`, `.env`, and the files of the folders that `aeon.yaml` names, read
once and hashed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from aeon.config.project_file import FILE, Project, parse_project
from aeon.domain.errors import ConfigError
from aeon.files.text import read_regular_file

DOTENV = ".env"
MOST_FILES = 2_000
MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Content:
    """What was read of `folder`, absolute: what is in each file, by its name below the folder, and the project that
    `aeon.yaml` describes, if it is there."""

    folder: Path
    files: Mapping[str, bytes]
    project: Project | None = None

    @cached_property
    def digest(self) -> str:
        """SHA-256, hex, over the names of all files and what is in them."""
        total = hashlib.sha256()
        for name in sorted(self.files):
            encoded, content = os.fsencode(name), self.files[name]
            total.update(b"%d %d\0" % (len(encoded), len(content)) + encoded + content)
        return total.hexdigest()

    @property
    def named(self) -> str:
        """The file that a message about the folder names."""
        return str(self.folder / (FILE if FILE in self.files else DOTENV))


def read_content(folder: Path) -> Content:
    """What a folder would make take effect, read and not used. Raises ConfigError for what cannot be read, for a link
    that leads out of a folder, and for more than `MOST_FILES` files or `MOST_BYTES` bytes."""
    folder = folder.resolve()
    reading = _Reading(folder)
    for name in (FILE, DOTENV):
        path = folder / name
        if path.is_symlink() or path.exists():
            reading.add(path, folder)
    if not reading.files:
        raise ConfigError(
            f"{folder}: there is neither {FILE} nor {DOTENV}, so nothing of it takes effect",
            hint="`aeon init DIR` writes a project to DIR.",
        )
    project = parse_project(folder / FILE, reading.files[FILE]) if FILE in reading.files else None
    for named in project.folders.values() if project else ():
        reading.add_folder(named, named)
    return Content(folder, reading.files, project)


@dataclass
class _Reading:
    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)
    seen: int = 0
    size: int = 0

    def add_folder(self, folder: Path, within: Path) -> None:
        """Add every file below a folder."""
        try:
            with os.scandir(folder) as entries:
                found = list(islice(entries, MOST_FILES + 1))
        except OSError as error:
            raise ConfigError(f"{folder}: cannot be read: {error.strerror or error}") from None
        for entry in sorted(found, key=lambda entry: entry.name):
            self._count(Path(entry.path))
            if entry.is_dir(follow_symlinks=False):
                self.add_folder(Path(entry.path), within)
            else:
                self.add(Path(entry.path), within)

    def add(self, path: Path, within: Path) -> None:
        """Add a file; a link only to a file that is below `within`, too."""
        name = path.relative_to(self.folder).as_posix()
        if name in self.files:
            return
        target = path.resolve() if path.is_symlink() else path
        if not target.is_relative_to(within) or target.is_dir():
            raise ConfigError(
                f"{path}: this link leads to {target}, which is no file below {within}",
                hint="Put the file itself there.",
            )
        try:
            content = read_regular_file(target, MOST_BYTES - self.size)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
        self.size += len(content)
        if self.size > MOST_BYTES:
            raise self._too_much(path, f"more than {MOST_BYTES // 2**20} MB")
        self.files[name] = content

    def _count(self, path: Path) -> None:
        self.seen += 1
        if self.seen > MOST_FILES:
            raise self._too_much(path, f"more than {MOST_FILES} files and folders")

    def _too_much(self, path: Path, what: str) -> ConfigError:
        return ConfigError(
            f"{self.folder / FILE}: the folders that it names hold {what} (at {path})",
            hint="Name folders that hold configuration, prompts and schemas alone.",
        )
