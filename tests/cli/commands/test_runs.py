"""`aeon runs`: the runs under a folder, those that were cut off too, and what is removed after a question."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from aeon.cli.main import main
from aeon.files.jsonl import JsonLines
from tests.cli.conftest import RunAeon, logging_restored


@pytest.fixture(scope="module")
def made_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of one task, made once."""
    folder = tmp_path_factory.mktemp("runs")
    for name in ("old", "new"):
        given = ["task=plan a move", "provider=simulated", "progress=none"]
        with logging_restored():
            assert main([*given, f"hydra.run.dir={folder / name}"]) == 0
    return folder


@pytest.fixture
def two_runs(made_runs: Path, aeon: RunAeon, tmp_path: Path) -> Path:
    """A folder with two runs, the first of them the older by 40 days."""
    shutil.copytree(made_runs, tmp_path / "all")
    origin = tmp_path / "all" / "old" / "result.json"
    result = json.loads(origin.read_text())
    result["timings"]["start_time"] = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    origin.write_text(json.dumps(result))
    return tmp_path / "all"


def cut_off(folder: Path) -> Path:
    """What a kill leaves of a run: no result."""
    for name in ("result.json", "history.json", "answer.md", "report.html"):
        (folder / name).unlink()
    return folder


def test_a_run_whose_result_is_nested_without_an_end_is_listed_as_unreadable(
    aeon: RunAeon, two_runs: Path
) -> None:
    (two_runs / "old" / "result.json").write_text('{"a":' * 100_000)
    ended = aeon("runs", "all")
    assert ended.status == 0
    assert "unreadable" in ended.out
    assert aeon("inspect", "all/old").status == 2
    assert aeon("compare", "all/old", "all/new").status in (0, 2)


def test_runs_are_listed_newest_first_with_what_they_came_to(aeon: RunAeon, two_runs: Path) -> None:
    listed = json.loads(aeon("runs", "output=json").out)
    assert [Path(run["directory"]).name for run in listed] == ["new", "old"]
    result = json.loads((two_runs / "new" / "result.json").read_text())
    assert listed[0]["ended"] == result["termination_reason"]
    assert listed[0]["scores"]["coherence"] == result["scores"]["coherence_score"]
    assert listed[0]["tokens"] == result["usage"]["total"]["total_tokens"]
    assert listed[0]["bytes"] > 50_000
    run, head, *lines = aeon("runs", "all").out.splitlines()
    assert run == "run  started"
    assert head.split() == ["ended", "by", "scores", "cost", "size", "task"]
    assert head.index("task") == lines[1].index("plan a move")
    assert re.fullmatch(r"all/new  \d{4}-\d\d-\d\d \d\d:\d\d", lines[0])
    assert lines[1].split()[:5] == ["converged", "0.97", "0.97", "0.97", "simulated"]
    assert lines[1].endswith("plan a move")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "names", "told"),
    [
        (("where=completeness<0.9",), [], ""),
        (("where=completeness>=0.9 and ended==converged",), ["new", "old"], "2 runs."),
        (("where=cost<1 and tokens>100",), ["new", "old"], "2 runs."),
        (("where=synthetic",), ["new", "old"], "2 runs."),
        (("since=7d",), ["new"], "1 run, selected from 2."),
        (("since=2020-01-01",), ["new", "old"], "2 runs."),
        (("task~=A  Move",), ["new", "old"], "2 runs."),
        (("task~garden",), [], ""),
        (
            ("limit=1",),
            ["new"],
            "1 of 2 runs. Scores: completeness, coherence, consistency. limit=2",
        ),
    ],
)
def test_runs_are_chosen_by_figures_time_task_and_number(
    aeon: RunAeon, two_runs: Path, arguments: tuple[str, ...], names: list[str], told: str
) -> None:
    listed = json.loads(aeon("runs", "output=json", *arguments).out)
    assert [Path(run["directory"]).name for run in listed] == names
    ended = aeon("runs", *arguments)
    assert told in ended.err
    assert names or ended.out == "No run in this folder matches.\n"


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("where=ended=converged", "where=ended=converged: `=` does not compare, `==` does"),
        ("where='completeness<1'", "where='completeness<1': it is 'completeness<1', neither true"),
        ("where=speed<1", "where=speed<1: there is no 'speed'"),
        ("where=completeness<", "where=completeness<: it cannot be read"),
        ("where=task<1", "where=task<1: '<' not supported"),
        ("where=open('x')", "where=open('x'): "),
        ("since=once", "since=once: it is no time"),
        ("limit=0", "limit=0: a number from 1 to 1,000,000"),
        ("limit=²", "limit=²: a number from 1 to 1,000,000"),
        ("output=xml", "output=xml: there is json"),
        ("were=x", "Did you mean where=?"),
    ],
)
def test_a_wrong_choice_is_refused_with_what_can_be_said(
    aeon: RunAeon, two_runs: Path, argument: str, said: str
) -> None:
    ended = aeon("runs", argument)
    assert ended.status == 2
    assert said in ended.err


