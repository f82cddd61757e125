"""Files that were read, and looked at, before they are used: from then on they are what they were, whatever becomes of
them on the disk."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from aeon.domain.errors import ConfigError

_folders: dict[Path, Mapping[str, bytes]] = {}


def pin_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Take what is in a folder, absolute, from `files`, by names below it, for as long as this process lives."""
    _folders[folder] = files


def unpin_folders() -> None:
    """Take everything from the disk again."""
    _folders.clear()


def is_pinned(folder: Path) -> bool:
    """Whether what is in a folder is pinned."""
    return folder in _folders


def read_file(path: Path, within: Path | None = None) -> bytes:
    """What is in a file, looked for as one `within` a folder. Raises OSError; ConfigError for a file of a pinned folder
    that was not in it, and where a name leads out of a pinned folder."""
    place = Path(os.path.normpath(path.absolute()))
    folder = within if within in _folders else _find_pinned(place)
    if folder is None:
        return path.read_bytes()
    name = place.relative_to(folder).as_posix() if place.is_relative_to(folder) else ""
    if name not in _folders[folder]:
        raise ConfigError(
            f"{path}: this is none of the files that you have trusted in {folder}",
            hint="Configuration that you trust is in one folder; `aeon trust` shows what is, and asks.",
        )
    return _folders[folder][name]


def _find_pinned(path: Path) -> Path | None:
    return next((folder for folder in _folders if path.is_relative_to(folder)), None)
