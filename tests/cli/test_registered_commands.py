"""A command of somebody else's package: one file, registered by an entry point."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aeon.cli.main import main
from aeon.files.reference import find_registered

LINT = '''
"""Checks prompts."""

from aeon.domain.errors import ConfigError


def lint_prompts(parser):
    """Check prompts for words that are too long."""
    parser.add("[FILE ...]", "a template")
    parser.add("[longest=N]", "how long a word may be", type=int)
    parser.function = check


def check(given):
    if not given.file:
        raise ConfigError("which file?", hint="aeon lint-prompts FILE...")
    print(f"checked {', '.join(given.file)} by {given.longest}")
    return 1 if "bad.j2" in given.file else None


def nothing(parser):
    """Name no function."""


def old(words):
    print(words.upper())
'''
ENTRIES = """
[aeon.commands]
lint-prompts = prompt_lint:lint_prompts
lint-all = prompt_lint
lint-nothing = prompt_lint:nothing
lint-old = prompt_lint:old
broken = prompt_lint:missing
run = prompt_lint:lint_prompts
help = prompt_lint:lint_prompts
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder of packages with one that registers commands."""
    folder = tmp_path / "site"
    metadata = folder / "prompt_lint-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: prompt-lint\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRIES)
    (folder / "prompt_lint.py").write_text(LINT)
    return folder


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    find_registered.cache_clear()
    yield
    find_registered.cache_clear()
    sys.modules.pop("prompt_lint", None)


@pytest.mark.usefixtures("installed")
def test_a_registered_command_is_called_with_its_words(capsys: pytest.CaptureFixture[str]):
    assert main(["lint-prompts", "a.j2", "longest=30", "b.j2"]) == 0
    assert capsys.readouterr().out == "checked a.j2, b.j2 by 30\n"


@pytest.mark.usefixtures("installed")
def test_its_status_is_the_programs():
    assert main(["lint-prompts", "bad.j2"]) == 1


@pytest.mark.usefixtures("installed")
def test_an_error_that_it_raises_is_a_message_with_status_2(capsys: pytest.CaptureFixture[str]):
    assert main(["lint-prompts"]) == 2
    assert capsys.readouterr().err == "Error: which file?\naeon lint-prompts FILE...\n"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("words", [["help", "lint-prompts"], ["lint-prompts", "--help"]])
def test_its_help_is_what_it_declares(words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main(words) == 0
    assert (
        capsys.readouterr().out
        == """\
usage: aeon lint-prompts [FILE ...] [longest=N]

Check prompts for words that are too long.

  FILE ...              a template
  longest=N             how long a word may be

A command of the package prompt-lint.
"""
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--lngest"], "--lngest: aeon lint-prompts takes no such word\nDid you mean longest=?"),
        (["longst=3"], "longst=3: aeon lint-prompts takes no such word\nDid you mean longest=?"),
        (["longest=x"], "longest=invalid int value: 'x'"),
    ],
)
def test_what_it_does_not_take_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["lint-prompts", *words]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
def test_the_general_help_lists_it_with_its_package(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "lint-prompts" in each]
    assert line.split() == ["aeon", "lint-prompts", "of", "prompt-lint"]


def test_without_such_a_package_the_help_has_no_trace_of_it(capsys: pytest.CaptureFixture[str]):
    assert main(["--help"]) == 0
    assert "$" not in capsys.readouterr().out.replace("$(aeon", "")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("word", ["broken", "lint-all", "lint-nothing", "lint-old"])
def test_a_command_that_cannot_be_loaded_is_named(word: str, capsys: pytest.CaptureFixture[str]):
    assert main([word]) == 2
    assert f"aeon {word}" in capsys.readouterr().err


@pytest.mark.usefixtures("installed")
def test_a_command_of_aeons_own_is_not_replaced(capsys: pytest.CaptureFixture[str]):
    assert main(["help", "ask"]) == 0
    assert "checked" not in capsys.readouterr().out


@pytest.mark.usefixtures("installed")
def test_a_word_that_is_not_registered_is_still_explained(capsys: pytest.CaptureFixture[str]):
    assert main(["lint-prompt"]) == 2
    assert "is neither an override (key=value or group=option) nor a command" in (
        capsys.readouterr().err
    )


@pytest.mark.slow
def test_it_is_found_by_the_installed_program(site: Path, tmp_path: Path):
    environ = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-m", "aeon", "lint-prompts", "a.j2"],
        env=environ,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "checked a.j2 by None\n")


@pytest.mark.slow
def test_a_folder_that_the_program_is_started_in_registers_nothing(site: Path):
    done = subprocess.run(
        [sys.executable, "-m", "aeon", "lint-prompts", "a.j2"],
        cwd=site,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "checked" not in done.stdout


def test_looking_for_commands_loads_nothing_slow():
    code = "import sys, aeon.cli.main; sys.exit(bool({'pydantic', 'hydra'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], timeout=60, check=False)
    assert done.returncode == 0
