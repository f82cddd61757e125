"""Recordings run again: does each decide as it did, and what led it another way?"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from aeon.app.trials.replay import check_recording, write_junit
from aeon.domain.errors import StoreFailed
from aeon.store.cassette import RecordedEnd, read, write
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
    assert 'model: roles.worker.model is "another", recorded: null' in checked.causes


def test_keys_that_do_not_make_the_request_come_last_and_are_few() -> None:
    values = [f"limits.{name}=9" for name in ("max_passes", "max_seconds", "max_llm_calls")]
    more = ["convergence.completeness=0.5", "refinement.max_attempts_total=9", "mode.one_step=x"]
    checked = check_recording(SUM, [*values, *more, "roles.worker.model=another"], environ={})
    assert checked.causes[0].startswith("model: roles.worker.model ")
    assert "key: convergence.completeness is 0.5, recorded: 0.95" in checked.causes
    assert checked.causes[-1] == "key: and 2 more"


def test_another_end_with_the_same_requests_is_a_divergence() -> None:
    overrides = ["convergence.completeness=1.0", "limits.max_passes=5"]
    checked = check_recording(SUM.with_name("rest-api.aeon"), overrides, environ={})
    assert checked.divergence == "it ended by max_passes, and the recorded run by converged"
    assert checked.causes == (
        "key: convergence.completeness is 1.0, recorded: 0.95",
        "key: limits.max_passes is 5, recorded: 20",
    )


def test_another_answer_from_the_same_requests_is_a_divergence(tmp_path: Path) -> None:
    cassette = read(SUM)
    other = RecordedEnd.of_answer("converged", "another answer")
    write(cassette.model_copy(update={"end": other}), tmp_path / "other.aeon")
    checked = check_recording(tmp_path / "other.aeon", [], environ={})
    assert checked.divergence == "its answer is not the recorded one"


def test_a_recording_without_its_end_is_checked_by_its_requests(tmp_path: Path) -> None:
    write(read(SUM).model_copy(update={"end": None}), tmp_path / "old.aeon")
    assert '"end": {' not in (tmp_path / "old.aeon").read_text(encoding="utf-8")
    assert check_recording(tmp_path / "old.aeon", ["limits.max_passes=1"], environ={}).holds


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
    assert (ended.status, "as recorded, with its own settings, 6 answers" in ended.out) == (0, True)
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
    ended = aeon("replay-check", str(tmp_path / "gone.aeon"), str(SUM))
    assert ended.status == 2
    assert "2 recordings: none differ, 1 cannot be read." in ended.err
    assert "gone.aeon cannot be read" in ended.err
    assert "as recorded, with its own settings, 6 answers" in ended.out


@pytest.mark.parametrize("content", [None, b"", b"garbage\xff", SUM.read_bytes()[:-200]])
def test_one_that_cannot_be_read_is_an_error_for_a_pipeline(
    aeon: RunAeon, tmp_path: Path, content: bytes | None
) -> None:
    junit = tmp_path / "all.xml"
    bad = tmp_path / "bad.aeon"
    if content is not None:
        bad.write_bytes(content)
    assert aeon("replay-check", str(bad), f"junit={junit}").status == 2
    suite = ElementTree.parse(junit).getroot()
    counted = [suite.get(name) for name in ("tests", "failures", "errors")]
    assert counted == ["1", "0", "1"]
    (case,) = suite
    assert case.get("name") == str(bad)
    (error,) = case
    assert (error.tag, "bad.aeon" in (error.get("message") or "")) == ("error", True)


def test_the_outcome_replaces_no_file_of_another_kind(aeon: RunAeon, tmp_path: Path) -> None:
    recording = tmp_path / "rec.aeon"
    shutil.copy(SUM, recording)
    table = tmp_path / "table.csv"
    table.write_text("a,<testsuite>\n", encoding="utf-8")
    for path in (recording, table, tmp_path):
        before = path.read_bytes() if path.is_file() else b""
        ended = aeon("replay-check", str(recording), f"junit={path}")
        assert (ended.status, ended.out) == (2, "")
        assert "is not a JUnit file" in ended.err
        assert not before or path.read_bytes() == before
    earlier = tmp_path / "replays.xml"
    earlier.write_bytes(write_junit([], {}))
    assert aeon("replay-check", str(recording), f"junit={earlier}").status == 0
    assert b'tests="1"' in earlier.read_bytes()


def test_without_a_readable_recording_nothing_is_said_of_others(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("replay-check", str(tmp_path / "nope.aeon"))
    assert ended.status == 2
    assert "nope.aeon cannot be read" in ended.err
    assert "other recordings" not in ended.err
    assert "0 recordings" not in ended.err


@pytest.fixture
def project(aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted project with a recording of a run in it, `r.aeon`."""
    monkeypatch.delenv("AEON_TRUST", raising=False)
    monkeypatch.setenv("AEON_STATE_DIR", str(tmp_path / "state"))
    assert aeon("init", "pr").status == 0
    monkeypatch.chdir(tmp_path / "pr")
    record(aeon)
    return tmp_path / "pr"


