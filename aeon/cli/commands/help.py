"""`aeon help [COMMAND]`, `--help`: the texts in `texts/`, printed without loading or composing any configuration."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from aeon.cli.job.flags import config_folders
from aeon.cli.terminal.status import DONE
from aeon.config.compose.reference import groups
from aeon.domain.errors import ConfigError

_TEXTS = Path(__file__).with_name("texts")
_GENERAL = "aeon"


def main(arguments: Sequence[str]) -> int:
    """Print the general help, or that of a command. Raises ConfigError for a command that does not exist."""
    if not arguments or arguments[0].startswith("-"):
        return print_general(arguments)
    names = sorted(path.stem for path in _TEXTS.glob("*.txt") if path.stem != _GENERAL)
    name = arguments[0]
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"Did you mean `aeon help {near[0]}`?" if near else f"There are: {', '.join(names)}."
        raise ConfigError(f"{name}: there is no such command", hint=hint)
    return print_for(name)


def print_for(command: str) -> int:
    """Print what a command takes."""
    print(_read(command), end="")
    return DONE


def print_general(arguments: Sequence[str]) -> int:
    """Print the general help, with the groups and options of the folders that the arguments name."""
    listed = [f"{group}: {', '.join(options)}" for group, options in groups(config_folders(arguments)).items()]
    print(_read(_GENERAL).replace("$GROUPS", "\n".join(listed)), end="")
    return DONE


def _read(name: str) -> str:
    return (_TEXTS / f"{name}.txt").read_text(encoding="utf-8")
