"""`aeon compare`: its table, its files, and what it says of bad usage."""

import csv
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from aeon.cli.terminal.side_by_side import draw_comparison
from aeon.report.compare.rows import Comparison, plan_job
from tests.cli.conftest import RunAeon

pytestmark = pytest.mark.slow  # each has a multirun of its own
QUIET = ("task=plan a move", "provider=simulated", "progress=none", "observability.report=false")


@pytest.fixture
def multirun(aeon: RunAeon, scenario: Path, tmp_path: Path) -> Path:
    swept = (f"provider.scenario=null,{scenario}", "provider.seed=1,2", "hydra.sweep.dir=sweep")
    swept = (*swept, "hydra.sweep.subdir=${hydra.job.num}")
    assert aeon("--multirun", *QUIET, *swept).status == 1
    return tmp_path / "sweep"


def test_a_multirun_leaves_its_page_with_what_was_swept_and_what_failed(
    aeon: RunAeon, multirun: Path
) -> None:
    page = (multirun / "compare.html").read_text(encoding="utf-8")
    assert "2 of 4 runs converged" in page
    assert page.count('<p dir="auto">AuthenticationFailed: simulated by the scenario: auth') == 1
    assert 'aria-label="Effect of provider.seed"' in page
    rows = list(csv.DictReader((multirun / "compare.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["ended"] for row in rows] == ["converged", "converged", "failed", "failed"]
    assert (multirun / "summary.csv").is_file()


def test_a_page_that_cannot_be_written_changes_no_status(
    aeon: RunAeon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("no page")

    monkeypatch.setattr("aeon.report.compare.page.render_comparison", fail)
    ended = aeon("--multirun", *QUIET, "ttl.base=10,11", "hydra.sweep.dir=sweep")
    assert ended.status == 0
    assert "Warning: compare.html: ValueError: no page; `aeon compare" in ended.err


def test_the_table_of_a_multirun_has_a_row_for_each_job(aeon: RunAeon, multirun: Path) -> None:
    ended = aeon("compare", "sweep")
    head, *rows = ended.out.splitlines()
    assert ended.status == 0
    assert re.split(r"\s{2,}", head)[:4] == [
        "run",
        "provider.scenario",
        "provider.seed",
        "ended by",
    ]
    assert [row.split()[0] for row in rows[:4]] == ["0", "1", "2", "3"]
    assert "2 of 4 runs converged. Scores: completeness, coherence, consistency." in rows
    assert any("2, 3: AuthenticationFailed: simulated by the scenario: auth" in row for row in rows)
    assert "sweep/compare.html" in ended.err


def test_on_a_terminal_the_table_is_no_wider_than_it(
    aeon: RunAeon, multirun: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("aeon.cli.commands.compare.terminal_width", lambda: 80)
    monkeypatch.setenv("NO_COLOR", "1")
    for arguments in (("sweep",), ("sweep/0", "sweep/1")):
        lines = re.sub(r"\x1b\[[\d;]*m", "", aeon("compare", *arguments).out).splitlines()
        assert max(map(cell_len, lines)) <= 80


def test_two_runs_are_told_with_where_they_diverge(
    aeon: RunAeon, multirun: Path, tmp_path: Path
) -> None:
    ended = aeon("compare", "sweep/0", "sweep/1", "out=pair")
    assert "They diverge at event 6 (of 120 and 165). They were asked differently" in ended.out
    assert ended.out.startswith("They differ in provider.seed: 1 and 2. Both converged.")
    assert "The plan that execution started with" in ended.out
    assert "Where they diverge" in (tmp_path / "pair" / "compare.html").read_text(encoding="utf-8")


def test_json_and_csv_are_printed_and_nothing_is_written(
    aeon: RunAeon, multirun: Path, tmp_path: Path
) -> None:
    whole = json.loads(aeon("compare", "sweep/0", "sweep/1", "output=json").out)
    assert whole["parameters"] == ["provider.seed"]
    assert whole["divergence"]["number"] == 6
    assert whole["runs"][0]["figures"]["passes"] == 4
    assert aeon("compare", "sweep", "output=csv").out.startswith(
        "run,provider.scenario,provider.seed,ended,converged,"
    )
    assert not (tmp_path / "compare.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "which runs?"),
        (("nowhere", "sweep"), "nowhere: there is no such folder"),
        (("empty",), "empty: 0 runs found, two are needed"),
        (("empty", "output=xml"), "output=xml: there are table, json, csv"),
        (("--opne",), "Did you mean --open?"),
    ],
)
def test_bad_usage_is_told(
    aeon: RunAeon, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "empty").mkdir()
    ended = aeon("compare", *arguments)
    assert ended.status == 2
    assert said in ended.err


def test_a_killed_multirun_shows_the_jobs_that_never_began(aeon: RunAeon, multirun: Path) -> None:
    summary = multirun / "summary.csv"
    rows = list(csv.reader(summary.read_text(encoding="utf-8").splitlines()))
    waiting = ["4", "null", "3", "not started", *[""] * (len(rows[0]) - 4)]
    summary.write_text("\n".join(",".join(row) for row in [*rows, waiting]), encoding="utf-8")
    whole = json.loads(aeon("compare", "sweep", "output=json").out)
    assert whole["runs"][-1]["ended"] == "not started"
    assert whole["parameters"] == ["provider.scenario", "provider.seed"]


def test_a_run_that_was_cut_off_is_held_against_another_by_its_composed_configuration(
    aeon: RunAeon, multirun: Path
) -> None:
    (multirun / "1" / "result.json").unlink()
    whole = json.loads(aeon("compare", "sweep/0", "sweep/1", "output=json").out)
    assert [run["ended"] for run in whole["runs"]] == ["converged", "cut off"]
    assert whole["parameters"] == ["provider.seed"]


def test_a_cause_and_its_hint_are_two_sentences() -> None:
    failed = replace(plan_job("1", {}), ended="failed", cause="Busy; 1 step failed", hint="Wait.")
    table = draw_comparison(Comparison((failed, plan_job("2", {})), ()))
    assert "1: Busy; 1 step failed. Wait." in table.splitlines()
