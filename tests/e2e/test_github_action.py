"""The GitHub action: what it runs, what it says of it, and its steps, without GitHub."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "action" / "run.py"
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("action_run", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_action(folder: Path, **inputs: str) -> tuple[dict[str, str], str, int]:
    """The outputs, the summary and the exit status of the script."""
    named = {f"AEON_{name.upper()}": value for name, value in inputs.items()}
    files = {"GITHUB_OUTPUT": folder / "output", "GITHUB_STEP_SUMMARY": folder / "summary"}
    environ = {**os.environ, **named, **{name: str(path) for name, path in files.items()}}
    ended = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=folder,
        env={**environ, "RUNNER_TEMP": str(folder)},
        capture_output=True,
        timeout=100,
        check=False,
    )
    text = files["GITHUB_OUTPUT"].read_text() if files["GITHUB_OUTPUT"].exists() else ""
    outputs = dict(line.split("=", 1) for line in text.splitlines())
    summary = files["GITHUB_STEP_SUMMARY"]
    return outputs, summary.read_text() if summary.exists() else "", ended.returncode


@pytest.mark.slow
def test_a_run_leaves_its_page_its_answer_and_a_summary(tmp_path: Path) -> None:
    outputs, summary, ended = run_action(
        tmp_path, task="name <b>three</b> rivers", overrides="provider=simulated\nmode=single\n"
    )
    assert (ended, outputs["status"]) == (0, "0")
    assert (tmp_path / outputs["page"]).is_file()
    assert (tmp_path / outputs["answer"]).is_file()
    assert "### Aeon: done" in summary
    assert "| completed | none | 1 | 1 |" in summary
    assert "name &lt;b&gt;three&lt;/b&gt; rivers" in summary
    assert Path(outputs["summary"]).read_text() == summary


@pytest.mark.slow
def test_a_command_that_cannot_be_used_says_so_and_lets_later_steps_run(tmp_path: Path) -> None:
    outputs, summary, ended = run_action(tmp_path, task="tea", overrides="ttl.bass=1")
    assert (ended, outputs["status"], outputs["page"]) == (0, "2", "")
    assert "cannot be used" in summary


@pytest.mark.slow
def test_what_an_earlier_run_left_in_the_folder_is_not_reported(tmp_path: Path) -> None:
    inputs = {"task": "tea", "overrides": "provider=simulated\nmode=single"}
    _, first, _ = run_action(tmp_path, **inputs)
    outputs, both, _ = run_action(tmp_path, **inputs)
    summary = both.removeprefix(first)
    assert (outputs["status"], outputs["page"], outputs["answer"]) == ("2", "", "")
    assert "cannot be used" in summary
    assert "| ended |" not in summary


@pytest.mark.slow
def test_a_measurement_has_a_row_for_each_arm_and_its_status(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"task": "2+2", "target": "4"}\n', encoding="utf-8")
    overrides = 'provider=simulated\nallow_simulated=true\narms.one=["mode=single"]\nthreshold=0.5'
    inputs = {"dataset": "rows.jsonl", "overrides": overrides}
    outputs, summary, _ = run_action(tmp_path, **inputs)
    assert outputs["status"] == "4"
    assert outputs["page"].endswith("eval.html")
    assert "| one | 0 of 1 | 0.0% |" in summary
    assert "below the threshold" in summary
    again, both, _ = run_action(tmp_path, **inputs)
    assert again == outputs
    assert both == summary * 2


@pytest.mark.parametrize(
    "inputs", [{}, {"task": "a", "dataset": "b"}, {"task": "a", "out": "a\nb"}]
)
def test_inputs_that_cannot_be_used_end_the_step(tmp_path: Path, inputs: dict[str, str]) -> None:
    outputs, _, ended = run_action(tmp_path, **inputs)
    assert (outputs, ended) == ({}, 1)


def test_the_cap_is_of_the_run_or_of_the_measurement(script: ModuleType) -> None:
    assert "limits.max_cost=0.5" in script.make_command({"AEON_TASK": "a", "AEON_MAX_COST": "0.5"})
    measured = script.make_command({"AEON_DATASET": "rows.jsonl"})
    assert {"batch.max_cost=1", "batch.confirm_above_cost=1"} <= set(measured)
    assert not [
        word
        for word in script.make_command({"AEON_TASK": "a", "AEON_MAX_COST": "none"})
        if "max_cost" in word
    ]


def test_what_others_wrote_is_text_in_a_comment(script: ModuleType) -> None:
    hostile = "a | b <script>\n@everyone"
    assert script.escape(hostile) == "a \\| b &lt;script&gt; @<!-- -->everyone"
    long = script.describe_run(
        {
            "usage": {"total": {"cost": None, "requests": 1, "total_tokens": 2}},
            "termination_reason": "completed",
            "passes": 1,
            "answer": "x" * 100_000 + "</pre>",
        }
    )
    text = "\n".join(long)
    assert len(text) < 65_536
    assert "unknown" in text


def test_no_input_stands_in_a_shell_command() -> None:
    steps = ACTION["runs"]["steps"]
    assert all("inputs." not in step.get("run", "") for step in steps)
    assert all(step.get("shell") == "bash" for step in steps if "run" in step)
    given = next(step["env"] for step in steps if step.get("id") == "aeon")
    read = SCRIPT.read_text(encoding="utf-8")
    assert all(name in read for name in given if name != "ACTION_PATH")


def test_every_input_is_documented() -> None:
    page = (ROOT / "docs" / "github.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in page for name in (*ACTION["inputs"], *ACTION["outputs"]))


def test_the_last_step_ends_as_aeon_did(tmp_path: Path) -> None:
    last = ACTION["runs"]["steps"][-1]
    ended = subprocess.run(
        ["bash", "-c", last["run"]], env={**os.environ, "STATUS": "4"}, check=False
    )
    assert ended.returncode == 4
    assert json.dumps(last["env"]) == '{"STATUS": "${{ steps.aeon.outputs.status }}"}'
