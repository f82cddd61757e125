"""The command line in Hydra's form: free text quoted, standard input read, flags and overrides apart."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from omegaconf import DictConfig

from aeon.cli.job.syntax import COMMANDS
from aeon.cli.terminal.stderr import say
from aeon.config import recompose as config_origin
from aeon.config.compose import compose as config_compose
from aeon.config.compose import hydra_private
from aeon.config.compose.hydra_private import CONFIG_NAME
from aeon.config.compose.literal import quote_override
from aeon.config.origin import Composition
from aeon.config.project_file import find_project, read_project
from aeon.domain.errors import ConfigError
from aeon.files.text import decode_utf8

if TYPE_CHECKING:
    from aeon.config.settings import Settings

STANDARD_INPUT = "-"
_TASKS = ("task=", "task_file=", "resume=")
_APART = re.compile(r"(?:^| )(\S+?)(?: = | =|= )(\S+)")
_EXPANDED = frozenset('"$`\\!')
"""The characters that a shell expands within double quotes."""
_SHOWING = ("hydra_help", "cfg", "info", "experimental_rerun")


@dataclass(frozen=True, slots=True)
class Arguments:
    """A parsed command line. `flags` is Hydra's own namespace."""

    flags: argparse.Namespace
    overrides: tuple[str, ...]

    @property
    def shows(self) -> bool:
        """Whether Hydra is to print something, and nothing is to be run."""
        return any(getattr(self.flags, name) for name in _SHOWING)

    def compose(self, overrides: Sequence[str], *, with_hydra: bool = False) -> tuple[DictConfig, frozenset[str]]:
        """Overrides composed in this folder, and the keys that had to be added (`config_compose.compose_adding`)."""
        return config_compose.compose_adding(
            overrides, self.config_dir, config_name=self.config_name, with_hydra=with_hydra
        )

    def settings(self, *more: str) -> Settings:
        """The validated settings of these overrides and of `more`. Raises ConfigError."""
        from aeon.config.load import settings_from

        overrides = [*self.overrides, *more]
        return settings_from(config_compose.compose(overrides, self.config_dir, config_name=self.config_name))

    @property
    def config_dir(self) -> Path | None:
        """The user's own configuration folder, searched before the packaged one."""
        folder = self.flags.config_dir or self.flags.config_path
        return Path(folder).expanduser().resolve() if folder else None

    @property
    def config_name(self) -> str:
        """The primary configuration file, without its suffix."""
        return str(self.flags.config_name or CONFIG_NAME)


def parse(arguments: Sequence[str]) -> Arguments:
    """Parse a command line; with `resume=DIR` the overrides of that run come first.

    Raises TaskTextError for text that is not valid UTF-8, ConfigError for a bare word or a DIR that is no run's. Leaves
    with status 2 and a usage line for an unknown flag.
    """
    parser = hydra_private.arguments_parser()
    parser.add_argument("--no-project", action="store_true")
    parser.prog, parser.usage = "aeon", 'aeon task="..." [key=value ...] [group=option ...]   (aeon --help explains)'
    flags = parser.parse_intermixed_args([quote_override(argument, _text) for argument in arguments])
    if flags.config_dir and flags.config_path:
        raise ConfigError("--config-dir and --config-path are both given", hint="Give one of them.")
    overrides = tuple(flags.overrides)
    bare = [text for text in overrides if "=" not in text and not text.startswith("~")]
    if bare:
        raise ConfigError(
            f"{bare[0]}: this is no override (key=value or group=option) and no command",
            hint=_suggest(bare[0], arguments),
        )
    return _add_resumed(_add_project(Arguments(flags, overrides)))


def _add_project(given: Arguments) -> Arguments:
    """The command line after the overrides of the project file in force, which are reported. Raises ConfigError."""
    found = None if given.flags.no_project else find_project(Path.cwd())
    if found is None:
        return given
    from aeon.config import project_check  # slow to load, and only for a project file

    if project_check.is_of_recorded_run(given.overrides):
        say(f"Project {found}: left out, since a run brings its own overrides")
        return given
    project = read_project(found)
    overrides = project_check.check_overrides(project)
    say("\n".join(project_check.describe_project(project)))
    flags = argparse.Namespace(**vars(given.flags))
    if given.config_dir is None and project.config_dir is not None:
        flags.config_dir = str(project.config_dir)
    flags.overrides = [*project_check.without_chosen_groups(given.overrides, overrides), *given.overrides]
    return Arguments(flags, tuple(flags.overrides))


def _add_resumed(given: Arguments) -> Arguments:
    """The command line after the overrides of the run that is resumed, if one is."""
    composed = config_origin.composition(
        Composition(overrides=given.overrides, config_dir=given.config_dir, config_name=given.config_name)
    )
    flags = argparse.Namespace(**vars(given.flags))
    flags.overrides, flags.config_name = list(composed.overrides), composed.config_name
    if composed.config_dir is not None:
        flags.config_dir, flags.config_path = str(composed.config_dir), None
    return Arguments(flags, composed.overrides)


def _suggest(word: str, arguments: Sequence[str]) -> str:
    """What a bare word was most likely meant as, by the words around it."""
    at = next((index for index, argument in enumerate(arguments) if argument == word), 0)
    before = arguments[at - 1] if at else ""
    if apart := _APART.search(" ".join(arguments[max(0, at - 2) : at + 3])):
        return f"No blanks around =: {_as_typed('='.join(apart.groups()))}"
    words = " ".join(takewhile(lambda text: not is_override(text), arguments[at:]))
    if before.startswith("task="):
        return f"If it belongs to the task, quote it: {_as_typed(f'{before} {words}')}"
    near = get_close_matches(word, COMMANDS, n=1)
    if any(argument.startswith(_TASKS) for argument in arguments):
        advice = "A task is given already; to set a key, write key=value."
    else:
        advice = f"If it is the task: {_as_typed(f'task={words}')}"
    return f"Did you mean `aeon {near[0]}`? {advice}" if near else advice


def is_override(argument: str) -> bool:
    """Whether an argument is an override or a flag rather than a bare word."""
    return "=" in argument or argument.startswith(("-", "~"))


def _as_typed(override: str) -> str:
    """An override as typed in a shell: its value in quotes where it needs them or is a task."""
    key, _, value = override.partition("=")
    if key != "task" and shlex.quote(value) == value:
        return override
    return f"{key}={quoted_for_shell(value)}"


def quoted_for_shell(text: str) -> str:
    """A text quoted for a shell; in double quotes where they suffice."""
    return shlex.quote(text) if set(text) & _EXPANDED else f'"{text}"'


def _text(key: str, argument: str) -> str:
    """The text of an argument; arguments come as bytes, which need not be UTF-8."""
    if key == "task" and argument == STANDARD_INPUT:
        return decode_utf8(_standard_input(), "standard input")
    try:
        data = os.fsencode(argument)
    except UnicodeEncodeError:
        return argument
    return decode_utf8(data, key)


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise ConfigError("task=-: standard input is closed", hint='Pipe the task in, or give it as task="...".')
    try:
        if sys.stdin.isatty():
            say("Reading the task from this terminal: type it, then Ctrl-D on a line of its own.")
        return sys.stdin.buffer.read()
    except OSError as error:
        raise ConfigError(f"task=-: standard input cannot be read: {error.strerror}") from None
