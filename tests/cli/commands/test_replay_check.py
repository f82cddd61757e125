"""Recordings run again: does each decide as it did, and what led it another way?"""

from __future__ import annotations

import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aeon.app.trials.replay import check_recording
from aeon.domain.errors import StoreFailed
from aeon.store.cassette import read, write
from tests.cli.conftest import RunAeon

ROOT = Path(__file__).parents[3]
RECORDINGS = sorted((ROOT / "examples" / "cassettes").glob("*.aeon"))
SUM = ROOT / "examples" / "cassettes" / "sum.aeon"


def own_prompts(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "prompts", tmp_path / "prompts")
    file = tmp_path / "prompts" / "default" / "step.user.j2"
    file.write_text(file.read_text(encoding="utf-8") + "Be brief.\n", encoding="utf-8")
    return tmp_path / "prompts"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_recordings_of_the_examples_decide_as_they_did(path: Path) -> None:
    checked = check_recording(path, [], environ={})
    assert checked.holds, checked.divergence
    assert checked.causes == ()


def test_a_prompt_that_was_edited_is_named(tmp_path: Path) -> None:
    checked = check_recording(SUM, [f"prompts.dir={own_prompts(tmp_path)}"], environ={})
    assert not checked.holds
    assert "the call 'step'" in checked.divergence
    assert "+Be brief." in checked.divergence
    assert any("user message: " in cause and "step.user.j2" in cause for cause in checked.causes)
    assert any("prompts changed since" in cause for cause in checked.causes)


def test_a_schema_that_was_edited_is_named(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "schemas", tmp_path / "schemas")
    file = tmp_path / "schemas" / "step.json"
    file.write_text(
        file.read_text(encoding="utf-8").replace("What this step produced.", "Its product."),
        encoding="utf-8",
    )
    checked = check_recording(SUM, [f"schemas.dir={tmp_path / 'schemas'}"], environ={})
    assert any(cause.startswith("schema: ") and "step.json" in cause for cause in checked.causes)


def test_a_setting_that_asks_for_another_model_is_named() -> None:
    checked = check_recording(SUM, ["roles.worker.model=another"], environ={})
    assert any(cause.startswith("model: ") for cause in checked.causes)


def test_a_run_that_ends_earlier_has_gone_another_way() -> None:
    checked = check_recording(SUM, ["limits.max_llm_calls=3"], environ={})
    assert checked.divergence.startswith("it ended earlier (max_llm_calls): ")


def test_another_version_is_named(tmp_path: Path) -> None:
    cassette = read(SUM)
    versions = {**cassette.origin.get("versions", {}), "aeon-engine": "0.0.1"}
    old = tmp_path / "old.aeon"
    write(cassette.model_copy(update={"origin": {**cassette.origin, "versions": versions}}), old)
    checked = check_recording(old, ["roles.worker.model=another"], environ={})
    assert any("recorded by aeon-engine 0.0.1" in cause for cause in checked.causes)


def test_what_is_no_cassette_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreFailed, match="cannot be read"):
        check_recording(tmp_path / "gone.aeon", [])


@pytest.mark.slow
def test_the_command_has_a_status_and_a_file_for_a_pipeline(aeon: RunAeon, tmp_path: Path) -> None:
    prompts = f"prompts.dir={own_prompts(tmp_path)}"
    ended = aeon("replay-check", str(SUM), f"junit={tmp_path / 'good.xml'}")
    assert (ended.status, "as recorded, 6 answers" in ended.out) == (0, True)
    ended = aeon("replay-check", str(SUM), prompts, f"junit={tmp_path / 'bad.xml'}")
    assert ended.status == 4
    assert "1 recording: 1 differs." in ended.err
    suites = {
        name: ElementTree.parse(tmp_path / name).getroot() for name in ("good.xml", "bad.xml")
    }
    assert suites["good.xml"].get("failures") == "0"
    assert suites["bad.xml"].get("failures") == "1"
    assert suites["bad.xml"].find("testcase/failure") is not None
    assert aeon("replay-check", str(tmp_path / "gone.aeon")).status == 2


def test_one_that_cannot_be_read_does_not_keep_the_others_from_being_checked(
    aeon: RunAeon, tmp_path: Path
) -> None:
    junit = tmp_path / "all.xml"
    ended = aeon("replay-check", str(tmp_path / "gone.aeon"), str(SUM), f"junit={junit}")
    assert ended.status == 2
    assert "gone.aeon cannot be read" in ended.err
    assert "as recorded, 6 answers" in ended.out
    assert junit.is_file()
