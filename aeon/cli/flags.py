"""The command line's flags that matter before any configuration is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

FLAGS = (
    *("--cfg", "--config-dir", "--config-name", "--config-path", "--help", "--hydra-help", "--info", "--multirun"),
    *("--package", "--resolve", "--run", "--shell-completion", "--version"),
)
"""Every long flag of a run."""

HELP = frozenset({"--help", "-h"})
COMPLETION = frozenset({"--shell-completion", "-sc"})
_FOLDER = ("--config-dir", "-cd", "--config-path", "-cp")


def config_folders(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The folders of a person's own configuration that the arguments name."""
    apart = [after for flag, after in pairwise(arguments) if flag in _FOLDER]
    joined = [text.partition("=")[2] for text in arguments if text.partition("=")[0] in _FOLDER and "=" in text]
    return tuple(Path(text).expanduser() for text in (*apart, *joined))