@pytest.mark.parametrize(
    ("width", "task"),
    [(None, "a" * 300), (80, f"{'a' * 24}…"), (60, f"{'a' * 55}…")],
)
def test_a_task_is_whole_in_a_pipe_and_fits_a_terminal(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, width: int | None, task: str
) -> None:
    aeon(f"task={'a' * 300}", "provider=simulated", "progress=none", "hydra.run.dir=run")
    monkeypatch.setattr("aeon.cli.commands.runs.terminal_width", lambda: width)
    lines = aeon("runs").out.splitlines()[3:]
    assert lines[-1].split()[-1] == task
    assert width is None or max(map(len, lines)) <= width


def test_a_score_that_is_not_known_fits_no_comparison(aeon: RunAeon, two_runs: Path) -> None:
    cut_off(two_runs / "new")
    for where in ("where=completeness<2", "where=completeness>=0", "where=cost>=0"):
        (run,) = json.loads(aeon("runs", "output=json", where).out)
        assert Path(run["directory"]).name == "old"


def test_rows_that_a_batch_runs_are_not_listed(aeon: RunAeon, two_runs: Path) -> None:
    (two_runs / "out.jsonl").touch()
    (two_runs / "new").rename(two_runs / "out.jsonl.running")
    assert [Path(run["directory"]).name for run in json.loads(aeon("runs", "output=json").out)] == [
        "old"
    ]


def test_a_run_without_a_result_is_running_or_cut_off_and_says_how_to_go_on(
    aeon: RunAeon, two_runs: Path
) -> None:
    folder = cut_off(two_runs / "new")
    assert "  cut off " in (shown := aeon("runs").out)
    assert "To resume: python -m aeon resume=all/new" in shown
    with contextlib.closing(JsonLines(folder / "events.jsonl")):
        shown = aeon("runs").out
        assert "  running " in shown
        assert "To resume" not in shown
        assert aeon("runs", "prune", "--keep", "0", "--yes").out.startswith("Removed 1 run, ")
    assert folder.is_dir()
    (folder / "events.jsonl").unlink()
    assert "  unfinished " in aeon("runs").out
    assert aeon("runs", "prune", "--keep", "0", "--yes").out == "There is nothing to remove.\n"
    assert (
        aeon("runs", "prune", "--older-than", "9" * 30, "--yes").out
        == "There is nothing to remove.\n"
    )


@pytest.mark.slow
def test_a_run_that_was_resumed_names_the_run_to_look_at(aeon: RunAeon, two_runs: Path) -> None:
    cut_off(two_runs / "old")
    for name in ("earlier", "later"):
        aeon("resume=all/old", "progress=none", f"hydra.run.dir=all/{name}")
    shown = aeon("runs").out
    assert "  Resumed in all/later\n" in shown
    assert "To resume" not in shown
    cut_off(two_runs / "later")
    assert "To resume: python -m aeon resume=all/later" in aeon("runs").out


def test_a_result_of_another_version_is_unreadable(aeon: RunAeon, two_runs: Path) -> None:
    path = two_runs / "new" / "result.json"
    path.write_text(path.read_text().replace("aeon.domain.result/1", "aeon.domain.result/9"))
    shown = aeon("runs").out
    assert "  unreadable " in shown
    assert "To resume" not in shown


@pytest.mark.slow
def test_a_run_that_was_killed_is_cut_off(tmp_path: Path, aeon: RunAeon) -> None:
    (tmp_path / "slow.yaml").write_text("calls: {plan: [{latency_seconds: 60, simulated: true}]}")
    words = [
        "task=plan a move",
        "provider=simulated",
        "provider.scenario=slow.yaml",
        "hydra.run.dir=killed",
    ]
    with subprocess.Popen(
        [sys.executable, "-m", "aeon", *words], cwd=tmp_path, stderr=subprocess.PIPE
    ) as program:
        while "  running " not in aeon("runs").out:
            assert program.poll() is None
        program.kill()
    assert "  cut off " in aeon("runs").out


def test_what_a_run_left_is_removed_and_nothing_else(aeon: RunAeon, two_runs: Path) -> None:
    (two_runs / "old" / "notes.md").write_text("mine")
    ended = aeon("runs", "prune", "--older-than", "30", "--yes")
    assert ended.out.startswith("Removed 1 run, ")
    assert "all/old stays" in ended.err
    assert [path.name for path in (two_runs / "old").iterdir()] == ["notes.md"]
    assert (two_runs / "new" / "result.json").is_file()
    aeon("runs", "prune", "all", "--keep", "0", "--yes")
    assert [path.name for path in two_runs.iterdir()] == ["old"]


