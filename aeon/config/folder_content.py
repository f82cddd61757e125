"""The files of a folder that would take effect: `aeon.yaml`, `.env`, and the files that these and
the configuration name, read once and hashed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

from aeon.config.named_files import (
    Text,
    find_named_files,
    find_named_folders,
    read_texts,
)
from aeon.config.project_file import FILE, Project, parse_project
from aeon.domain.errors import ConfigError
from aeon.files.text import read_regular_file

DOTENV = ".env"
MOST_FILES = 2_000
MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Content:
    """The content of `folder`, absolute: the bytes of each file, by its name below the folder, the
    project that `aeon.yaml` describes, if it exists, and the folders, absolute, whose files are all
    among these."""

    folder: Path
    files: Mapping[str, bytes]
    project: Project | None = None
    folders: frozenset[Path] = frozenset()

    @cached_property
    def digest(self) -> str:
        """SHA-256, hex, over the names and contents of all files."""
        total = hashlib.sha256()
        for name in sorted(self.files):
            # With the lengths no two sets of files give the same bytes.
            encoded = os.fsencode(name)
            content = self.files[name]
            total.update(b"%d %d\0" % (len(encoded), len(content)) + encoded + content)
        return total.hexdigest()

    @property
    def named(self) -> str:
        """The file that a message about the folder names."""
        return str(self.folder / (FILE if FILE in self.files else DOTENV))


def read_content(folder: Path) -> Content:
    """Read the files of a folder that would take effect, without using them. Raises ConfigError for
    a file that cannot be read, for a link that leads out of a folder, and for more than
    `MOST_FILES` files or `MOST_BYTES` bytes."""
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
    if FILE not in reading.files:
        return Content(folder, reading.files)
    project = parse_project(folder / FILE, reading.files[FILE])
    for named in project.folders.values():
        reading.add_named_folder(named)
    reading.add_what_files_name()
    return Content(folder, reading.files, project, frozenset(reading.folders))


def read_what_is_typed(content: Content, overrides: Iterable[str]) -> dict[str, bytes]:
    """Return the files of a folder, by name, that a command line itself names: modules and
    programs, with their imports."""
    texts = [(("args",), text.partition("=")[2]) for text in overrides]
    reading = _Reading(content.folder)
    for path in find_named_files(texts, content.folder):
        reading.add(path, content.folder)
    return reading.files


def _read_texts(path: Path, data: bytes) -> list[Text]:
    """Return the texts of a YAML file, and the files of its checks also as absolute paths: they are
    relative to that file."""
    texts = read_texts(path, data)
    beside = [(keys, path.parent / text) for keys, text in texts if keys[-1:] == ("files",)]
    return texts + [(keys, str(place)) for keys, place in beside]


@dataclass
class _Reading:
    folder: Path
    files: dict[str, bytes] = field(default_factory=dict)
    folders: set[Path] = field(default_factory=set)
    seen: int = 0
    size: int = 0

    def add_what_files_name(self) -> None:
        """Add the files that configuration files name, until nothing new is named."""
        read: set[str] = set()
        while more := [name for name in self.files if self._configures(name) and name not in read]:
            texts: list[Text] = []
            for name in more:
                texts += _read_texts(self.folder / name, self.files[name])
            read.update(more)
            for folder in find_named_folders(texts, self.folder):
                self.add_named_folder(folder)
            for path in find_named_files(texts, self.folder):
                self.add(path, self.folder)

    def _configures(self, name: str) -> bool:
        path = self.folder / name
        is_in_folder = any(path.is_relative_to(folder) for folder in self.folders)
        return name == FILE or (is_in_folder and path.suffix == ".yaml")

    def add_named_folder(self, folder: Path) -> None:
        """Add every file below a named folder."""
        if folder not in self.folders:
            self.folders.add(folder)
            self.add_folder(folder, folder)

    def add_folder(self, folder: Path, within: Path) -> None:
        """Add every file below a folder."""
        try:
            with os.scandir(folder) as entries:
                # A folder may have millions of entries.
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
        """Add a file; a link only to a file that is also below `within`."""
        name = path.relative_to(self.folder).as_posix()
        if name in self.files:
            return
        target = path.resolve() if path.is_symlink() else path
        if not target.is_relative_to(within) or target.is_dir():
            raise ConfigError(
                f"{path}: this link leads to {target}, which is not a file below {within}",
                hint="Put the file itself there.",
            )
        try:
            # It reads a byte more where there is one, which shows the excess.
            content = read_regular_file(target, MOST_BYTES - self.size)
        except OSError as error:
            raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
        self.size += len(content)
        if self.size > MOST_BYTES:
            raise self._make_excess_error(path, f"more than {MOST_BYTES // 2**20} MB")
        self.files[name] = content

    def _count(self, path: Path) -> None:
        self.seen += 1
        if self.seen > MOST_FILES:
            raise self._make_excess_error(path, f"more than {MOST_FILES} files and folders")

    def _make_excess_error(self, path: Path, what: str) -> ConfigError:
        return ConfigError(
            f"{self.folder / FILE}: the folders that it names hold {what} (at {path})",
            hint="Name folders that hold only configuration, prompts and schemas.",
        )
