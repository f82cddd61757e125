"""Files of checks are relative to the configuration file that names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from aeon.config.compose.compose import compose
from aeon.config.compose.literal import Composition
from aeon.config.load import settings_from
from aeon.domain.checks import CommandCheck

CHECKS = """
defaults: [default]
checks:
  t: {type: command, value: [python, tst.py], files: [tst.py, /tmp/a.py, "${oc.env:HOME}/b.py"]}
"""


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.chdir(tmp_path)
    conf = tmp_path / "conf"
    (conf / "convergence").mkdir(parents=True)
    (conf / "convergence" / "mine.yaml").write_text(CHECKS)
    (conf / "experiment").mkdir()
    return conf


def files_of(conf: Path | None, *overrides: str) -> list[str]:
    composed = compose(Composition(overrides=overrides, config_dir=conf))
    check = settings_from(composed, ["convergence"]).convergence.checks["t"]
    assert isinstance(check, CommandCheck)
    return list(map(str, check.files))


def test_a_file_of_a_group_names_files_beside_it(conf: Path) -> None:
    beside = str(conf / "convergence" / "tst.py")
    assert files_of(conf, "convergence=mine") == [beside, "/tmp/a.py", "/home/me/b.py"]


def test_the_last_file_that_sets_them_counts(conf: Path) -> None:
    later = "# @package _global_\ndefaults: [{override /convergence: mine}]\n"
    later += "convergence: {checks: {t: {files: [other.py]}}}\n"
    (conf / "experiment" / "later.yaml").write_text(later)
    assert files_of(conf, "experiment=later") == [str(conf / "experiment" / "other.py")]


def test_files_of_overrides_are_relative_to_the_working_directory(conf: Path) -> None:
    assert files_of(conf, "convergence=mine", "convergence.checks.t.files=[tst.py]") == ["tst.py"]
    check = "{type: command, value: [python], files: [tst.py]}"
    assert files_of(conf, "convergence=mine", f"++convergence.checks.t={check}") == ["tst.py"]
    assert files_of(None, f"++convergence.checks.t={check}") == ["tst.py"]


def test_a_searched_folder_is_a_folder_like_another(conf: Path) -> None:
    overrides = ("hydra.searchpath=[file://conf]", "convergence=mine")
    assert files_of(None, *overrides)[0] == str(conf / "convergence" / "tst.py")


def test_what_is_no_list_of_files_is_left_to_validation(conf: Path) -> None:
    for checks in ("null", "[1]", "{t: null}", "{t: {files: 5}}", "{t: {files: [5]}}"):
        (conf / "convergence" / "wrong.yaml").write_text(f"checks: {checks}\n")
        compose(Composition(overrides=("convergence=wrong",), config_dir=conf))
