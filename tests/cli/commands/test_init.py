import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon


def test_init_copies_everything_that_may_be_edited(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("init", "mine")
    assert ended.status == 0
    for name in (
        "conf/config.yaml",
        "conf/ttl/default.yaml",
        "prompts/default/plan.system.j2",
        "schemas/plan.json",
    ):
        assert (tmp_path / "mine" / name).is_file()


@pytest.mark.slow
def test_the_commands_that_init_prints_work_and_use_the_copies(
    aeon: RunAeon, tmp_path: Path
) -> None:
    commands = [
        line.strip()
        for line in aeon("init", "my copies").out.splitlines()
        if line.startswith("  python -m aeon")
    ]
    copies = tmp_path / "my copies"
    (copies / "conf" / "limits" / "default.yaml").write_text("max_passes: 1\n", encoding="utf-8")
    template = copies / "prompts" / "default" / "plan.system.j2"
    template.write_text(
        template.read_text(encoding="utf-8") + "\nMind the gap.\n", encoding="utf-8"
    )
    run, render, show = [shlex.split(command)[3:] for command in commands]
    assert "Mind the gap." in aeon(*render).out
    assert "max_passes: 1" in aeon(*show).out
    ended = aeon(*run, "provider=simulated", "progress=none")
    assert ended.status == 3
    assert "max_passes" in ended.err


def test_init_never_overwrites(aeon: RunAeon, tmp_path: Path) -> None:
    existing = tmp_path / "mine" / "schemas" / "plan.json"
    existing.parent.mkdir(parents=True)
    existing.write_text("mine", encoding="utf-8")
    ended = aeon("init", "mine")
    assert ended.status == 2
    assert "plan.json" in ended.err
    assert existing.read_text(encoding="utf-8") == "mine"
    assert [path for path in (tmp_path / "mine").rglob("*") if path.is_file()] == [existing]


def test_init_says_when_a_folder_cannot_be_written(aeon: RunAeon, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    ended = aeon("init", "file/mine")
    assert ended.status == 2
    assert "cannot be written" in ended.err


def test_init_of_one_call_copies_its_prompt_and_schema_alone(aeon: RunAeon, tmp_path: Path) -> None:
    assert "Copied 3 files" in aeon("init", "mine", "--only", "step").out
    copied = sorted(
        path.relative_to(tmp_path / "mine").as_posix()
        for path in (tmp_path / "mine").rglob("*")
        if path.is_file()
    )
    assert copied == [
        "aeon.yaml",
        "prompts/default/step.system.j2",
        "prompts/default/step.user.j2",
        "schemas/step.json",
    ]
    shown = aeon(
        "render", "step", "task=tea", "prompts.dir=mine/prompts", "schemas.dir=mine/schemas"
    )
    assert "user: mine/prompts/default/step.user.j2" in shown.out
    assert "schema: mine/schemas/step.json" in shown.out


def test_init_of_one_call_may_be_into_this_folder(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("init", "--only", "step")
    assert ended.status == 0, ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aeon.yaml", "prompts", "schemas"]
    ended = aeon("task=tea", "provider=simulated", "progress=none")
    assert ended.status == 0, ended.err
    again = aeon("init", "--only", "plan")
    assert again.status == 2
    assert "aeon.yaml: already there, nothing was copied" in again.err


def test_init_of_everything_needs_a_folder(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("init")
    assert ended.status == 2
    assert "aeon init mine" in ended.err
    assert not list(tmp_path.iterdir())


def test_its_project_file_is_used_by_a_run_from_there(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aeon("init", "mine", "--only", "repair")
    monkeypatch.chdir(tmp_path / "mine")
    ended = aeon("task=tea", "provider=simulated", "progress=none")
    assert ended.status == 0, ended.err
    assert "prompts.dir=prompts" in ended.err
    assert "schemas.dir" not in ended.err