def record(aeon: RunAeon, *overrides: str) -> None:
    run = ("task=name three rivers", "provider=simulated", "progress=none")
    shutil.rmtree("r", ignore_errors=True)
    assert aeon(*run, "hydra.run.dir=r", *overrides).status == 0
    assert aeon("cassette", "export", "r", "r.aeon", "--force").status == 0


@pytest.mark.slow
def test_the_prompts_of_a_trusted_project_hold(
    aeon: RunAeon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert aeon("replay-check", "r.aeon").status == 0
    file = project / "prompts" / "default" / "step.user.j2"
    file.write_text(file.read_text(encoding="utf-8") + "Be brief.\n", encoding="utf-8")
    refused = aeon("replay-check", "r.aeon")
    assert (refused.status, refused.out) == (2, "")
    digest = re.search(r"AEON_TRUST=(\w+)", refused.err)
    assert digest is not None
    monkeypatch.setenv("AEON_TRUST", digest[1])
    checked = aeon("replay-check", "r.aeon")
    assert checked.status == 4
    assert "user message: prompts/default/step.user.j2 (prompts changed since)" in checked.out
    for other in (("--no-project",), (f"prompts.dir={ROOT / 'prompts'}",)):
        assert aeon("replay-check", "r.aeon", *other).status == 0
    record(aeon)
    assert aeon("replay-check", "r.aeon").status == 0
    assert aeon("replay-check", "r.aeon", "--no-project").status == 4


@pytest.mark.slow
def test_the_folder_of_configuration_holds(aeon: RunAeon, project: Path) -> None:
    (project / "conf" / "convergence" / "mine.yaml").write_text(
        "# @package convergence\ncompleteness: 0.99999\n", encoding="utf-8"
    )
    assert aeon("replay-check", "r.aeon", "--no-project", "--config-dir", "conf").status == 0
    flags = ("--no-project", "--config-dir", "conf", "convergence=mine", "limits.max_passes=4")
    assert aeon("replay-check", "r.aeon", *flags).status == 4


def trust(aeon: RunAeon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the project as it stands."""
    refused = aeon("replay-check", "r.aeon")
    digest = re.search(r"AEON_TRUST=(\w+)", refused.err)
    assert digest is not None, refused.err
    monkeypatch.setenv("AEON_TRUST", digest[1])


@pytest.mark.slow
def test_an_edited_file_of_configuration_is_noticed_and_its_key_named(
    aeon: RunAeon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(aeon, "limits=small")
    assert aeon("replay-check", "r.aeon").status == 0
    small = project / "conf" / "limits" / "small.yaml"
    text = small.read_text(encoding="utf-8")
    edited = re.sub(r"(?m)^max_llm_calls: .*$", "max_llm_calls: 2", text)
    assert edited != text
    small.write_text(edited, encoding="utf-8")
    trust(aeon, monkeypatch)
    checked = aeon("replay-check", "r.aeon")
    assert checked.status == 4
    assert "it ended earlier (max_llm_calls)" in checked.out
    assert "key: limits.max_llm_calls is 2, recorded: " in checked.out


@pytest.mark.slow
def test_an_edited_project_file_is_noticed_but_for_what_was_typed(
    aeon: RunAeon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project / "aeon.yaml"
    file.write_text(
        file.read_text(encoding="utf-8") + "  limits.max_llm_calls: 3\n", encoding="utf-8"
    )
    trust(aeon, monkeypatch)
    checked = aeon("replay-check", "r.aeon")
    assert checked.status == 4
    assert "key: limits.max_llm_calls is 3, recorded: " in checked.out
    record(aeon, "limits.max_llm_calls=40")
    assert aeon("replay-check", "r.aeon").status == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        ("experiment=quick",),
        ("convergence.criteria_file=criteria.yaml",),
        ("convergence.checks.has.type=contains", "convergence.checks.has.value=n"),
        ("convergence.checks={has: {type: contains, value: n}}",),
        ("memory.entries.town=Graz",),
        ("memory=in_memory",),
        ("prompts.outline_steps=2", "provider.latency_seconds=0"),
        ("tools=builtin", "limits.max_passes=9"),
        ("limits.max_passes=${ttl.base}",),
    ],
    ids=" ".join,
)
def test_an_unchanged_project_makes_no_difference(
    aeon: RunAeon, project: Path, typed: tuple[str, ...]
) -> None:
    (project / "criteria.yaml").write_text("short: It is short.\n", encoding="utf-8")
    record(aeon, *typed)
    tools = [text for text in typed if text.startswith("tools")]
    checked = aeon("replay-check", "r.aeon", *tools)
    assert checked.status == 0, checked.out


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed",
    [
        "convergence.criteria.notes='It agrees with {place}/notes.txt'",
        "convergence.checks.notes={{type: contains, value: {place}/notes.txt, required: false}}",
        "memory.entries.notes={place}/notes.txt",
        "roles.worker.model={place}/models/mine",
        "provider.model={place}/models/mine",
    ],
)
def test_a_text_that_names_a_place_on_this_machine_makes_no_difference(
    aeon: RunAeon, project: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setenv("HOME", str(project.parent))
    for place in (project, project.parent / "elsewhere"):
        record(aeon, typed.format(place=place))
        checked = aeon("replay-check", "r.aeon")
        assert checked.status == 0, checked.out


@pytest.mark.slow
def test_a_row_with_checks_of_its_own_decides_as_it_did(aeon: RunAeon, tmp_path: Path) -> None:
    row = {"id": "a", "task": "name a river", "checks": {"s": {"type": "word-count", "value": 1}}}
    (tmp_path / "d.jsonl").write_text(json.dumps(row), encoding="utf-8")
    of_row = ("provider=simulated", "batch.records=all", "limits.max_passes=1")
    aeon("batch", "dataset=d.jsonl", "out=out.jsonl", *of_row)
    assert aeon("batch", "record", "out.jsonl", "a", "r").status == 0
    assert aeon("cassette", "export", "r", "r.aeon").status == 0
    checked = aeon("replay-check", "r.aeon")
    assert checked.status == 0, checked.out


def test_a_recording_that_is_checked_with_its_own_settings_says_so(aeon: RunAeon) -> None:
    ended = aeon("replay-check", str(SUM))
    assert "as recorded, with its own settings, 6 answers" in ended.out
    whole = check_recording(SUM, [], environ={})
    assert b"checked with its own settings" in write_junit([whole], {})


@pytest.mark.slow
def test_an_option_of_a_resumed_run_makes_no_difference(aeon: RunAeon, project: Path) -> None:
    record(aeon, "limits.max_passes=4")
    again = ("resume=r", "experiment=quick", "hydra.run.dir=again", "progress=none")
    aeon(*again)
    assert aeon("cassette", "export", "again", "again.aeon").status == 0
    checked = aeon("replay-check", "again.aeon")
    assert checked.status == 0, checked.out


@pytest.mark.slow
def test_an_option_that_is_gone_is_named(
    aeon: RunAeon, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = project / "conf" / "limits" / "mine.yaml"
    shutil.copy(mine.with_name("small.yaml"), mine)
    trust(aeon, monkeypatch)
    record(aeon, "limits=mine")
    assert aeon("replay-check", "r.aeon").status == 0
    mine.unlink()
    monkeypatch.delenv("AEON_TRUST")  # what is left was trusted before
    checked = aeon("replay-check", "r.aeon")
    assert checked.status == 4
    assert "it cannot be started: limits" in checked.out


def test_choices_that_cannot_be_composed_again_leave_a_recording_its_settings(
    tmp_path: Path,
) -> None:
    cassette = read(SUM)
    path = tmp_path / "other.aeon"
    others = (
        "limits.max_llm_calls=${oc.env:HOME}",
        "limits.max_passes=1,2",
        "limits@convergence=small",
        "limits=../limits/small",
        "convergence={completeness: 1, criteria_file: /etc/passwd}",
    )
    for choices in (None, *([choice, "limits.max_llm_calls=2"] for choice in others)):
        write(cassette.model_copy(update={"origin": {**cassette.origin, "choices": choices}}), path)
        assert check_recording(path, [], environ={}).holds
    write(
        cassette.model_copy(
            update={"origin": {**cassette.origin, "choices": ["limits.max_llm_calls=2"]}}
        ),
        path,
    )
    assert "max_llm_calls" in check_recording(path, [], environ={}).divergence


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (5, "its origin"),
        ([None], "its origin"),
        (["limits=" + 5_000 * "x"], "it cannot be started: "),
        (["limits='x\\n::stop-commands::t'"], "no such option"),
    ],
)
def test_choices_of_strangers_start_nothing_and_print_one_line(
    tmp_path: Path, choices: object, words: str
) -> None:
    cassette = read(SUM)
    path = tmp_path / "other.aeon"
    write(cassette.model_copy(update={"origin": {**cassette.origin, "choices": choices}}), path)
    checked = check_recording(path, [], environ={})
    assert words in f"{checked.divergence} {checked.causes}"
    assert "\n" not in checked.divergence


@pytest.mark.slow
def test_a_project_that_is_not_valid_is_refused(aeon: RunAeon, project: Path) -> None:
    (project / "aeon.yaml").write_text("overrides: 3\n", encoding="utf-8")
    ended = aeon("replay-check", "r.aeon")
    assert (ended.status, ended.out) == (2, "")
    assert "overrides must map keys to values" in ended.err
