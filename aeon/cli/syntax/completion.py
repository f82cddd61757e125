"""`aeon completion SHELL`: completion for shells. Nothing is composed, and nothing slow is
imported."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from aeon.cli.syntax.commands import COMMANDS, SHELLS, TEXTS, find_command, make_parser
from aeon.cli.syntax.help import find_config_folders
from aeon.cli.syntax.registered import list_registered
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.compose.reference import entries_of, groups, top_entries
from aeon.domain.errors import ConfigError
from aeon.files.resources import list_pages


def completion(given: Namespace) -> int:
    """Print the script for a shell, or after `--` the completions of the last word, one a line;
    also as Hydra's flag `-sc install=SHELL`. Raises ConfigError for a shell that is not supported.
    """
    # Also without a word behind it: all commands are offered then.
    if "--" in given.words:
        if found := list_candidates(given.rest or [""]):
            put("\n".join(found))
        return DONE
    if given.shell is None:
        raise ConfigError(
            f"which shell? (there are: {', '.join(SHELLS)})",
            hint="`aeon completion bash` prints the script for bash",
        )
    put((TEXTS / f"completion.{given.shell}").read_text(encoding="utf-8"))
    return DONE


def list_candidates(words: Sequence[str]) -> list[str]:
    """Return the completions of the last of the words that follow `aeon`; empty where a file or a
    text is expected."""
    *before, typed = words
    own = find_config_folders(words)
    name = find_command(before)
    parser = make_parser(name)
    values = parser.known_values
    offered = [*_list_names(before, name), *values, *_list_subjects(name)]
    if typed:
        offered += parser.list_forms()
    expects_value = bool(values) and len(before) == len(name.split())
    if typed and (parser.takes_overrides or name == "docs") and not expects_value:
        offered += _list_overrides(typed, own)
    return [*dict.fromkeys(text for text in offered if text.startswith(typed))]


def _list_names(before: Sequence[str], name: str) -> Iterable[str]:
    """Return the commands that may stand here, or the second words of those that begin with the
    typed words."""
    if name == "help" or not before:
        return sorted({known.split()[0] for known in COMMANDS} | list_registered().keys())
    return [
        known.removeprefix(f"{before[0]} ") for known in COMMANDS if [*before] == known.split()[:-1]
    ]


def _list_overrides(typed: str, own: Sequence[Path]) -> list[str]:
    bare = typed.lstrip("+~")
    key, equals, _ = bare.partition("=")
    options = groups(own)
    if equals:
        found = [f"{key}={option}" for option in options.get(key, ())]
    elif "." in bare:
        found = sorted({f"{entry.path}=" for entry in entries_of(bare.partition(".")[0], own)})
    else:
        found = [*_list_top_keys(options, own)]
    return [f"{typed.removesuffix(bare)}{text}" for text in found]


def _list_top_keys(options: Iterable[str], own: Sequence[Path]) -> Iterator[str]:
    groups_and_keys = dict.fromkeys(options)
    for group in options:
        yield from (f"{group}=", f"{group}.")
    for entry in top_entries(own):
        if "." not in entry.path and entry.path not in groups_and_keys:
            groups_and_keys[entry.path] = None
            yield f"{entry.path}="


def _list_subjects(name: str) -> Collection[str]:
    """Return the words that a command can explain."""
    if name == "docs":
        return list_pages()
    return groups() if name == "schema" else ()
