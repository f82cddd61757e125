"""Declares and parses the arguments of a command: by argparse, with words `name=VALUE` as well as
flags, and a help that fits the terminal."""

from __future__ import annotations

import argparse
import inspect
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from aeon.cli.terminal.width import fit_line, fit_text
from aeon.domain.errors import ConfigError

Declare = Callable[["CommandParser"], None]
_COLUMN = 20
_INFO = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")
_SWITCHES = ("--multirun -m", "--resolve", "--hydra-help", "--run -r", "--shell-completion -sc")
_TIMES = {("", True): "?", ("...", True): "*", ("...", False): "+"}


class CommandParser:
    """The parser of a command. `declare` adds the arguments, and sets `function`, which carries the
    command out and returns the exit status: a function of `parse`'s result, or its place,
    `package.module:function`, imported only then. The docstring of `declare` is the help, its first
    line that of the list of commands."""

    def __init__(self, name: str, declare: Declare) -> None:
        self.name = name
        self.program = f"aeon {name}".rstrip()
        self.function: Callable[[Namespace], int | None] | str = ""
        self.takes_overrides = False
        self.known_values: list[str] = []
        self.epilog = ""
        self.usage = ""
        self._description = inspect.getdoc(declare) or ""
        self._rows: list[tuple[str, str]] = []
        self._words: list[str] = []
        self._flags: dict[str, bool] = {}
        # argparse has no words NAME=VALUE: they are handed to it as options, +NAME=VALUE.
        self._parser = _Parser(prog=self.program, add_help=False, prefix_chars="-+")
        declare(self)
        self._parser.usage = self.write_usage()

    def add(
        self,
        form: str,
        text: str,
        *,
        type: Callable[[str], Any] = str,
        known: Sequence[str] = (),
        default: object = None,
        dest: str = "",
    ) -> None:
        """Declare an argument by its form in the usage: `FILE`, `FILE ...`, `out=FILE`,
        `output=json|csv`, `--open`, `--limit N`. In brackets it is optional, and `default` applies.
        `text` is its help, `type` converts its value, `known` are the allowed values. `dest` is its
        attribute, by default its name in lower case."""
        self._rows.append((form, text))
        name, value = _split(form)
        metavar, _, dots = value.partition(" ")
        if "|" in value:
            known = value.split("|")
        dest = dest or _write_attribute(name or metavar)
        is_optional = form.startswith("[")
        if name.startswith("--") and not value:
            self._add_flag(name, action="store_true", dest=dest)
            return
        options: dict[str, Any] = {"default": default, "type": type}
        if known:
            options["type"] = partial(_read_one_of, known=known)
        if name.startswith("--"):
            self._add_flag(name, dest=dest, **options)
            return
        self.known_values += [f"{name}{each}" for each in known]
        if name:
            word = name.removesuffix("=")
            self._words.append(word)
            self._parser.add_argument(f"+{word}", dest=dest, required=not is_optional, **options)
        else:
            times = _TIMES.get((dots, is_optional))
            self._parser.add_argument(dest, nargs=times, metavar=metavar, **options)

    def add_overrides(self, *, and_bare_words: bool = True) -> None:
        """Declare that the command is configured as a run: by overrides and by Hydra's flags. Any
        other word becomes a bare word, which is refused with a suggestion, unless the command has
        positional words of its own."""
        self.takes_overrides = True
        self._parser.add_argument("+override", action="append", dest="overrides", default=[])
        if and_bare_words:
            self._parser.add_argument("bare", nargs="*")
        self.add_config_flags()
        self._add_flag("--cfg -c", choices=("job", "hydra", "all"))
        self._add_flag("--info -i", nargs="?", const="all", choices=_INFO)
        for flag in ("--config-name -cn", "--package -p"):
            self._add_flag(flag)
        for flag in _SWITCHES:
            self._add_flag(flag, action="store_true")

    def add_config_flags(self) -> None:
        """Declare the flags for the user's own configuration folder."""
        self.add("[--config-dir DIR]", "a folder of your own configuration")
        self.add("[--no-project]", "without the aeon.yaml of this folder")
        self._add_flag("-cd", dest="config_dir")
        self._add_flag("--config-path -cp")

    def _add_flag(self, names: str, **options: Any) -> None:
        takes_value = not options.keys() & {"action", "nargs"}
        self._flags |= dict.fromkeys(names.split(), takes_value)
        self._parser.add_argument(*names.split(), **options)

    def parse(self, words: Sequence[str]) -> Namespace:
        """Parse the words; the result also has the command's `name`, all `words` unchanged, and
        `rest`, those behind `--`. Raises ConfigError for a word that the command does not take,
        with the nearest that it does."""
        end = words.index("--") if "--" in words else len(words)
        written = [*self._write_options(words[:end])]
        given, unknown = self._parser.parse_known_intermixed_args(written)
        if unknown:
            self._refuse(unknown[0])
        given.name = self.name
        given.words = [*words]
        given.rest = [*words[end + 1 :]]
        return given

    def carry_out(self, given: Namespace) -> int:
        """Call the function and return the exit status. A ConfigError for an unknown key suggests the
        command's own words first."""
        function = self.function
        if isinstance(function, str):
            module, _, name = function.partition(":")
            function = getattr(import_module(module), name)
        try:
            return int(function(given) or 0)
        except ConfigError as error:
            error.message = self._suggest_words(given, error.message)
            raise

    def list_forms(self) -> list[str]:
        """Return the flags, and the words up to their `=`, for completion."""
        flags = sorted(flag for flag in self._flags if flag.startswith("--"))
        return [*(f"{name}=" for name in self._words), *flags]

    def takes_flag(self, flag: str) -> bool:
        """Check whether the command takes a flag."""
        return flag in self._flags

    def write_usage(self) -> str:
        """Return the line that shows how to type the command."""
        if self.usage:
            return self.usage
        forms = [form for form, _ in self._rows]
        overrides = ["[key=value ...]", "[group=option ...]"] if self.takes_overrides else []
        return " ".join((self.program, *forms, *overrides))

    def write_help(self) -> str:
        """Return usage, description, and a row for each word and flag, as wide as the terminal."""
        rows = (f"  {form.strip('[]'):<{_COLUMN}}  {text}" for form, text in self._rows)
        texts = (self._description, "\n".join(rows), self.epilog)
        usage = fit_line(f"usage: {self.write_usage()}", len("usage: "))
        return "\n\n".join((usage, *(fit_text(text) for text in texts if text)))

    def _write_options(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the words, those of the form `name=VALUE` written as options with the prefix
        `+`."""
        is_value = False
        found: set[str] = set()
        for word in words:
            name = self._find_name(word)
            if is_value or word.startswith("-"):
                yield word
            elif name in found:
                raise ConfigError(f"{name}= is given twice", hint=self._parser.hint)
            elif name:
                found.add(name)
                yield f"+{name}={word.removeprefix(name).removeprefix('=')}"
            elif self.takes_overrides and _is_override(word):
                yield f"+override={word}"
            # The name of a file may hold a =.
            elif "=" in word and self._words and not Path(word).exists():
                self._refuse(word)
            else:
                yield word
            is_value = not is_value and self._flags.get(word, False)

    def _find_name(self, word: str) -> str:
        """Return the name of a word `name=VALUE` that the command takes; one with `~` needs no
        `=`."""
        for name in self._words:
            if word.startswith(name if name.endswith("~") else f"{name}="):
                return name
        return ""

    def _suggest_words(self, given: Namespace, message: str) -> str:
        """Return the message with the nearest of the command's own words for each mistyped one,
        which was taken for a key of the configuration."""
        for text in getattr(given, "overrides", ()):
            name = text.partition("=")[0]
            for near in get_close_matches(name, self._words, n=1):
                problem = f"{name}: unknown key; "
                pattern = rf"(?m)^( *){re.escape(problem)}.*$"
                message = re.sub(pattern, rf"\1{problem}did you mean {near}=?", message)
        return message

    def _refuse(self, word: str) -> NoReturn:
        name, equals, _ = word.partition("=")
        typed = name if name.startswith("-") else name + equals
        near = get_close_matches(typed, self.list_forms(), n=1)
        hint = f"Did you mean {near[0]}?" if near else self._parser.hint
        raise ConfigError(f"{word}: {self.program} takes no such word", hint=hint)


def _is_override(word: str) -> bool:
    """Check whether a word is an override, and not the folder of a sweep's job, as
    `SWEEP/1-mode=core`."""
    name, equals, _ = word.partition("=")
    is_path = "/" in name and Path(word).exists()
    return word.startswith("~") or (bool(equals) and not is_path)


class _Parser(argparse.ArgumentParser):
    """Reports argparse's errors as ConfigError, in the words that were typed."""

    @property
    def hint(self) -> str:
        """A hint with the command's usage."""
        words = (self.usage or "").removeprefix(self.prog).strip()
        return (
            f"`{self.prog} --help` explains it: {words}"
            if words
            else f"`{self.prog} --help` explains it."
        )

    def format_usage(self) -> str:
        """Return the usage line for argparse."""
        return f"usage: {self.usage}"

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError for a message of argparse."""
        message = re.sub(r"^argument (-\S+): ", r"\1: ", message)
        message = re.sub(r"^argument \+(\S+): ", r"\1=", message)
        message = re.sub(r"^argument \S+: ", "", message)
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            names = re.sub(r"\+([^,]+)", r"\1=", missing)
            verb = "are" if "," in names else "is"
            message = f"{self.prog}: {names} {verb} missing"
        raise ConfigError(message, hint=self.hint)


def _read_one_of(text: str, known: Sequence[str]) -> str:
    """Return the text. Raises ArgumentTypeError, with all known values, for another one."""
    if text in known:
        return text
    # Not argparse's `choices`: its message differs between versions of Python.
    there = "there is" if len(known) == 1 else "there are"
    raise argparse.ArgumentTypeError(f"{text}: {there} {', '.join(known)}")


def _split(form: str) -> tuple[str, str]:
    """Split a form into the part before the value, `--flag` or `word=` or nothing, and the
    value."""
    bare = form.strip("[]")
    if bare.startswith("--"):
        flag, _, value = bare.partition(" ")
        return flag, value
    name, equals, value = bare.rpartition("=")
    return name + equals, value


def _write_attribute(name: str) -> str:
    return name.strip("-=~").partition(".")[0].replace("-", "_").lower()
