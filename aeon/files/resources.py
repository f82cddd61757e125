"""Where the packaged configuration, prompts and schemas are, in a checkout and in an installed wheel alike."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def resource_root() -> Path:
    """The folder that holds `conf/`, `prompts/` and `schemas/`."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "conf").is_dir():
        return checkout
    return Path(str(files("aeon") / "_resources"))


def digest_of_files(files: Mapping[str, Path]) -> str:
    """SHA-256, hex, over the contents of files by name, in the order of their names."""
    total = hashlib.sha256()
    for name in sorted(files):
        content = files[name].read_bytes()
        total.update(f"{name}\0{len(content)}\0".encode() + content)
    return total.hexdigest()
