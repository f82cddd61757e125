"""`aeon inspect RUN output=json` and `output=text`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import RunAeon

SCENARIO = """
calls:
  convergence:
    - {answer: {completeness_score: 0.6, explanation: "Not \\e[31mall\\e[0m of it."}}
"""


@pytest.fixture
def run(aeon: RunAeon, tmp_path: Path) -> Path:
    (tmp_path / "low.yaml").write_text(SCENARIO)
    chosen = [
        "provider=simulated",
        "provider.scenario=low.yaml",
        "limits.max_passes=5",
        "progress=none",
    ]
    assert aeon("task=plan a \x1b[31m move", *chosen, "hydra.run.dir=run").status == 3
    return tmp_path / "run"


def test_json_has_the_facts_the_findings_and_the_patterns(aeon: RunAeon, run: Path) -> None:
    before = (run / "report.html").stat().st_mtime_ns
    told = json.loads(aeon("inspect", "run", "output=json").out)
    result = json.loads((run / "result.json").read_text())
    assert {name: result[name] for name in ("run_id", "termination_reason", "usage")} == {
        name: told[name] for name in ("run_id", "termination_reason", "usage")
    }
    blockers = {blocker["code"]: blocker["passes"] for blocker in told["patterns"]["blockers"]}
    assert blockers["incomplete"] == [1, 2, 3, 4, 5]
    assert told["patterns"]["by_pass"]["1"]["requests"] > 0
    assert told["findings"][0]["title"].startswith("Completeness stays at 0.60 in passes 1 to 5")
    assert (run / "report.html").stat().st_mtime_ns == before


def test_text_is_a_few_lines_without_control_characters(aeon: RunAeon, run: Path) -> None:
    lines = aeon("inspect", "run", "output=text").out.splitlines()
    assert lines[0] == "plan a [31m move"
    assert lines[1].startswith("Finished without converging: limits.max_passes was reached")
    assert lines[3:5] == [
        "- Completeness stays at 0.60 in passes 1 to 5; its threshold is 0.95",
        "  Not [31mall [0m of it.",
    ]


def test_cycles_are_printed_in_order_each_with_its_whole_plan(aeon: RunAeon, run: Path) -> None:
    lines = [json.loads(line) for line in aeon("inspect", "run", "output=cycles").out.splitlines()]
    assert [line["step_number"] for line in lines] == list(range(len(lines)))
    assert lines == [json.loads(line) for line in (run / "cycles.jsonl").read_text().splitlines()]
    kinds = {line["call"]: (line["plan_state"] or {}).get("kind") for line in lines}
    assert kinds["convergence"] == kinds["step"] == "full"
    assert kinds["plan"] is kinds["task_profile"] is None


def test_the_cycles_of_nothing_are_refused(aeon: RunAeon, run: Path) -> None:
    ended = aeon("inspect", "elsewhere", "output=cycles")
    assert ended.status == 2
    assert "elsewhere/cycles.jsonl cannot be read" in ended.err
    (run / "cycles.jsonl").write_text("{}\n")
    ended = aeon("inspect", "run", "output=cycles")
    assert ended.status == 2
    assert "holds no cycles of this version" in ended.err


def test_another_form_is_bad_usage(aeon: RunAeon, run: Path) -> None:
    assert aeon("inspect", "run", "output=xml").status == 2
