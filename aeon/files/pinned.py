"""Pinned files: read and reviewed before they are used. From then on their content is fixed,
whatever happens on the disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from aeon.domain.errors import ConfigError

_WRITTEN_BY_PROGRAMS = frozenset({".db", ".log", ".sqlite", ".sqlite3"})
_BETWEEN_WORDS = re.compile(r"[\s'\"=:;|&()<>\[\]{},]+")
UNTRUSTED_HINT = (
    "`aeon trust` shows what you have trusted, and asks again. It finds files named in "
    "plain words within the "
    "project; give everything else on the command line."
)


@dataclass(frozen=True, slots=True)
class Pinned:
    """The `files` of a folder, by name relative to it. From `folders` (absolute), nothing else is
    read. With `open_to`, nothing else at all is read as configuration or imported, except below the
    folders and files in it."""

    root: Path
    files: Mapping[str, bytes]
    folders: frozenset[Path]
    open_to: tuple[Path, ...] | None = None

    def name_of(self, place: Path) -> str:
        """Return the name of a path relative to the root; empty for a path outside it."""
        return place.relative_to(self.root).as_posix() if place.is_relative_to(self.root) else ""


_pinned: dict[Path, Pinned] = {}


def pin(pinned: Pinned) -> None:
    """Use the given contents of a folder's files for the life of this process."""
    _pinned[pinned.root] = pinned


def unpin_all() -> None:
    """Read everything from the disk again."""
    _pinned.clear()


def list_pinned() -> tuple[Pinned, ...]:
    """Return everything pinned, so that another process can pin it too."""
    return tuple(_pinned.values())


def find_closed_folder() -> Pinned | None:
    """Return the folder outside whose pinned files nothing is read, if there is one."""
    return next((pinned for pinned in _pinned.values() if pinned.open_to is not None), None)


def read_file(path: Path, within: Path | None = None) -> bytes:
    """Read a configuration file, found as one `within` a folder. Raises OSError; raises ConfigError
    for a file that is not pinned, if only pinned files may be read."""
    place = Path(os.path.normpath(path.absolute()))
    data = _find_pinned(place)
    if data is not None:
        return data
    for pinned in _pinned.values():
        if _is_refused(pinned, place, within):
            raise ConfigError(
                f"{path}: this is none of the files that you have trusted in {pinned.root}",
                hint=UNTRUSTED_HINT,
            )
    return path.read_bytes()


def read_named(path: Path) -> bytes:
    """Read a file that the user or a configuration names, as pinned, else from the disk. Raises
    OSError."""
    found = path.expanduser()
    data = _find_pinned(Path(os.path.normpath(found.absolute())))
    return found.read_bytes() if data is None else data


def _find_pinned(place: Path) -> bytes | None:
    for pinned in _pinned.values():
        data = pinned.files.get(pinned.name_of(place))
        if data is not None:
            return data
    return None


def check_program(command: Iterable[str], directory: Path) -> None:
    """Raise ConfigError if a command names a file of a closed folder that differs from the pinned
    one."""
    pinned = find_closed_folder()
    if pinned is None:
        return
    for path in words_as_files(command, (directory, pinned.root)):
        name = pinned.name_of(path)
        if name and path.read_bytes() != pinned.files.get(name):
            raise ConfigError(
                f"{path}: a command names this file, and it is not as you have trusted "
                f"it in {pinned.root}",
                hint=UNTRUSTED_HINT,
            )


def split_words(text: str) -> list[str]:
    """Return the words of a command or an override's value that may name something."""
    return [word for word in _BETWEEN_WORDS.split(text) if word]


def words_as_files(texts: Iterable[str], folders: Iterable[Path]) -> Iterator[Path]:
    """Yield the absolute paths of files that words of texts name from a folder, directly or as
    Python modules, except data that programs write."""
    places = tuple(folders)
    for word in dict.fromkeys(word for text in texts for word in split_words(text)):
        stem = word.replace(".", "/")
        for folder in places:
            for name in (word, f"{stem}.py", f"{stem}/__main__.py", f"{stem}/__init__.py"):
                path = Path(os.path.normpath(folder / name))
                if path.suffix not in _WRITTEN_BY_PROGRAMS and _is_file(path):
                    yield path


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # too long for a name, or a null character
        return False


def _is_refused(pinned: Pinned, place: Path, within: Path | None) -> bool:
    if within in pinned.folders or any(place.is_relative_to(each) for each in pinned.folders):
        return True
    if pinned.open_to is None:
        return False
    return not any(place.is_relative_to(each) for each in pinned.open_to)
