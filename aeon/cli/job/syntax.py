"""The words of the command line that are known before any configuration is loaded: subcommands and flags."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from aeon.domain.errors import ConfigError

TEXTS = Path(__file__).parents[1] / "commands" / "texts"
GENERAL = "aeon"
COMMANDS = tuple(sorted(path.stem for path in TEXTS.glob("*.txt") if path.stem != GENERAL))
"""The subcommands: those with a help text. `main(arguments) -> int` of the module of that name in `commands/` runs
each, and is imported only when it is called."""

FLAGS = (
    *("--cfg", "--config-dir", "--config-name", "--config-path", "--help", "--hydra-help", "--info", "--multirun"),
    *("--no-project", "--package", "--resolve", "--run", "--shell-completion", "--version"),
)
"""Every long flag of a run."""

HELP = frozenset({"--help", "-h"})
COMPLETION = frozenset({"--shell-completion", "-sc"})
_FOLDER = ("--config-dir", "-cd", "--config-path", "-cp")


def config_folders(arguments: Sequence[str]) -> tuple[Path, ...]:
    """The folders of a person's own configuration that the arguments name, else that of the project.

    A project file that cannot be used names none: a run reports it.
    """
    named = tuple(Path(text).expanduser() for flag, text in pairwise(arguments) if flag in _FOLDER)
    if named or "--no-project" in arguments:
        return named
    from aeon.config.project_file import find_project, read_project  # slow to load

    with suppress(ConfigError):
        found = find_project(Path.cwd())
        own = read_project(found).config_dir if found else None
        return (own,) if own else ()
    return ()
