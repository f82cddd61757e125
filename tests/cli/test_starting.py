"""What a terminal shows before there is a run: that the program is starting, and that it reads a task."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_ctrl_c_at_a_question import at_a_terminal


@pytest.mark.slow
def test_a_terminal_shows_that_the_program_is_starting_until_there_is_more(tmp_path: Path) -> None:
    with at_a_terminal(
        tmp_path, "task=x", "provider=simulated", "progress=live", shown=None
    ) as terminal:
        terminal.wait_for("Aeon  x")
        assert terminal.shown.startswith("Aeon is starting ...\r\n")


@pytest.mark.slow
def test_nothing_but_what_was_asked_for_is_shown_without_a_run(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "--cfg", "job", shown=None) as terminal:
        assert terminal.process.wait(timeout=60) == 0
        assert "starting" not in terminal.shown


@pytest.mark.slow
def test_a_task_that_is_read_from_a_terminal_is_asked_for(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "task=-", "provider=simulated") as terminal:
        terminal.wait_for(
            "Reading the task from this terminal: type it, then Ctrl-D on a line of its own."
        )
        terminal.type("name three rivers\n\x04")
        terminal.wait_for("Artefacts:")
        terminal.process.wait(timeout=60)
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["task"].strip() == "name three rivers"


@pytest.mark.slow
def test_a_run_on_a_terminal_ends_with_its_card(tmp_path: Path) -> None:
    with at_a_terminal(
        tmp_path, "task=x", "provider=simulated", "limits.max_passes=1", "progress=live"
    ) as terminal:
        terminal.wait_for("resume=run limits.max_passes=4")
        terminal.process.wait(timeout=60)
        time.sleep(0.1)
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.shown)
    assert "  folder       run\r\n" in text
    assert "Artefacts:" not in text


@pytest.mark.slow
def test_modules_of_the_working_directory_do_not_take_the_place_of_libraries(
    tmp_path: Path,
) -> None:
    for name in ("yaml", "typing", "hydra", "signal", "hydra_plugins/evil/__init__"):
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("raise SystemExit('this is of the working directory')\n", encoding="utf-8")
    command = [sys.executable, "-m", "aeon", "--cfg", "job", "--package", "ttl"]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, "base:" in ended.stdout) == (0, True), ended.stderr
