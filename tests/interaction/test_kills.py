"""Runs that are killed with SIGKILL at any write of what they ask, or of what they use."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from aeon.interaction.desk import Desk

pytestmark = pytest.mark.slow

PLAN = """\
goal: g
steps:
  - {id: m, description: Measure the room, agent: person}
  - {id: p, description: Pour, tool: pour, arguments: {cup: one}}
"""
TOOLS = '''
from pathlib import Path

def pour(cup: str) -> str:
    """Pour tea."""
    with Path("poured.log").open("a") as log:
        log.write("x")
    return "poured"
'''
RUN = """
import os, signal, sys
from pathlib import Path
from aeon import Aeon
from aeon.interaction import desk
from aeon.store.sqlite_store import SqliteStore

name, die_at, *overrides = sys.argv[1:]
die, writes = int(die_at), 0

def dying(write):
    def call(*given):
        global writes
        for _ in range(2):
            writes += 1
            if writes == die:
                os.kill(os.getpid(), signal.SIGKILL)
            if _ == 0:
                write(*given)
    return call

desk.replace_file = dying(desk.replace_file)
SqliteStore.put = dying(SqliteStore.put)
with Aeon.from_config(overrides, environ={}) as aeon:
    sys.exit(aeon.run(directory=name).exit_status)
"""
ASKING = (
    "plan_file=plan.yaml",
    "provider=simulated",
    "mode=core",
    "interaction=defer",
    "tools.functions.pour=pouring:pour",
    "tools.approval.pour=ask",
    "memory=in_memory",
)


def run(folder: Path, name: str, die_at: int, *overrides: str) -> int:
    command = [sys.executable, "-c", RUN, name, str(die_at), *overrides]
    return subprocess.run(command, cwd=folder, timeout=120, capture_output=True).returncode


@pytest.mark.parametrize("die_at", range(1, 7))
def test_a_run_that_is_killed_at_a_write_goes_on_once_it_is_answered(
    tmp_path: Path, die_at: int
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    (tmp_path / "pouring.py").write_text(TOOLS)
    directory = "run-0"
    statuses = [run(tmp_path, directory, die_at, *ASKING)]
    for number in range(1, 9):
        folder = tmp_path / directory
        for question in Desk(folder).list_open():
            Desk(folder).settle({question.id: "yes" if question.kind == "approval" else "4 by 5"})
        # Each start is killed at its own write, but for the later ones, which come to an end.
        directory = f"run-{number}"
        at = die_at if number < 3 else 0
        statuses.append(run(tmp_path, directory, at, f"resume={folder}"))
        if statuses[-1] == 0:
            break
    assert set(statuses) <= {-signal.SIGKILL, 6, 0}
    assert statuses[-1] == 0
    assert (tmp_path / "poured.log").read_text() in ("x", "xx")
