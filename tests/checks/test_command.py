"""Checks that run a program beside the answer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from aeon.checks.command import find_code, run_command
from aeon.checks.interface import CheckBroken
from aeon.domain.checks import CommandCheck
from aeon.domain.errors import ConfigError, StopRequested
from tests.checks.builders import CONTEXT, check, run_checks

PYTHON = [sys.executable, "-c"]


def command(code: str, **settings: Any) -> CommandCheck:
    return CommandCheck(type="command", value=(*PYTHON, code), **settings)


def test_exit_status_nought_passes_and_what_was_printed_is_the_feedback() -> None:
    passed = check(
        "tea", type="command", value=[*PYTHON, "print('well', open('answer.md').read())"]
    )
    assert (passed.passed, passed.feedback) == (True, "well tea")
    failed = check("tea", type="command", value=[*PYTHON, "import sys; sys.exit('no milk')"])
    assert (failed.passed, failed.measured, failed.feedback) == (False, True, "no milk")
    assert check("tea", type="not-command", value=[*PYTHON, "import sys; sys.exit(3)"]).passed


@pytest.mark.slow
def test_pytest_runs_on_the_code_of_an_answer(tmp_path: Path) -> None:
    tests = tmp_path / "answer_test.py"
    tests.write_text("from answer import double\n\ndef test_it():\n    assert double(4) == 8\n")
    settings: dict[str, Any] = {
        "type": "command",
        "value": [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "answer_test.py"],
        "files": [str(tests)],
        "file": "answer.py",
        "extract": "code",
    }
    right = "Here it is:\n\n```python\ndef double(x):\n    return 2 * x\n```\n\nEnjoy."
    assert check(right, **settings).passed
    wrong = check(right.replace("2 * x", "x"), **settings)
    assert not wrong.passed
    assert "assert 4 == 8" in wrong.feedback
    assert "/aeon-check-" not in wrong.feedback


def test_it_sees_no_key_and_what_the_run_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    code = "import os, json; print(sorted(os.environ), json.load(open('context.json'))['task'])"
    found = run_command(command(code), "tea", CONTEXT)
    assert "OPENAI_API_KEY" not in found.feedback
    assert "PATH" in found.feedback
    assert found.feedback.endswith("make tea")


def test_a_lone_program_and_words_that_are_numbers_need_no_quotes() -> None:
    assert check("tea", type="command", value="true").passed
    assert check("tea", type="command", value=["sleep", 0]).passed


def test_the_files_are_copies(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("as it was")
    code = "open('data.txt', 'w').write('changed')"
    settings = command(code, files=(tmp_path / "data.txt",))
    assert run_command(settings, "tea", CONTEXT).passed
    assert (tmp_path / "data.txt").read_text() == "as it was"


@pytest.mark.slow
def test_one_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        f"open({str(mark)!r}, 'w').write(str(child.pid)); print('begun', flush=True); time.sleep(60)"
    )
    with pytest.raises(CheckBroken, match=r"took longer than 2 seconds, and printed:\nbegun"):
        run_command(command(code, timeout_seconds=2), "tea", CONTEXT)
    assert not is_running(int(mark.read_text()))


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    if not status.exists():
        return False
    return status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_run_that_stops_ends_it() -> None:
    with pytest.raises(StopRequested):
        run_command(command("import time; time.sleep(60)"), "tea", CONTEXT, stop=lambda: True)


def test_of_a_long_output_beginning_and_end_are_kept() -> None:
    code = "print('first'); print('x' * 1_000_000); print('last')"
    found = run_command(command(code, max_output_characters=400), "tea", CONTEXT)
    assert found.feedback.startswith("first")
    assert found.feedback.endswith("last")
    assert "[... cut ...]" in found.feedback
    assert len(found.feedback) < 450


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"value": ["no-such-program"]}, "there is no program 'no-such-program'"),
        ({"value": ["ls"], "files": ["/no/such/file.py"]}, "does not exist"),
        ({"value": ["ls"], "files": ["/no/such/../file.py"]}, "files: /no/file.py does not exist"),
        ({"value": ["ls"], "files": ["/tmp"]}, "is a folder"),
    ],
)
def test_what_is_missing_is_refused_before_the_run(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        run_checks({"mine": {"type": "command", **settings}})


def test_two_files_of_one_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "answer.md").write_text("mine")
    settings = {"type": "command", "value": ["ls"], "files": [str(tmp_path / "answer.md")]}
    with pytest.raises(ConfigError, match=r"two files would have the name answer\.md"):
        run_checks({"mine": settings})


def test_a_script_among_the_files_is_a_program(tmp_path: Path) -> None:
    script = tmp_path / "look.sh"
    script.write_text("#!/bin/sh\ngrep -q tea answer.md\n")
    script.chmod(0o755)
    settings = {"type": "command", "value": ["./look.sh"], "files": [str(script)]}
    assert check("tea", **settings).passed
    assert not check("coffee", **settings).passed


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("no block", "no block"),
        ("a\n```python\nx = 1\n```\nb\n```\ny\n```", "x = 1\n"),
        ("~~~~\n```\nx\n```\n~~~~\n", "```\nx\n```\n"),
        ("```\nnever closed\n", "never closed\n"),
        ("inline ``` marks", "inline ``` marks"),
    ],
)
def test_the_first_code_block_is_found(answer: str, code: str) -> None:
    assert find_code(answer) == code


def test_the_context_is_json_as_a_function_is_given_it(tmp_path: Path) -> None:
    out = tmp_path / "context"
    code = f"import shutil; shutil.copy('context.json', {os.fspath(out)!r})"
    run_command(command(code), "tea", CONTEXT.model_copy(update={"row": {"id": "r1"}}))
    assert json.loads(out.read_text())["row"] == {"id": "r1"}
