"""Where the packaged configuration, prompts and schemas are, in a checkout and in an installed wheel alike."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def resource_root() -> Path:
    """The folder that holds `conf/`, `prompts/` and `schemas/`."""
    checkout = _PACKAGE.parent
    if (checkout / "pyproject.toml").is_file() and (checkout / "conf").is_dir():
        return checkout
    return Path(str(files("aeon") / "_resources"))