@pytest.mark.parametrize(("backend", "left"), [("sqlite", ["store"]), ("mine:Store", [])])
def test_a_store_of_another_kind_goes_with_its_run(
    aeon: RunAeon, two_runs: Path, backend: str, left: list[str]
) -> None:
    path = two_runs / "old" / "result.json"
    path.write_text(path.read_text().replace('"backend": "sqlite"', f'"backend": "{backend}"'))
    (two_runs / "old" / "store").write_text("answers")
    aeon("runs", "prune", "--older-than", "30", "--yes")
    assert [each.name for each in (two_runs / "old").glob("*")] == left


@pytest.mark.slow
def test_a_run_that_another_one_has_yet_to_use_stays(aeon: RunAeon, two_runs: Path) -> None:
    aeon("resume=all/old", "progress=none", "hydra.run.dir=all/later")
    cut_off(two_runs / "later")
    aeon("runs", "prune", "--keep", "1", "--yes")
    assert {path.name for path in two_runs.iterdir()} == {"old", "later"}


@pytest.mark.slow
def test_the_last_job_takes_its_multirun_with_it(aeon: RunAeon, tmp_path: Path) -> None:
    aeon(
        "--multirun",
        "task=plan a move",
        "provider=simulated",
        "progress=none",
        "ttl.base=10,12",
        "mode=core",
    )
    assert len(json.loads(aeon("runs", "output=json").out)) == 2
    aeon("runs", "prune", "--keep", "1", "--yes")
    assert len(list((tmp_path / "multirun").rglob("multirun.yaml"))) == 1
    aeon("runs", "prune", "--keep", "0", "--yes")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "said"), [
    (["prune"], "which runs shall be removed?"),
    (["prune", "--keep", "-1"], "which runs shall be removed?"),
    (["prune", "--older-than", "-1"], "which runs shall be removed?"),
    (["prune", "--keep", "0"], "nobody can be asked"),
    (["nowhere"], "there is no such folder"),
])  # fmt: skip
def test_what_cannot_be_done_is_said_and_nothing_is_removed(
    aeon: RunAeon, two_runs: Path, arguments: list[str], said: str
) -> None:
    ended = aeon("runs", *arguments)
    assert ended.status == 2
    assert said in ended.err
    assert len(list(two_runs.iterdir())) == 2


@pytest.mark.parametrize(("typed", "left"), [("y\n", 1), ("\n", 2), ("no\n", 2)])
def test_the_question_names_what_goes_and_only_yes_is_yes(
    two_runs: Path, typed: str, left: int
) -> None:
    main, terminal = pty.openpty()
    command = [sys.executable, "-m", "aeon", "runs", "prune", "--keep", "1"]
    with subprocess.Popen(
        command, cwd=two_runs, stdin=terminal, stderr=terminal, stdout=subprocess.PIPE
    ) as program:
        os.close(terminal)
        os.write(main, typed.encode())
        assert program.stdout is not None
        told = program.stdout.read().decode()
        asked = os.read(main, 10_000).decode()
    os.close(main)
    assert "old" in asked
    assert "Remove 1 run" in asked
    assert ("Removed" in told) == (left == 1)
    assert len(list(two_runs.iterdir())) == left


def test_strange_files_and_words_are_shown_in_one_line(aeon: RunAeon, tmp_path: Path) -> None:
    head = '"format": "aeon.domain.result/1"'
    words = '"task": "\\u001b[31mred\\nline", "passes": 1, "termination_reason": "failed"'
    texts = {
        "list": "[]",
        "schema": '{"usage": 3}',
        "text": f'{{{head}, "usage": 3}}',
        "words": f"{{{head}, {words}}}",
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(text)
    shown = aeon("runs").out
    assert "  unreadable " in shown
    assert "\x1b" not in shown
    assert "[31mred line" in shown
    runs = shown.splitlines()[2:]
    assert {line.split()[0] for line in runs if line[0] != " "} == {"words", "text"}
    aeon("runs", "prune", "--keep", "0", "--yes")
    assert {path.name for path in tmp_path.iterdir()} == {"list", "schema"}


def test_a_baseline_is_a_part_of_its_run(aeon: RunAeon, two_runs: Path) -> None:
    assert aeon("baseline", "all/new").status == 0
    assert (two_runs / "new" / "baseline" / "result.json").is_file()
    listed = json.loads(aeon("runs", "all", "output=json").out)
    assert [Path(run["directory"]).name for run in listed] == ["new", "old"]
    assert aeon("runs", "prune", "all", "--keep", "0", "--yes").status == 0
    assert not two_runs.exists() or not list(two_runs.iterdir())
