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
        "limits.max_passes=3",
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
    assert blockers["incomplete"] == [1, 2, 3]
    assert told["patterns"]["by_pass"]["1"]["requests"] > 0
    assert told["findings"][0]["title"].startswith("Completeness stays at 0.60 in passes 1 to 3")
    assert (run / "report.html").stat().st_mtime_ns == before


def test_text_is_a_few_lines_without_control_characters(aeon: RunAeon, run: Path) -> None:
    lines = aeon("inspect", "run", "output=text").out.splitlines()
    assert lines[0] == "plan a [31m move"
    assert lines[1].startswith("Finished without converging: limits.max_passes was reached")
    assert lines[2:4] == [
        "- Completeness stays at 0.60 in passes 1 to 3; its threshold is 0.95",
        "  Not [31mall [0m of it.",
    ]


def test_another_form_is_bad_usage(aeon: RunAeon, run: Path) -> None:
    assert aeon("inspect", "run", "output=xml").status == 2
