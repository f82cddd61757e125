"""`aeon help [COMMAND]`, `--help`: the texts in `texts/`, printed without loading or composing any configuration."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from aeon.cli.job.syntax import COMMANDS, GENERAL, TEXTS, config_folders
from aeon.cli.terminal.status import DONE
from aeon.domain.errors import ConfigError


def main(arguments: Sequence[str]) -> int:
    """Print the general help, or that of a command. Raises ConfigError for a command that does not exist."""
    if not arguments or arguments[0].startswith("-"):
        return print_general(arguments)
    name = arguments[0]
    if name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean `aeon help {near[0]}`?" if near else f"There are: {', '.join(COMMANDS)}."
        raise ConfigError(f"{name}: there is no such command", hint=hint)
    return print_for(name)


def print_for(command: str) -> int:
    """Print what a command takes."""
    print((TEXTS / f"{command}.txt").read_text(encoding="utf-8"), end="")
    return DONE


def print_general(arguments: Sequence[str]) -> int:
    """Print the general help, with the groups and options of the folders that the arguments name."""
    from aeon.config.compose.reference import groups  # the help of a command does not need it

    listed = [f"{group}: {', '.join(options)}" for group, options in groups(config_folders(arguments)).items()]
    print((TEXTS / f"{GENERAL}.txt").read_text(encoding="utf-8").replace("$GROUPS", "\n".join(listed)), end="")
    return DONE
