"""`aeon --help`, `aeon help COMMAND` and the configuration folders of the general help."""

from __future__ import annotations

import inspect
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from itertools import pairwise
from pathlib import Path
from string import Template

from aeon.cli.syntax.commands import COMMANDS, TEXTS, make_parser
from aeon.cli.syntax.registered import is_registered, list_registered
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.cli.terminal.width import fit_text
from aeon.config.compose.reference import groups
from aeon.domain.errors import ConfigError
from aeon.report.words import program


def help(given: Namespace) -> int:
    """Print a command's arguments; the general help without a command. Raises ConfigError for a
    command that does not exist."""
    show_help(" ".join(given.command), given.words)
    return DONE


def show_help(name: str, words: Sequence[str]) -> None:
    """Print a command's arguments, also of the commands that begin with its name; without a name
    the general help, with the groups and options of the folders that the words name. Raises
    ConfigError for a command that does not exist."""
    if not name:
        put(fit_text(_write_general(words)))
        return
    names = [known for known in COMMANDS if f"{known} ".startswith(f"{name} ")]
    if not names and is_registered(name):
        names = [name]
    if not names:
        near = get_close_matches(name, [*COMMANDS, *list_registered()], n=1)
        hint = f"Did you mean `aeon help {near[0]}`?" if near else "`aeon help` lists the commands."
        raise ConfigError(f"{name}: there is no such command", hint=hint)
    put("\n\n".join(make_parser(known).write_help() for known in names))


def _write_general(words: Sequence[str]) -> str:
    options = groups(find_config_folders(words))
    rows = "\n".join(f"  {group + ':':<14}  {', '.join(names)}" for group, names in options.items())
    text = (TEXTS / "help.txt").read_text(encoding="utf-8")
    return Template(text).safe_substitute(
        PROGRAM=program(), COMMANDS="\n".join(_list_commands()), GROUPS=rows
    )


def _list_commands() -> Iterator[str]:
    for name, declare in COMMANDS.items():
        summary = (inspect.getdoc(declare) or "").partition("\n")[0]
        yield f"  aeon {name:<16}  {summary}"
    for word, package in list_registered().items():
        yield f"  aeon {word:<16}  of {package}"


def find_config_folders(words: Sequence[str]) -> list[Path]:
    """Return the user's own configuration folder that the words name, else that of a trusted
    project. A project file that cannot be used names none: a run reports it."""
    flags = ("--config-dir", "-cd", "--config-path", "-cp")
    named = [Path(text).expanduser() for flag, text in pairwise(words) if flag in flags]
    if named or "--no-project" in words:
        return named
    from aeon.config.project_file import find_project  # slow to load

    found = find_project(Path.cwd())
    if found is None:
        return []
    from aeon.config.trusted_folders import read_trusted_project

    with suppress(ConfigError):  # help never asks for trust
        own = read_trusted_project(found).config_dir
        return [own] if own else []
    return []
