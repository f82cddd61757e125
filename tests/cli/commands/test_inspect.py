"""`aeon inspect` makes the page of a run again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from aeon import load_record
from tests.cli.conftest import RunAeon


@pytest.fixture
def directory(aeon: RunAeon, tmp_path: Path) -> Path:
    assert (
        aeon("task=plan a move", "provider=simulated", f"hydra.run.dir={tmp_path / 'run'}").status
        == 0
    )
    return tmp_path / "run"


def test_the_page_is_made_again_where_it_was_or_elsewhere(
    aeon: RunAeon, directory: Path, tmp_path: Path
) -> None:
    (directory / "report.html").unlink()
    ended = aeon("inspect", str(directory))
    assert (ended.status, ended.err) == (0, "")
    assert Path(ended.out.strip()).name == "report.html"
    assert (directory / "report.html").stat().st_size > 10_000
    elsewhere = aeon("inspect", str(directory), "--output", str(tmp_path / "page.html"))
    assert elsewhere.status == 0
    assert (tmp_path / "page.html").is_file()


def test_a_folder_that_is_no_run_is_refused_with_what_to_give(
    aeon: RunAeon, tmp_path: Path
) -> None:
    ended = aeon("inspect", str(tmp_path))
    assert ended.status == 2
    assert "holds no result" in ended.err
    assert "--output" not in ended.err
    assert "Traceback" not in ended.err


def test_a_page_that_cannot_be_written_is_said(
    aeon: RunAeon, directory: Path, tmp_path: Path
) -> None:
    ended = aeon("inspect", str(directory), "--output", str(tmp_path / "missing" / "page.html"))
    assert ended.status == 2
    assert "cannot be written" in ended.err
    assert "--output FILE" in ended.err
    (directory / "history.json").unlink()
    unreadable = aeon("inspect", str(directory)).err
    assert "history.json cannot be read" in unreadable
    assert "--output" not in unreadable


def test_the_command_line_gives_the_page_the_overrides_it_was_started_with(directory: Path) -> None:
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert re.search(r"python -m aeon task=.{1,6}plan a move.{1,6} provider=simulated", page)


def test_a_killed_run_shows_what_was_skipped(aeon: RunAeon, tmp_path: Path) -> None:
    steps = [
        {"id": "a", "description": "say", "agent": "llm"},
        {"id": "b", "description": "shout", "agent": "llm", "depends_on": ["a"], "when": "false"},
    ]
    (tmp_path / "plan.json").write_text(json.dumps({"goal": "g", "steps": steps}))
    aeon("plan_file=plan.json", "provider=simulated", "mode=core", "progress=none")
    folder = next(tmp_path.glob("outputs/*/*/run.json")).parent
    for name in ("result.json", "history.json"):
        (folder / name).unlink()
    shown = load_record(folder).result.history.passes[-1].steps
    assert {step.step_id: step.status for step in shown} == {"a": "complete", "b": "skipped"}
