"""`aeon completion SHELL`: the script for a shell; `aeon completion -- WORD...`: completions of the last word.

They come from the configuration files themselves: nothing is composed, and nothing slow is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from aeon.cli.job.syntax import COMMANDS, FLAGS, TEXTS, config_folders
from aeon.cli.terminal.status import DONE
from aeon.config.compose import reference as config_reference
from aeon.domain.errors import ConfigError

SHELLS = ("bash", "fish", "zsh")
_INSTALL = "install="


def main(arguments: Sequence[str]) -> int:
    """Print a script, or completions a line each. Raises ConfigError for a shell that is not supported."""
    if arguments and arguments[0] == "--":
        for candidate in candidates(arguments[1:] or [""]):
            print(candidate)
        return DONE
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        wanted = f"{' '.join(arguments)}: no completion for this shell" if arguments else "which shell?"
        raise ConfigError(f"{wanted} (there are: {', '.join(SHELLS)})", hint='eval "$(aeon completion bash)"')
    print((TEXTS / f"completion.{arguments[0]}").read_text(encoding="utf-8"), end="")
    return DONE


def install(arguments: Sequence[str]) -> int:
    """Print the script that Hydra's flag `-sc install=SHELL` names. Raises ConfigError for its other uses."""
    asked = next((text.removeprefix(_INSTALL) for text in arguments if text.startswith(_INSTALL)), "")
    return main([asked] if asked else [])


def candidates(words: Sequence[str]) -> list[str]:
    """The completions of the last of the words that follow `aeon`; empty where a file or a text is expected."""
    command, typed = (words[0] if len(words) > 1 else ""), words[-1]
    if len(words) == 2 and command in _ARGUMENTS:
        keys = _overrides(typed, config_folders(words)) if command == "docs" and typed else []
        return [*_with_prefix(typed, _ARGUMENTS[command]()), *(key.removesuffix("=") for key in keys)]
    if typed.startswith("-"):
        return _with_prefix(typed, FLAGS)
    commands = _with_prefix(typed, COMMANDS) if len(words) == 1 else []
    return [*commands, *_overrides(typed, config_folders(words))] if typed or commands else []


def _calls() -> Iterable[str]:
    from typing import get_args

    from aeon.domain.request import CallName

    return get_args(CallName)


def _pages() -> Iterable[str]:
    from aeon.cli.commands.docs import topics

    return topics()


_ARGUMENTS: dict[str, Callable[[], Iterable[str]]] = {
    "cassette": lambda: ("export", "show"),
    "completion": lambda: SHELLS,
    "docs": _pages,
    "help": lambda: COMMANDS,
    "render": _calls,
    "schema": config_reference.groups,
}


def _overrides(typed: str, own: Sequence[Path]) -> list[str]:
    """The groups, options and keys that begin as an override does; its `+` or `~` stays before them."""
    bare = typed.lstrip("+~")
    sign = typed[: len(typed) - len(bare)]
    key, equals, _ = bare.partition("=")
    groups = config_reference.groups(own)
    if equals:
        found = _with_prefix(bare, (f"{key}={option}" for option in groups.get(key, ())))
    elif "." in bare:
        entries = config_reference.entries_of(bare.partition(".")[0], own)
        found = _with_prefix(bare, sorted({f"{entry.path}=" for entry in entries}))
    else:
        top = (f"{entry.path}=" for entry in config_reference.top_entries(own) if "." not in entry.path)
        both = (text for group in groups for text in (f"{group}=", f"{group}."))
        found = _with_prefix(bare, dict.fromkeys((*both, *(text for text in top if text[:-1] not in groups))))
    return [f"{sign}{text}" for text in found]


def _with_prefix(typed: str, texts: Iterable[str]) -> list[str]:
    return [text for text in texts if text.startswith(typed)]
