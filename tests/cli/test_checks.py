"""Checks as a person meets them: on the command line, in a project file, in a folder that is not trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon.config.folder_content import read_content
from aeon.config.trusted_folders import remember
from tests.cli.conftest import RunAeon

RUN = ("task=make tea", "provider=simulated", "progress=none", "limits.max_passes=1")


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AEON_STATE_DIR", str(tmp_path_factory.mktemp("state") / "aeon"))
    monkeypatch.delenv("AEON_TRUST", raising=False)


def result_in(folder: Path) -> dict[str, object]:
    (path,) = folder.glob("outputs/*/*/result.json")
    found: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return found


def test_a_check_that_cannot_be_run_ends_with_2_before_anything_is_made(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon(*RUN, "convergence.checks.mine={type: python, value: 'no_such_module:look'}")
    assert ended.status == 2
    assert "convergence.checks.mine=no_such_module:look: cannot be imported" in ended.err
    assert not (tmp_path / "outputs").exists()


def test_a_run_says_how_many_checks_passed_and_what_the_others_said(
    aeon: RunAeon, tmp_path: Path
) -> None:
    checks = (
        "convergence.checks.hot={type: contains, value: hot}",
        "convergence.checks.any={type: word-count, value: {min: 1}}",
    )
    ended = aeon(*RUN, *checks)
    assert ended.status == 3
    assert "checks passed 1 of 2" in ended.err
    assert 'check hot: failed: The answer must contain "hot".' in ended.err
    assert [check["name"] for check in result_in(tmp_path)["checks"]] == ["hot", "any"]


def test_a_check_of_a_folder_that_is_not_trusted_is_never_run(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "steal.py").write_text("open('PWNED', 'w')\n")
    settings = "{type: command, value: [python, steal.py], files: [steal.py]}"
    (tmp_path / "aeon.yaml").write_text(f"overrides: {{convergence.checks.it: {settings}}}\n")
    ended = aeon(*RUN)
    assert ended.status == 2
    assert "aeon trust" in ended.err
    assert not list(tmp_path.rglob("PWNED"))


def test_the_files_of_a_trusted_project_are_relative_to_it_and_part_of_what_is_trusted(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = tmp_path / "checks" / "look.py"
    look.parent.mkdir()
    look.write_text("print('looked at', open('answer.md').read()[:0])\n")
    settings = "{type: command, value: [python, look.py], files: [checks/look.py]}"
    (tmp_path / "aeon.yaml").write_text(f"overrides: {{convergence.checks.it: {settings}}}\n")
    (tmp_path / ".git").mkdir()
    remember(read_content(tmp_path))
    below = tmp_path / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert aeon(*RUN).status == 3
    (found,) = result_in(below)["checks"]
    assert (found["passed"], found["feedback"]) == (True, "looked at")
    look.write_text("open('PWNED', 'w')\n")
    assert aeon(*RUN).status == 2


@pytest.mark.slow
def test_a_file_that_an_option_of_a_project_names_is_part_of_what_is_trusted(
    aeon: RunAeon, tmp_path: Path
) -> None:
    look = tmp_path / "programs" / "look.py"
    look.parent.mkdir()
    look.write_text("print('looked at')\n")
    (tmp_path / "aeon.yaml").write_text("config_dir: conf\n")
    mine = tmp_path / "conf" / "convergence" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    check = "{type: command, value: [python, look.py], files: [../../programs/look.py]}"
    mine.write_text(f"defaults: [default]\nchecks: {{it: {check}}}\n")
    remember(read_content(tmp_path))
    assert aeon(*RUN, "convergence=mine").status == 3
    (found,) = result_in(tmp_path)["checks"]
    assert found["feedback"] == "looked at"
    look.write_text("open('PWNED', 'w')\n")
    ended = aeon(*RUN, "convergence=mine")
    assert ended.status == 2
    assert "has changed since you trusted it" in ended.err


@pytest.mark.slow
def test_a_run_with_files_of_an_option_is_resumed_from_another_folder(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "conf" / "convergence" / "mine.yaml"
    mine.parent.mkdir(parents=True)
    mine.with_name("look.py").write_text("print('looked at')\n")
    check = "{type: command, value: [python, look.py], files: [look.py]}"
    mine.write_text(f"defaults: [default]\nchecks: {{it: {check}}}\n")
    chosen = ("--config-dir", "conf", "convergence=mine")
    assert aeon(*RUN, *chosen, "hydra.run.dir=run").status == 3
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    resume = (f"resume={tmp_path / 'run'}", "limits.max_passes=2", "progress=none")
    for words in ((), ("--config-dir", "../conf", "convergence=mine")):
        assert aeon(*resume, *words, f"hydra.run.dir=outputs/{len(words)}/it").status == 3
        path = elsewhere / "outputs" / str(len(words)) / "it" / "result.json"
        (found,) = json.loads(path.read_text(encoding="utf-8"))["checks"]
        assert found["feedback"] == "looked at"


@pytest.mark.slow
def test_a_run_that_is_resumed_from_another_folder_finds_its_files(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "look.py").write_text("print('looked at')\n")
    settings = "{type: command, value: [python, look.py], files: [look.py]}"
    assert aeon(*RUN, f"convergence.checks.it={settings}", "hydra.run.dir=run").status == 3
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    ended = aeon(f"resume={tmp_path / 'run'}", "limits.max_passes=2", "progress=none")
    assert ended.status == 3
    (found,) = result_in(elsewhere)["checks"]
    assert found["feedback"] == "looked at"
