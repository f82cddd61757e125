"""Locates the packaged configuration, prompts and schemas, in a checkout and in an installed
wheel."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from aeon.files.pinned import read_file

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def resource_root() -> Path:
    """Return the folder with `conf/`, `prompts/` and `schemas/`."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "conf").is_dir():
        return checkout
    return Path(str(files("aeon") / "_resources"))


def list_pages() -> dict[str, Path]:
    """Return the documentation pages by the names that `aeon docs` accepts: README and pages by
    their own, decisions by number."""
    root = resource_root()
    pages = {path.stem: path for path in sorted((root / "docs").glob("*.md"))}
    decisions = {path.name[:4]: path for path in sorted((root / "docs" / "decisions").glob("*.md"))}
    return {"readme": root / "README.md", **pages, **decisions}


def find_meant(folder: Path, name: str, is_usable: Callable[[Path], bool]) -> Path | None:
    """Return the folder that was probably meant instead of an unusable one: `name` in it, its
    parent, or `name` next to it, whichever is usable first; None if none is."""
    around = Path(os.path.normpath(folder / ".."))
    places = (folder / name, around, around / name)
    return next((place for place in places if place.is_dir() and is_usable(place)), None)


def digest_of_files(files: Mapping[str, Path]) -> str:
    """Return the SHA-256 (hex) over the contents of files, in the order of their names."""
    total = hashlib.sha256()
    for name in sorted(files):
        content = read_file(files[name])
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()
