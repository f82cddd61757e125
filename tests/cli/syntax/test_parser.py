"""How the words of a command are read, and what is answered to those that it does not take."""

from __future__ import annotations

from pathlib import Path

import pytest
from hydra._internal.utils import get_args_parser

from aeon.cli.syntax.commands import COMMANDS, find_command, make_parser
from aeon.cli.syntax.parser import CommandParser
from aeon.domain.errors import ConfigError


def declare_sort(parser: CommandParser) -> None:
    """Sort stones.

    By their weight, the heaviest last.

      aeon sort a.txt by=weight
    """
    parser.add("FILE ...", "stones, one a line", type=Path)
    parser.add("[by=weight|colour]", "what orders them", default="weight")
    parser.add("[like~=TEXT]", "those with a text")
    parser.add("[--limit N]", "so many", type=int)
    parser.add("[--quiet]", "print nothing")


def declare_run(parser: CommandParser) -> None:
    """Run."""
    parser.add("[out=FILE]", "where to")
    parser.add_overrides()


@pytest.fixture
def sort() -> CommandParser:
    return CommandParser("sort", declare_sort)


@pytest.fixture
def run() -> CommandParser:
    return CommandParser("run", declare_run)


def test_words_options_and_positional_words_stand_in_any_order(sort: CommandParser) -> None:
    given = sort.parse(["by=colour", "a", "--limit", "3", "b", "--quiet"])
    assert given.file == [Path("a"), Path("b")]
    assert (given.by, given.limit, given.quiet) == ("colour", 3, True)


def test_what_is_not_given_has_its_default(sort: CommandParser) -> None:
    given = sort.parse(["a"])
    assert (given.by, given.like, given.limit, given.quiet) == ("weight", None, None, False)


@pytest.mark.parametrize("word", ["like~=a = b", "like~a = b"])
def test_a_word_with_a_tilde_needs_no_equals_sign(sort: CommandParser, word: str) -> None:
    assert sort.parse(["x", word]).like == "a = b"


def test_a_file_whose_name_has_an_equals_sign_is_a_file(
    sort: CommandParser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a=1").touch()
    assert sort.parse(["a=1"]).file == [Path("a=1")]


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["a", "--lmit", "3"], "--lmit: aeon sort takes no such word", "Did you mean --limit?"),
        (["a", "bi=colour"], "bi=colour: aeon sort takes no such word", "Did you mean by=?"),
        (["a", "by=size"], "by=size: there are weight, colour", "`aeon sort --help` explains"),
        (["a", "by=weight", "by=weight"], "by= is given twice", "`aeon sort --help` explains"),
        (["a", "--limit", "x"], "--limit: invalid int value: 'x'", "`aeon sort --help` explains"),
        ([], "aeon sort: FILE is missing", "explains it: FILE ... [by=weight|colour]"),
    ],
)
def test_what_a_command_does_not_take_is_refused_with_the_nearest_that_it_does(
    sort: CommandParser, words: list[str], message: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as refusal:
        sort.parse(words)
    assert refusal.value.message == message
    assert hint in refusal.value.hint


def test_overrides_are_what_is_no_word_of_the_command_as_they_are_and_in_their_order(
    run: CommandParser,
) -> None:
    words = ["task=a = 'b' --c", "out=x", "~ttl", "+a.b=1", "--config-dir", "a=b", "-m", "task= -x"]
    given = run.parse(words)
    assert given.overrides == ["task=a = 'b' --c", "~ttl", "+a.b=1", "task= -x"]
    assert (given.out, given.config_dir, given.multirun) == ("x", "a=b", True)
    assert given.words == words


def test_a_folder_of_a_sweep_is_no_override(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep/1-mode=core").mkdir(parents=True)
    Path("mode=core").mkdir()

    def declare_weigh(parser: CommandParser) -> None:
        """Weigh."""
        parser.add("RUN", "what is weighed", type=Path)
        parser.add_overrides()

    given = CommandParser("weigh", declare_weigh).parse(["sweep/1-mode=core", "mode=core"])
    assert given.run == Path("sweep/1-mode=core")
    assert given.overrides == ["mode=core"]


def test_the_overrides_of_one_command_line_are_not_those_of_the_next(run: CommandParser) -> None:
    assert run.parse(["a=1"]).overrides == ["a=1"]
    assert run.parse([]).overrides == []


def test_what_stands_behind_two_dashes_is_left_as_it_is(run: CommandParser) -> None:
    given = run.parse(["a=1", "--", "--nonsense", "out="])
    assert (given.overrides, given.rest) == (["a=1"], ["--nonsense", "out="])


def test_help_has_a_row_for_each_word_and_fits_the_terminal(
    sort: CommandParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert (
        sort.write_help()
        == """\
usage: aeon sort FILE ... [by=weight|colour] [like~=TEXT]
       [--limit N] [--quiet]

Sort stones.

By their weight, the heaviest last.

  aeon sort a.txt by=weight

  FILE ...              stones, one a line
  by=weight|colour      what orders them
  like~=TEXT            those with a text
  --limit N             so many
  --quiet               print nothing"""
    )


@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_fits_the_terminal(
    name: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = make_parser(name).write_help()
    assert "None" not in shown
    commands_to_copy = ("  aeon ", "  # yaml-language-server")
    long = [line for line in shown.splitlines() if len(line) > int(columns)]
    assert [line for line in long if not line.startswith(commands_to_copy)] == []


def test_a_run_takes_the_flags_that_hydra_has() -> None:
    parser = make_parser("")
    own = {"-h", "--help", "--version"}  # the program answers these itself
    refused = {"--experimental-rerun"}  # it runs pickled jobs of `hydra.main`, which Aeon has not
    flags = {flag for action in get_args_parser()._actions for flag in action.option_strings}
    assert {flag for flag in flags if not parser.takes_flag(flag)} == own | refused


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["runs", "prune", "--yes"], "runs prune"),
        (["runs", "x"], "runs"),
        (["runs prune"], ""),
        (["task=x"], ""),
        ([], ""),
    ],
)
def test_a_command_is_found_by_its_longest_name(words: list[str], name: str) -> None:
    assert find_command(words) == name
