"""What explains the program: `aeon docs [TOPIC | KEY]`, `aeon help [COMMAND]`, and completion for shells. It comes from
the documentation and the configuration files: nothing is composed, and nothing slow is imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import get_args

import yaml

from aeon.cli.job.syntax import COMMANDS, FLAGS, GENERAL, TEXTS, config_folders
from aeon.cli.registered import describe_command, is_registered, list_registered
from aeon.cli.terminal.status import DONE
from aeon.cli.terminal.streams import put
from aeon.config.compose.reference import Entry, entries_of, groups, top_entries
from aeon.config.json_schema import describe_types, settings_schema
from aeon.domain.errors import ConfigError
from aeon.domain.request import CallName
from aeon.files.resources import resource_root

SHELLS = ("bash", "fish", "zsh")


def help(arguments: Sequence[str]) -> int:
    """Print what a command takes; without one the general help, with the groups and options of the folders that the
    arguments name. Raises ConfigError for a command that does not exist."""
    name = (
        arguments[0]
        if arguments and not arguments[0].startswith("-") and "=" not in arguments[0]
        else GENERAL
    )
    if name not in (*COMMANDS, GENERAL):
        if is_registered(name):
            put(describe_command(name))
            return DONE
        near = get_close_matches(name, [*COMMANDS, *list_registered()], n=1)
        meant = (
            f"Did you mean `aeon help {near[0]}`?" if near else "`aeon help` lists the commands."
        )
        raise ConfigError(f"{name}: there is no such command", hint=meant)
    text = (TEXTS / f"{name}.txt").read_text(encoding="utf-8")
    if name == GENERAL:
        options = groups(config_folders(arguments))
        own = (f"  aeon {word:<38} of {package}\n" for word, package in list_registered().items())
        text = text.replace("$REGISTERED\n", "".join(own))
        text = text.replace(
            "$GROUPS", "\n".join(f"{group}: {', '.join(names)}" for group, names in options.items())
        )
    put(text)
    return DONE


def docs(arguments: Sequence[str]) -> int:
    """Print a page, a key, or the list of pages. Raises ConfigError for what is neither a page nor a key."""
    named = next((text for text in arguments if not text.startswith("-")), "")
    if named:
        put(_find(named, config_folders(arguments)))
        return DONE
    put("aeon docs TOPIC prints a page, aeon docs KEY what a key of the configuration means.\n")
    for name, path in _pages().items():
        if not name.isdecimal():
            put(f"  {name:<14}  {path.read_text(encoding='utf-8').splitlines()[0].lstrip('# ')}")
    return DONE


def _pages() -> dict[str, Path]:
    root = resource_root()
    pages = {path.stem: path for path in sorted((root / "docs").glob("*.md"))}
    decisions = {path.name[:4]: path for path in sorted((root / "docs" / "decisions").glob("*.md"))}
    return {"readme": root / "README.md", **pages, **decisions}


def _find(named: str, own: Sequence[Path]) -> str:
    # A page's name also as messages and links write it: `docs/errors.md#every-error`.
    page, pages, options = Path(named.partition("#")[0].lower()).name, _pages(), groups(own)
    if path := pages.get(page.removesuffix(".md")) or pages.get(
        page[:4] if page[:4].isdecimal() else ""
    ):
        return path.read_text(encoding="utf-8")
    key = named.partition("=")[0]
    entries = [*entries_of(key.partition(".")[0], own), *top_entries(own)]
    if key in options:
        comments = {
            entry.path: entry.comment
            for entry in reversed(entries)
            if entry.path.startswith(f"{key}.")
        }
        lines = [f"  {path}  {text}".rstrip() for path, text in sorted(comments.items())]
        return "\n".join((f"{key}={' | '.join(options[key])}", *lines))
    while key:
        if found := [entry for entry in entries if entry.path == key]:
            return "\n".join(_describe_key(found))
        key = key.rpartition(".")[0]
    near = get_close_matches(named, [*pages, *options, *{entry.path for entry in entries}], n=3)
    hint = (
        f"Did you mean {', '.join(near)}?"
        if near
        else "`aeon docs` lists the pages, `aeon --cfg job` the keys."
    )
    raise ConfigError(f"{named}: there is no such page and no such key", hint=hint)


def _describe_key(entries: Sequence[Entry]) -> Iterator[str]:
    def value_in(entry: Entry) -> str:
        return str(yaml.safe_dump(entry.default, default_flow_style=True, width=10**6)).partition(
            "\n"
        )[0]

    def place_of(entry: Entry) -> str:
        group = entry.file.parent.name
        return entry.file.name if group == "conf" else f"{group}={entry.file.stem}"

    first = entries[0]
    basic = "  (basic)" if any(entry.is_basic for entry in entries) else ""
    yield f"{first.path}{basic}\n  {first.comment}"
    yield f"  type: {' or '.join(describe_types(settings_schema(), first.path)) or 'any'}"
    yield f"  default: {value_in(first)}  ({place_of(first)})"
    for entry in entries[1:]:
        if entry.default != first.default:
            comment = f"  {entry.comment}" if entry.comment != first.comment else ""
            yield f"  {place_of(entry)}: {value_in(entry)}{comment}"


def completion(arguments: Sequence[str]) -> int:
    """Print the script for a shell, or after `--` the completions of the last word, a line each; also as Hydra's flag
    `-sc install=SHELL`. Raises ConfigError for a shell that is not supported."""
    if "--" in arguments:
        if found := candidates(arguments[1:] or [""]):
            put("\n".join(found))
        return DONE
    shells = [text.removeprefix("install=") for text in arguments if not text.startswith("-")]
    if len(shells) != 1 or shells[0] not in SHELLS:
        raise ConfigError(
            f"which shell? (there are: {', '.join(SHELLS)})",
            hint="`aeon completion bash` prints the script for bash",
        )
    put((TEXTS / f"completion.{shells[0]}").read_text(encoding="utf-8"))
    return DONE


def candidates(words: Sequence[str]) -> list[str]:
    """The completions of the last of the words that follow `aeon`; empty where a file or a text is expected."""
    typed, own = words[-1], config_folders(words)
    first_arguments: dict[str, Iterable[str]] = {
        "cassette": ("export", "show"),
        "completion": SHELLS,
        "docs": _pages(),
        "help": (*COMMANDS, *list_registered()),
        "render": get_args(CallName),
        "runs": ("prune",),
        "schema": groups(),
    }
    if typed.startswith("-"):
        offered: Iterable[str] = FLAGS
    elif len(words) == 2 and words[0] in first_arguments and words[0] != "docs":
        offered = first_arguments[words[0]]
    else:
        first: Iterable[str] = ()
        if len(words) == 1:
            first = first_arguments["help"]
        elif words[0] == "docs":
            first = first_arguments["docs"]
        offered = [*first, *(_overrides(typed, own) if typed else ())]
    return [text for text in offered if text.startswith(typed)]


def _overrides(typed: str, own: Sequence[Path]) -> list[str]:
    bare = typed.lstrip("+~")
    key, options = bare.partition("=")[0], groups(own)
    if "=" in bare:
        found = [f"{key}={option}" for option in options.get(key, ())]
    elif "." in bare:
        found = sorted({f"{entry.path}=" for entry in entries_of(bare.partition(".")[0], own)})
    else:
        found = [text for group in options for text in (f"{group}=", f"{group}.")]
        top = dict.fromkeys(entry.path for entry in top_entries(own) if "." not in entry.path)
        found += [f"{path}=" for path in top if path not in options]
    return [f"{typed.removesuffix(bare)}{text}" for text in found]
