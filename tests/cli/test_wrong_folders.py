"""A folder that holds nothing Aeon looks for is a mistake, refused with the folder that was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon

RUN = ("task=x", "provider=simulated", "progress=none")


@pytest.fixture
def copies(aeon: RunAeon, tmp_path: Path) -> Path:
    assert aeon("init", "mine").status == 0
    (tmp_path / "mine" / "empty").mkdir()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        (["prompts.dir=mine"], "prompts.dir=mine/prompts?"),
        (["prompts.dir=mine/prompts/default"], "prompts.dir=mine/prompts?"),
        (["prompts.dir=mine/schemas"], "prompts.dir=mine/prompts?"),
        (["prompts.dir=empty"], "`aeon init DIR` copies"),
        (["schemas.dir=mine"], "schemas.dir=mine/schemas?"),
        (["schemas.dir=mine/schemas/artefacts"], "schemas.dir=mine/schemas?"),
        (["schemas.dir=mine/prompts"], "schemas.dir=mine/schemas?"),
        (["schemas.dir=empty"], "`aeon init DIR` copies"),
        (["--config-dir", "mine"], "--config-dir mine/conf?"),
        (["--config-dir", "mine/conf/ttl"], "--config-dir mine/conf?"),
        (["--config-dir", "mine/empty"], "--config-dir mine/conf?"),
        (["--config-dir", "empty"], "`aeon init DIR` copies"),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, list) else "",
)
def test_a_wrong_folder_is_refused_with_the_one_that_was_meant(
    aeon: RunAeon, copies: Path, wrong: list[str], meant: str
) -> None:
    ended = aeon(*RUN, *wrong)
    shown = ended.err.replace(f"{copies}/", "")
    assert ended.status == 2
    assert " ".join(wrong) in shown
    assert meant in shown
    assert not (copies / "outputs").exists()


def test_a_run_directory_below_a_file_holds_no_run(aeon: RunAeon) -> None:
    ended = aeon(*RUN, "hydra.run.dir=/dev/null/aeon")
    assert (ended.status, "is not below a directory" in ended.err) == (2, True)


def test_a_configuration_folder_that_is_not_there_is_refused_with_what_to_do(aeon: RunAeon) -> None:
    ended = aeon(*RUN, "--config-dir", "nowhere")
    assert ended.status == 2
    assert "there is no such configuration folder\n`aeon init DIR` copies" in ended.err


def test_a_wrong_folder_is_refused_where_only_something_is_shown(
    aeon: RunAeon, copies: Path
) -> None:
    ended = aeon("--cfg", "job", "--config-dir", "mine")
    assert ended.status == 2
    assert "holds no configuration" in ended.err
    assert "mine/conf?" in ended.err


def test_a_folder_without_the_set_that_is_chosen_names_one_that_it_has(
    aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "own" / "terse").mkdir(parents=True)
    (tmp_path / "own" / "terse" / "plan.system.j2").write_text("Be brief.", encoding="utf-8")
    ended = aeon(*RUN, "prompts.dir=own")
    assert ended.status == 2
    assert "there is no prompt set 'default'; there are: terse" in ended.err


@pytest.mark.slow
def test_folders_that_hold_one_file_or_a_group_of_ones_own_are_used(
    aeon: RunAeon, tmp_path: Path
) -> None:
    for name in ("one/ttl/mine.yaml", "own/customer/acme.yaml", "named/mine.yaml"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("base: 7\n", encoding="utf-8")
    assert "base: 7" in aeon("--cfg", "job", "--config-dir", "one", "ttl=mine").out
    assert "base: 7" in aeon("--cfg", "job", "--config-dir", "own", "+customer=acme").out
    assert aeon("--cfg", "job", "--config-dir", "named", "--config-name", "mine").out == "base: 7\n"
