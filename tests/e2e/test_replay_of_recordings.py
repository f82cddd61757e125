"""`store.mode=replay store.path=PATH` with nothing else said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aeon import Aeon
from tests.cli.conftest import RunAeon
from tests.cli.conftest import aeon as aeon
from tests.e2e.conftest import Run, whole


@pytest.fixture
def recorded(aeon: RunAeon, tmp_path: Path) -> Run:
    """A simulated run with an input, and its cassette `a, b (1).aeon`."""
    (tmp_path / "notes.md").write_text("notes", encoding="utf-8")
    given = (
        "task=name 3 rivers, please",
        "input_files.notes=notes.md",
        "provider.seed=7",
        "convergence.completeness=0.5",
    )
    ended = aeon(*given, "provider=simulated", "progress=none")
    assert ended.status in (0, 3)
    run = whole(ended, tmp_path)
    assert aeon("cassette", "export", str(directory(tmp_path)), "a, b (1).aeon").status == 0
    (tmp_path / "notes.md").unlink()
    return run


def directory(root: Path) -> Path:
    return min((root / "outputs").glob("*/*"), key=lambda path: path.stat().st_mtime_ns)


@pytest.mark.parametrize("kind", ["cassette", "directory", "store"])
def test_a_recording_knows_task_inputs_and_overrides(
    kind: str, recorded: Run, aeon: RunAeon, tmp_path: Path
) -> None:
    path = {
        "cassette": "'a, b (1).aeon'",
        "directory": str(directory(tmp_path)),
        "store": str(directory(tmp_path) / "store.sqlite"),
    }[kind]
    run = whole(aeon("store.mode=replay", f"store.path={path}"), tmp_path)
    assert run.status == recorded.status, run.err
    for name in ("task", "answer", "scores", "synthetic", "usage", "ttl"):
        assert run.result[name] == recorded.result[name]
    assert run.result["hashes"]["inputs"] == recorded.result["hashes"]["inputs"]
    assert run.result["configuration"]["provider"]["seed"] == 7


def test_the_provider_is_the_recorded_one_whatever_key_there_is_today(
    recorded: Run, aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    run = whole(aeon("store.mode=replay", "store.path='a, b (1).aeon'", "env=dev"), tmp_path)
    assert run.result["synthetic"]
    assert run.result["provider"]["kind"] == "simulated"
    assert run.out.startswith("[SIMULATED")


def test_what_is_said_today_comes_after_what_was_recorded(
    recorded: Run, aeon: RunAeon, tmp_path: Path
) -> None:
    run = whole(
        aeon("store.mode=replay", "store.path='a, b (1).aeon'", "convergence.completeness=0.4"),
        tmp_path,
    )
    assert run.status == 0
    assert run.result["configuration"]["convergence"]["completeness"] == 0.4
    other = aeon("store.mode=replay", "store.path='a, b (1).aeon'", "task=name 4 rivers")
    assert other.status == 1
    assert "+name 4 rivers" in other.err
    assert "-name 3 rivers, please" in other.err


def test_the_group_of_the_store_says_the_same(recorded: Run, aeon: RunAeon) -> None:
    ended = aeon("store=replay", "store.path='a, b (1).aeon'", "output=json", "progress=none")
    assert json.loads(ended.out)["answer"] == recorded.result["answer"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("a: 1\n", "is not a cassette: its first line does not say the format aeon.cassette/2"),
        ('{"format": "aeon.cassette/9"}\n', "reads, but aeon.cassette/9"),
        ("{", "line 1 is not JSON"),
    ],
)
def test_a_file_that_is_no_cassette_is_refused_before_a_directory_is_made(
    content: str, why: str, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "x.aeon").write_text(content, encoding="utf-8")
    ended = aeon("store.mode=replay", "store.path=x.aeon")
    assert ended.status == 2
    assert why in ended.err
    assert not (tmp_path / "outputs").exists()


def test_a_recording_that_is_not_there_is_refused(aeon: RunAeon, tmp_path: Path) -> None:
    ended = aeon("store.mode=replay", "store.path=none.aeon", "task=x")
    assert ended.status != 0
    assert "none.aeon" in ended.err


def test_a_store_that_does_not_say_how_its_run_was_started_needs_task_and_overrides(
    recorded: Run, aeon: RunAeon, tmp_path: Path
) -> None:
    (tmp_path / "alone").mkdir()
    (directory(tmp_path) / "store.sqlite").rename(tmp_path / "alone" / "some.sqlite")
    assert aeon("store.mode=replay", "store.path=alone/some.sqlite").status == 2
    given = (
        "task=name 3 rivers, please",
        "inputs.notes=notes",
        "provider=simulated",
        "provider.seed=7",
    )
    ended = aeon(
        "store.mode=replay", "store.path=alone/some.sqlite", *given, "convergence.completeness=0.5"
    )
    assert ended.status == recorded.status
    assert ended.out == recorded.out


def test_a_cassette_is_replayed_from_python(recorded: Run) -> None:
    with Aeon.from_config(
        ["store.mode=replay", "store.path='a, b (1).aeon'"], environ={}
    ) as replaying:
        result = replaying.run("name 3 rivers, please", inputs={"notes": "notes"})
    assert result.answer == recorded.result["answer"]
    assert result.parent is not None
    assert result.parent.saved.model_calls == result.usage.total.requests
