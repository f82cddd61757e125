"""Standard output belongs to the answer and standard error to the program, whatever a tool does with them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
    command = [
        "plan_file=plan.yaml",
        "mode=core",
        "provider=simulated",
        "tools.functions.noisy=owntools:noisy",
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *command],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
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


@pytest.mark.parametrize(
    "closing", [pytest.param("sys.stderr.close()", marks=pytest.mark.slow), "os.close(2)"]
)
def test_a_tool_that_closes_standard_error_does_not_silence_the_program(
    tmp_path: Path, closing: str
):
    (tmp_path / "owntools.py").write_text(SILENCER.format(closing=closing))
    (tmp_path / "plan.yaml").write_text(WORKFLOW)
    command = [
        "plan_file=plan.yaml",
        "mode=core",
        "provider=simulated",
        "tools.functions.noisy=owntools:noisy",
    ]
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *command, "progress=plain"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "quiet" in ended.stdout
    assert "Traceback" not in ended.stderr
    *_, ending, page = ended.stderr.splitlines()
    assert "Completed." in ending
    assert page.startswith("Page: ")
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "first"), [((), "[SIMULATED"), (("plan",), "# SIMULATED")], ids=("run", "plan")
)
def test_a_module_of_tools_that_is_noisy_when_imported_spoils_neither(
    tmp_path: Path, command: tuple[str, ...], first: str
):
    (tmp_path / "owntools.py").write_text(IMPORTED)
    given = (
        *command,
        "task=x",
        "provider=simulated",
        "progress=none",
        "tools.functions.quiet=owntools:quiet",
    )
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *given],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(first)
    assert "noise of importing" in ended.stderr
    assert "noise of a process" in ended.stderr
    assert "made up" in ended.stderr


TAKERS = '''
import contextlib
import io
import os
import sys
import threading
import time

first_is_in, second_is_in, first_is_out = threading.Event(), threading.Event(), threading.Event()

def outer(text: str) -> str:
    """Captures what it prints, and ends while another still does."""
    with contextlib.redirect_stdout(io.StringIO()):
        first_is_in.set()
        second_is_in.wait(60)
    first_is_out.set()
    return text

def inner(text: str) -> str:
    """Captures what it prints, within the time of another, and gives back what it found."""
    first_is_in.wait(60)
    with contextlib.redirect_stdout(io.StringIO()):
        second_is_in.set()
        first_is_out.wait(60)
    return text

def hangs(text: str) -> str:
    """Captures what it prints, and never ends."""
    with contextlib.redirect_stdout(io.StringIO()):
        time.sleep(3600)
    return text

def takes(text: str) -> str:
    """Takes standard output away."""
    exec(text)
    return "taken"
'''
TAKEN = """
goal: the answer arrives
steps:
  - {id: a, description: first, tool: outer, arguments: {text: x}}
  - {id: b, description: second, tool: inner, arguments: {text: x}}
  - {id: c, description: last, depends_on: [a, b], agent: llm}
"""
LEFT = """
goal: the answer arrives
steps:
  - {{id: a, description: first, tool: {tool}, arguments: {{text: "{text}"}}}}
  - {{id: b, description: last, agent: llm}}
"""


def with_tools(folder: Path, tools: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The program with tools of one's own, in a folder of its own."""
    (folder / "owntools.py").write_text(TAKERS)
    given = (f"tools.functions.{name}=owntools:{name}" for name in tools.split())
    command = [
        sys.executable,
        "-m",
        "aeon",
        *arguments,
        "provider=simulated",
        "provider.seed=1",
        *given,
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_tools_that_capture_what_they_print_at_the_same_time_do_not_take_the_answer(tmp_path: Path):
    (tmp_path / "plan.yaml").write_text(TAKEN)
    ended = with_tools(tmp_path, "outer inner", "plan_file=plan.yaml")
    assert ended.returncode in (0, 3), ended.stderr
    assert ended.stdout.startswith("[SIMULATED")
    assert ended.stdout.count("\n") > 1


@pytest.mark.slow
@pytest.mark.parametrize("form", ["answer", "json"])
def test_a_tool_that_hangs_while_it_captures_does_not_take_the_answer(tmp_path: Path, form: str):
    (tmp_path / "plan.yaml").write_text(LEFT.format(tool="hangs", text="x"))
    given = ("plan_file=plan.yaml", "mode=core", "tools.timeout_seconds=0.3", f"output={form}")
    ended = with_tools(tmp_path, "hangs", *given)
    assert ended.returncode == 3, ended.stderr
    assert "[SIMULATED" in ended.stdout


@pytest.mark.parametrize(
    "text",
    [
        "os.close(1)",
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in (
                "sys.stdout = None",
                "sys.stdout = io.StringIO()",
                "sys.stdout.close()",
                "sys.__stdout__.close()",
            )
        ),
    ],
)
def test_a_tool_that_takes_standard_output_away_does_not_take_the_answer(tmp_path: Path, text: str):
    (tmp_path / "plan.yaml").write_text(LEFT.format(tool="takes", text=text))
    ended = with_tools(tmp_path, "takes", "plan_file=plan.yaml", "mode=core")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("[SIMULATED")
    assert "Exception ignored" not in ended.stderr


TAKEN_WHEN_IMPORTED = '''
import io
import os
import sys

os.system("echo noise of a process")
sys.stdout = {}

def quiet() -> str:
    """Says nothing."""
    return "quiet"
'''


@pytest.mark.parametrize("taken", ["None", pytest.param("io.StringIO()", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("tools", "--json"), '"quiet"'),
        pytest.param(("check", "plan.yaml"), "Tools: quiet", marks=pytest.mark.slow),
        pytest.param(
            ("plan", "task=x", "provider=simulated"), "# SIMULATED", marks=pytest.mark.slow
        ),
        pytest.param(("verify", "provider=simulated"), "came to an end", marks=pytest.mark.slow),
        pytest.param(("doctor", "provider=simulated"), "Every role works", marks=pytest.mark.slow),
    ],
    ids=("tools", "check", "plan", "verify", "doctor"),
)
def test_a_module_of_tools_that_takes_standard_output_away_does_not_take_what_a_command_says(
    tmp_path: Path, command: tuple[str, ...], said: str, taken: str
):
    (tmp_path / "owntools.py").write_text(TAKEN_WHEN_IMPORTED.format(taken))
    (tmp_path / "plan.yaml").write_text(
        "goal: g\nsteps: [{id: a, description: d, tool: quiet, arguments: {}}]\n"
    )
    given = (*command, "tools.functions.quiet=owntools:quiet")
    ended = subprocess.run(
        [sys.executable, "-m", "aeon", *given],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert said in ended.stdout
    assert "noise" not in ended.stdout
