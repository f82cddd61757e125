"""`aeon completion SHELL`: the script for a shell; `aeon completion -- WORD...`: completions of the last word.

They come from the configuration files themselves: nothing is composed, and nothing slow is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import get_args

from aeon.cli.job.syntax import COMMANDS, FLAGS, TEXTS, config_folders
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.compose.reference import entries_of, groups, top_entries
from aeon.domain.errors import ConfigError

SHELLS = ("bash", "fish", "zsh")
_INSTALL = "install="


def main(arguments: Sequence[str]) -> int:
    """Print a script, or completions a line each. Raises ConfigError for a shell that is not supported."""
    if arguments and arguments[0] == "--":
        if found := candidates(arguments[1:] or [""]):
            put("\n".join(found))
        return DONE
    if len(arguments) != 1 or arguments[0] not in SHELLS:
        wanted = f"{' '.join(arguments)}: no completion for this shell" if arguments else "which shell?"
        raise ConfigError(f"{wanted} (there are: {', '.join(SHELLS)})", hint='eval "$(aeon completion bash)"')
    put((TEXTS / f"completion.{arguments[0]}").read_text(encoding="utf-8"))
    return DONE


def install(arguments: Sequence[str]) -> int:
    """Print the script that Hydra's flag `-sc install=SHELL` names. Raises ConfigError for its other uses."""
    return main([text.removeprefix(_INSTALL) for text in arguments if text.startswith(_INSTALL)])


def candidates(words: Sequence[str]) -> list[str]:
    """The completions of the last of the words that follow `aeon`; empty where a file or a text is expected."""
    command, typed, own = words[0], words[-1], config_folders(words)
    offered: Iterable[str] = ()
    if len(words) == 2 and command in COMMANDS:
        offered = _arguments_of(command)
        if command == "docs" and typed:
            offered = [*offered, *(key.removesuffix("=") for key in _overrides(typed, own))]
    if typed.startswith("-"):
        offered = FLAGS
    elif not offered:
        offered = [*(COMMANDS if len(words) == 1 else ()), *(_overrides(typed, own) if typed else ())]
    return [text for text in offered if text.startswith(typed)]


def _arguments_of(command: str) -> Iterable[str]:
    """What the first argument of a command may be; empty where that is not one of a few words."""
    from aeon.cli.commands.docs import topics
    from aeon.domain.request import CallName

    words: dict[str, Iterable[str]] = {
        "cassette": ("export", "show"),
        "completion": SHELLS,
        "docs": topics(),
        "help": COMMANDS,
        "render": get_args(CallName),
        "schema": groups(),
    }
    return words.get(command, ())


def _overrides(typed: str, own: Sequence[Path]) -> list[str]:
    """The groups, options and keys that an override may begin with; its `+` or `~` stays before them."""
    bare = typed.lstrip("+~")
    key, options = bare.partition("=")[0], groups(own)
    if "=" in bare:
        found = [f"{key}={option}" for option in options.get(key, ())]
    elif "." in bare:
        found = sorted({f"{entry.path}=" for entry in entries_of(bare.partition(".")[0], own)})
    else:
        found = [text for group in options for text in (f"{group}=", f"{group}.")]
        top = (entry.path for entry in top_entries(own) if "." not in entry.path)
        found += [f"{path}=" for path in dict.fromkeys(top) if path not in options]
    return [f"{typed.removesuffix(bare)}{text}" for text in found]
