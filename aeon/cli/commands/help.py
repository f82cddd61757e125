"""`aeon help [COMMAND]`, `--help`: the texts in `texts/`, printed without loading or composing any configuration."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from aeon.cli.job.syntax import COMMANDS, GENERAL, TEXTS, config_folders
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.domain.errors import ConfigError


def main(arguments: Sequence[str]) -> int:
    """Print the general help, or that of a command. Raises ConfigError for a command that does not exist."""
    name = arguments[0] if arguments and not arguments[0].startswith("-") else ""
    if name and name not in COMMANDS:
        near = get_close_matches(name, COMMANDS, n=1)
        hint = f"Did you mean `aeon help {near[0]}`?" if near else f"There are: {', '.join(COMMANDS)}."
        raise ConfigError(f"{name}: there is no such command", hint=hint)
    return print_help(name, arguments)


def print_help(command: str, arguments: Sequence[str]) -> int:
    """Print what a command takes; without one the general help, with the groups and options of the folders that the
    arguments name."""
    text = (TEXTS / f"{command or GENERAL}.txt").read_text(encoding="utf-8")
    if not command:
        from aeon.config.compose.reference import groups  # the help of a command does not need it

        listed = [f"{group}: {', '.join(options)}" for group, options in groups(config_folders(arguments)).items()]
        text = text.replace("$GROUPS", "\n".join(listed))
    put(text)
    return DONE
