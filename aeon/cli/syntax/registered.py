"""Commands that installed packages register, as entry points of the group `aeon.commands`."""

from __future__ import annotations

import functools
import re

from aeon.cli.syntax.parser import CommandParser, Declare
from aeon.domain.errors import ConfigError
from aeon.files.reference import call_factory, find_registered, load_entry

GROUP = "aeon.commands"
_WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def is_registered(word: str) -> bool:
    """Check whether a package registers a command under a word; text that cannot be a command's
    word is not looked up."""
    # Reading the entry points of all packages takes time, and most first words are overrides.
    return _WORD.fullmatch(word) is not None and word in find_registered(GROUP)


def list_registered() -> dict[str, str]:
    """Return the words of registered commands, each with the packages that register it."""
    return {
        word: ", ".join(entry.dist.name for entry in entries if entry.dist)
        for word, entries in find_registered(GROUP).items()
        if _WORD.fullmatch(word)
    }


def load_declaration(word: str) -> Declare:
    """Return the declaration of a registered command. Raises ConfigError if it cannot be imported;
    the declaration itself raises ConfigError if it cannot be called with a parser, or sets no
    function."""
    command = f"aeon {word}"
    registered = load_entry(command, find_registered(GROUP)[word])

    @functools.wraps(registered)
    def declare(parser: CommandParser) -> None:
        call_factory(command, registered, parser, hint=_HINT)
        if not parser.function:
            raise ConfigError(f"{command}: its declaration sets no function", hint=_HINT)
        parser.epilog = f"A command of the package {list_registered()[word]}."

    return declare


_HINT = "Its package must register a function that takes a parser: `aeon docs components`."
