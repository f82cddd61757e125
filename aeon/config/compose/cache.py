"""What composing works out of unchanged files: for as long as a process lives, and in the person's cache folder for the
next start."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import hydra
import omegaconf

_MOST_IN_MEMORY, _MOST_IN_FILE = 512, 16
_made: dict[Any, dict[Any, bytes]] = {}


def make_once(files: tuple[Any, ...], key: Any, make: Callable[[], Any]) -> Any:
    """What `make` gives, made anew from its pickle each time; `files` says which files it was made of, and their state.
    A cache that cannot be read or written is none."""
    path = _path(files)
    if files not in _made:
        _made.clear()
        _made[files] = _read(path, files)
    made = _made[files]
    if key not in made:
        if len(made) >= _MOST_IN_MEMORY:
            made.clear()
        made[key] = pickle.dumps(make())
        if len(made) <= _MOST_IN_FILE:
            _write(path, (files, made))
    return pickle.loads(made[key])


def _path(files: tuple[Any, ...]) -> Path:
    """One file for each set of folders and versions; installing a package changes the time of its folder."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "aeon")  # noqa: PTH111
    packages = Path(hydra.__file__).parents[1]
    versions = (
        hydra.__version__,
        omegaconf.__version__,
        sys.version,
        packages,
        packages.stat().st_mtime_ns,
    )
    names = [file[0] for file in files]
    return folder / f"composed-{sha256(repr((versions, names)).encode()).hexdigest()[:16]}.pickle"


def _read(path: Path, files: tuple[Any, ...]) -> dict[Any, bytes]:
    """Only what this person wrote is read: a pickle can run anything."""
    with suppress(Exception):
        if (
            path.is_absolute()
            and path.stat().st_uid == os.getuid()
            and not path.stat().st_mode & 0o022
        ):
            made_of, made = pickle.loads(path.read_bytes())
            return made if made_of == files else {}
    return {}


def _write(path: Path, value: Any) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    if not path.is_absolute():  # nobody's home, or no folder by the standard of these names
        return
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside.touch(mode=0o600)
        beside.write_bytes(pickle.dumps(value))
        beside.replace(path)
