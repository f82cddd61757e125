"""How a command declares what it takes, and how its words are read: argparse, with words
`name=VALUE` beside its options and a help that fits the terminal. A word is an option with the
prefix `+` to argparse."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from aeon.cli.terminal.width import fit_line, fit_text
from aeon.domain.errors import ConfigError

Declare = Callable[["CommandParser"], None]
_COLUMN = 20
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")


class OneOf:
    """Reads a value that is one of those that are known."""

    def __init__(self, *known: str) -> None:
        self.known = known

    def __call__(self, text: str) -> str:
        """The text. Raises ArgumentTypeError, with all that are known, for another one."""
        if text in self.known:
            return text
        there = "there is" if len(self.known) == 1 else "there are"
        raise argparse.ArgumentTypeError(f"{text}: {there} {', '.join(self.known)}")


class CommandParser(argparse.ArgumentParser):
    """The parser of a command. `declare` adds what the command takes, and names the function that
    carries it out by `set_defaults(function=...)`; its docstring is the help, the first line that
    of the list of commands."""

    def __init__(self, name: str, declare: Declare) -> None:
        super().__init__(prog=f"aeon {name}".rstrip(), add_help=False, prefix_chars="-+")
        self.name = name
        self.description = inspect.getdoc(declare)
        self._words: list[str] = []
        self.takes_overrides = False
        declare(self)
        self._form = self.usage or self._write_form()

    def add_word(self, name: str, **options: Any) -> None:
        """Declare a word `name=VALUE`, with the options of `add_argument`. A name with `~` at its
        end needs no `=`."""
        self._words.append(name)
        self.add_argument(f"+{name}", action=_StoreOnce, **options)

    def add_overrides(self, *, and_bare_words: bool = True) -> None:
        """Declare that the command is configured as a run: by overrides and by Hydra's flags. What
        is neither becomes a bare word, which is refused with what was meant, unless the command has
        positional words of its own."""
        self.takes_overrides = True
        hidden = argparse.SUPPRESS
        self.add_argument("+override", action="append", dest="overrides", default=[], help=hidden)
        if and_bare_words:
            self.add_argument("bare", nargs="*", help=hidden)
        self.add_config_flags()
        self.add_argument("--cfg", "-c", choices=("job", "hydra", "all"), help=hidden)
        self.add_argument("--info", "-i", nargs="?", const="all", choices=_INFO, help=hidden)
        for flag in ("--config-name -cn", "--package -p", "--experimental-rerun"):
            self.add_argument(*flag.split(), help=hidden)
        for flag in (
            "--multirun -m",
            "--resolve",
            "--hydra-help",
            "--run -r",
            "--shell-completion -sc",
        ):
            self.add_argument(*flag.split(), action="store_true", help=hidden)

    def add_config_flags(self) -> None:
        """Declare the flags for the folder of a person's own configuration."""
        text = "a folder of your own configuration"
        self.add_argument("--config-dir", "-cd", metavar="DIR", help=text)
        self.add_argument("--config-path", "-cp", help=argparse.SUPPRESS)
        text = "without the aeon.yaml of this folder"
        self.add_argument("--no-project", action="store_true", help=text)

    def parse_words(self, words: Sequence[str]) -> argparse.Namespace:
        """What the words say. Also the command's `name`, all `words` as they are, and `rest`, those
        behind `--`. Raises ConfigError for what the command does not take, with the nearest that it
        does."""
        end = words.index("--") if "--" in words else len(words)
        given, unknown = self.parse_known_intermixed_args([*self._write_options(words[:end])])
        if unknown:
            self._refuse(unknown[0])
        given.name = self.name
        given.words = [*words]
        given.rest = [*words[end + 1 :]]
        return given

    def list_forms(self) -> list[str]:
        """The flags, and the words up to their `=`, for completion."""
        flags = [flag for action in self._actions for flag in action.option_strings]
        words = [f"{name}=" for name in self._words]
        return [*words, *sorted(flag for flag in flags if flag.startswith("--"))]

    def list_values(self) -> list[str]:
        """The known values of positional words, and words `name=VALUE` with the known ones, for
        completion."""
        return [
            f"{_name(action)}{value}"
            for action in self._actions
            if isinstance(action.type, OneOf)
            for value in action.type.known
        ]

    def knows(self, flag: str) -> bool:
        """Whether the command takes a flag."""
        return flag in self._option_string_actions

    def format_usage(self) -> str:
        """The line that says how the command is typed."""
        return fit_line(f"usage: {self._form}", len("usage: "))

    def format_help(self) -> str:
        """Usage, description, and a row for each word and flag."""
        rows = "\n".join(
            f"  {_write_form(each):<{_COLUMN}}  {each.help}" for each in self._list_shown()
        )
        texts = (self.description, rows, self.epilog)
        return "\n\n".join((self.format_usage(), *(fit_text(text) for text in texts if text)))

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError for argparse's message, in the words that were typed."""
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            names = re.sub(r"\+([^,]+)", r"\1=", missing)
            message = f"{self.prog}: {names} is missing"
        message = re.sub(r"^argument (\S+): ", _name_argument, message)
        raise ConfigError(message, hint=self._write_hint())

    def _write_options(self, words: Sequence[str]) -> Iterator[str]:
        """The words, those of the form `name=VALUE` written as the options that stand for them to
        argparse."""
        is_value = False
        for word in words:
            name = self._find_name(word)
            if is_value or word.startswith("-"):
                yield word
            elif name is not None:
                yield f"+{name}={word.removeprefix(name).removeprefix('=')}"
            elif self.takes_overrides and ("=" in word or word.startswith("~")):
                yield f"+override={word}"
            else:
                self._check_positional(word)
                yield word
            is_value = not is_value and self._takes_value(word)

    def _find_name(self, word: str) -> str | None:
        for name in self._words:
            if word.startswith(name if name.endswith("~") else f"{name}="):
                return name
        return None

    def _takes_value(self, word: str) -> bool:
        action = self._option_string_actions.get(word)
        return action is not None and action.nargs is None

    def _check_positional(self, word: str) -> None:
        """Raise ConfigError for a word `name=VALUE` of a command that has such words, but not this
        one."""
        if "=" in word and self._words and not Path(word).exists():
            self._refuse(word)

    def _refuse(self, word: str) -> NoReturn:
        known = self.list_forms()
        name, equals, _ = word.partition("=")
        typed = name if name.startswith("-") else name + equals
        near = get_close_matches(typed, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else self._write_hint()
        raise ConfigError(f"{word}: {self.prog} takes no such word", hint=hint)

    def _write_hint(self) -> str:
        return f"`{self.prog} --help` explains: {self._form}"

    def _write_form(self) -> str:
        shown = self._list_shown()
        required = [_write_form(action) for action in shown if _is_required(action)]
        optional = [f"[{_write_form(action)}]" for action in shown if not _is_required(action)]
        overrides = ["[key=value ...]", "[group=option ...]"] if self.takes_overrides else []
        return " ".join((self.prog, *required, *optional, *overrides))

    def _list_shown(self) -> list[argparse.Action]:
        return [action for action in self._actions if action.help != argparse.SUPPRESS]


class _StoreOnce(argparse.Action):
    """Stores the value of a word, which must stand once."""

    def __call__(
        self,
        _parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        _option: str | None = None,
    ) -> None:
        if getattr(namespace, self.dest) is not self.default:
            raise argparse.ArgumentError(None, f"{_name(self)} stands twice")
        setattr(namespace, self.dest, values)


def _name(action: argparse.Action) -> str:
    """What stands before the value of an argument: `--flag `, `word=`, or nothing."""
    if not action.option_strings:
        return ""
    name = action.option_strings[0]
    return f"{name.removeprefix('+')}=" if name.startswith("+") else f"{name} "


def _write_form(action: argparse.Action) -> str:
    """How an argument is typed."""
    value = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if isinstance(action.type, OneOf) and action.metavar is None:
        value = "|".join(action.type.known)
    if action.nargs == 0:
        value = ""
    dots = " ..." if action.nargs in ("+", "*") else ""
    return f"{_name(action)}{value}{dots}".rstrip()


def _is_required(action: argparse.Action) -> bool:
    return action.required and action.nargs not in ("?", "*")


def _name_argument(found: re.Match[str]) -> str:
    """What an argument is called at the beginning of a message."""
    name = found[1]
    if name.startswith("+"):
        return f"{name[1:]}="
    return f"{name}: " if name.startswith("-") else ""
