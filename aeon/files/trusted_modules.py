"""Modules of a folder of which only some files are trusted: imported from the reviewed bytes, or
refused."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder, SourceLoader
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

from aeon.files.pinned import find_closed_folder


def search_trusted_modules(folder: Path) -> bool:
    """Search the pinned files of the closed folder that contains `folder`, after everything else;
    False if none contains it."""
    pinned = find_closed_folder()
    if pinned is None or not folder.resolve().is_relative_to(pinned.root):
        return False
    if _TRUSTED not in sys.meta_path:
        sys.meta_path.append(_TRUSTED)  # last, so that installed packages come first
    return True


class UntrustedModule(ModuleNotFoundError):
    """A module of a closed folder that the user has not trusted."""


class _TrustedModules(MetaPathFinder):
    """Finds modules of a closed folder among its pinned files, never on the disk."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """Return how to load a module; None if the folder does not have it."""
        pinned = find_closed_folder()
        if pinned is None:
            return None
        stem = fullname.replace(".", "/")
        for name in (f"{stem}/__init__.py", f"{stem}.py"):
            if name in pinned.files:
                loader = _PinnedSource(pinned.root / name, pinned.files[name])
                return spec_from_loader(fullname, loader, is_package=name.endswith("__init__.py"))
        if any(name.startswith(f"{stem}/") for name in pinned.files):
            return ModuleSpec(fullname, None, is_package=True)
        if any((pinned.root / name).exists() for name in (f"{stem}/__init__.py", f"{stem}.py")):
            problem = f"{stem}.py is none of the files that you have trusted in {pinned.root}"
            raise UntrustedModule(problem, name=fullname)
        return None


_TRUSTED = _TrustedModules()


class _PinnedSource(SourceLoader):
    """Compiles a module from its bytes; compiled files next to it are ignored."""

    def __init__(self, path: Path, data: bytes) -> None:
        self._path = path
        self._data = data

    def get_filename(self, fullname: str) -> str:  # noqa: ARG002
        """Return the module's original path."""
        return str(self._path)

    def get_data(self, path: str | bytes) -> bytes:  # noqa: ARG002
        """Return the source."""
        return self._data
