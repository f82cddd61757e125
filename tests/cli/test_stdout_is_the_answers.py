"""Standard output belongs to the answer and standard error to the program, whatever a tool does with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOOL = '''
import subprocess
from aeon import tool

@tool
def noisy() -> str:
    """Writes where it should not."""
    subprocess.run(["echo", "noise of a process"], check=True)
    return "quiet"
'''
WORKFLOW = """
goal: be quiet
steps:
  - id: only
    description: call it
    tool: noisy
    arguments: {}
"""


def test_a_process_that_a_tool_starts_writes_to_standard_error(tmp_path: Path):
    (tmp_path / "owntools.py").write_text(TOOL)
    (tmp_path / "plan.yaml").write_text(WORKFLOW)
    command = ["plan_file=plan.yaml", "mode=core", "provider=simulated", "tools.functions.noisy=owntools:noisy"]
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *command], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "noise of a process" not in ended.stdout
    assert "noise of a process" in ended.stderr
    assert "quiet" in ended.stdout


SILENCER = '''
import os
import sys
from aeon import tool

@tool
def noisy() -> str:
    """Closes what is not its own."""
    {closing}
    return "quiet"
'''


@pytest.mark.parametrize("closing", ["sys.stderr.close()", "os.close(2)"])
def test_a_tool_that_closes_standard_error_does_not_silence_the_program(tmp_path: Path, closing: str):
    (tmp_path / "owntools.py").write_text(SILENCER.format(closing=closing))
    (tmp_path / "plan.yaml").write_text(WORKFLOW)
    command = ["plan_file=plan.yaml", "mode=core", "provider=simulated", "tools.functions.noisy=owntools:noisy"]
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *command, "progress=plain"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "quiet" in ended.stdout
    assert "Traceback" not in ended.stderr
    assert "Completed." in ended.stderr.splitlines()[-1]
    assert "only" in ended.stderr


IMPORTED = '''
import os
import sys

print("noise of importing")
os.system("echo noise of a process")
sys.stderr.close()

def quiet() -> str:
    """Says nothing more."""
    return "quiet"
'''


@pytest.mark.parametrize(("command", "first"), [((), "[SIMULATED"), (("plan",), "# SIMULATED")], ids=("run", "plan"))
def test_a_module_of_tools_that_is_noisy_when_imported_spoils_neither(
    tmp_path: Path, command: tuple[str, ...], first: str
):
    (tmp_path / "owntools.py").write_text(IMPORTED)
    given = (*command, "task=x", "provider=simulated", "progress=none", "tools.functions.quiet=owntools:quiet")
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *given], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(first)
    assert "noise of importing" in ended.stderr
    assert "noise of a process" in ended.stderr
    assert "made up" in ended.stderr
