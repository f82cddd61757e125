"""Standard output belongs to the answer, whatever a tool does with file descriptor 1."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
