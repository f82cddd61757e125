"""Commands that installed packages register, as entry points of the group `aeon.commands`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from types import ModuleType

from aeon.domain.errors import ConfigError
from aeon.files.reference import find_registered, load_entry

GROUP = "aeon.commands"
Command = Callable[[Sequence[str]], int | None]
_WORD = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def is_registered(word: str) -> bool:
    """Whether a package registers a command under a word. What is no such word is not looked for."""
    return _WORD.fullmatch(word) is not None and word in find_registered(GROUP)


def list_registered() -> dict[str, str]:
    """The words of registered commands, each with the packages that register it."""
    return {
        word: ", ".join(entry.dist.name for entry in entries if entry.dist)
        for word, entries in find_registered(GROUP).items()
        if _WORD.fullmatch(word)
    }


def load_command(word: str) -> Command:
    """The function of a registered command; of a module, its function of that name. Raises ConfigError for what cannot
    be imported or called."""
    named = f"aeon {word}"
    loaded = load_entry(named, find_registered(GROUP)[word])
    command = getattr(loaded, function_of(word), None) if isinstance(loaded, ModuleType) else loaded
    if not callable(command):
        raise ConfigError(f"{named}: its package registers nothing that can be called")
    run: Command = command
    return run


def describe_command(word: str) -> str:
    """The help of a registered command: the docstring of its function."""
    package = list_registered()[word]
    text = inspect.getdoc(load_command(word)) or "Its package says nothing about it."
    return f"aeon {word}, a command of the package {package}\n\n{text}"


def function_of(word: str) -> str:
    """The name of the function that carries a command out."""
    return word.replace("-", "_")
