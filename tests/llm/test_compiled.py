"""Compiled templates in files: used as long as nothing has changed that they were made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from aeon.llm.compiled import CompiledTemplates


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    return tmp_path / "compiled"


def render(folder: Path, made_by: Path, *, word: str) -> str:
    """Render a template that an environment compiles with this word in it."""
    compiled = CompiledTemplates(str(made_by))
    compiled.directory = str(folder)
    environment = Environment(loader=DictLoader({"t": "{{ 'a' | add }}"}), bytecode_cache=compiled)
    environment.filters["add"] = lambda text: text + word
    return environment.get_template("t").render()


def test_a_file_is_made_anew_when_its_environment_changes(folder: Path, tmp_path: Path) -> None:
    made_by = tmp_path / "made_by.py"
    made_by.write_text("one")
    assert render(folder, made_by, word="b") == "ab"
    assert render(folder, made_by, word="c") == "ab"  # a filter of a constant is compiled in
    made_by.write_text("two")
    assert render(folder, made_by, word="c") == "ac"
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("length", [0, 10, 30, 60])
def test_a_damaged_file_is_made_anew(folder: Path, tmp_path: Path, length: int) -> None:
    made_by = tmp_path / "made_by.py"
    made_by.write_text("one")
    render(folder, made_by, word="b")
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:length])
    assert render(folder, made_by, word="b") == "ab"
    assert file.read_bytes() == whole
