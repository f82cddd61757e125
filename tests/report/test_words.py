"""Commands are printed as they can be typed where the program runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from aeon.report.words import as_typed_here, command_of, program, quote_override

BIN = Path(sys.executable).parent


def path_of(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))


def test_where_this_python_is_the_first_the_module_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    path_of(monkeypatch, BIN, Path("/usr/bin"))
    assert program() == "python -m aeon"
    assert command_of(["task=a b"]) == "python -m aeon task='a b'"


def test_where_another_python_is_the_first_this_one_is_named_by_its_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\n")
    (tmp_path / "python").chmod(0o755)
    path_of(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert program() == f"{sys.executable} -m aeon"
    monkeypatch.chdir(BIN.parent.parent)
    assert program() == f"{Path(sys.executable).relative_to(Path.cwd())} -m aeon"
    assert as_typed_here("See `aeon docs`.") == f"See `{program()} docs`."


def test_where_only_a_link_to_the_script_is_on_the_path_the_script_is_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "aeon").symlink_to(BIN / "aeon")
    path_of(monkeypatch, tmp_path)
    assert program() == "aeon"
    assert as_typed_here("See `aeon docs`.") == "See `aeon docs`."


@pytest.mark.parametrize(
    ("argument", "typed"),
    [
        ("mode=core", "mode=core"),
        ("tools=[builtin,mcp]", "tools='[builtin,mcp]'"),
        ("task=it's", "task='it'\"'\"'s'"),
        ("task=", "task="),
        ("task=a\nb", "task=$'a\\nb'"),
        ("a b", "'a b'"),
    ],
)
def test_a_value_is_quoted_for_a_shell(argument: str, typed: str) -> None:
    assert quote_override(argument) == typed
