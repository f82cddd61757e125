"""Tools that a person must approve, at a terminal and without one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from aeon.cli.job import attendance
from aeon.cli.terminal import questions as ask
from aeon.cli.terminal.questions import approve
from aeon.domain.plan import PlanStep
from aeon.tools.registry import ApprovalRequest
from tests.cli.conftest import RunAeon
from tests.tools.builders import a_tool

PLAN = """\
goal: g
steps:
  - {id: a, description: say it back, tool: echo, arguments: {text: hello}}
  - {id: b, description: d, depends_on: [a], tool: calculator, arguments: {expression: 1 + 1}}
"""
ASKS = (
    "tools=builtin",
    "+tools.approval={echo: ask}",
    "provider=simulated",
    "mode=core",
    "plan_file=plan.yaml",
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attendance, "at_terminal", lambda: True)


@pytest.mark.usefixtures("plan_file", "at_terminal")
@pytest.mark.parametrize("answer", ["y\n", "YES\n", " y \n"])
def test_the_person_is_asked_and_may_say_yes(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    ended = aeon(*ASKS)
    assert ended.status == 0
    assert "Tool echo: " in ended.err
    assert "For step a: say it back" in ended.err
    assert 'Arguments: {"text": "hello"}' in ended.err
    assert "May it be called? [y/N]" in ended.err
    assert "Tool calculator" not in ended.err
    assert ended.out.splitlines()[1:] == ["2"]


@pytest.mark.usefixtures("plan_file", "at_terminal")
@pytest.mark.parametrize("answer", ["n\n", "\n", "yeah\n", ""])
def test_anything_else_is_no_and_the_step_fails(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    ended = aeon(*ASKS)
    assert ended.status == 3
    assert "the person refused it" in ended.err
    assert ended.out.splitlines()[1:] == ["2"]


@pytest.mark.usefixtures("plan_file")
def test_without_a_terminal_it_is_refused_and_nothing_waits(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ended = aeon(*ASKS)
    assert ended.status == 3
    assert "tools.approval asks a person, and there is nobody to ask" in ended.err
    assert "May it be called?" not in ended.err


@pytest.mark.usefixtures("plan_file", "at_terminal")
def test_a_tool_that_is_never_approved_is_not_asked_for(
    aeon: RunAeon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n"))
    ended = aeon(*ASKS, "++tools.approval.echo=never")
    assert "tools.approval refuses it" in ended.err
    assert "May it be called?" not in ended.err


def test_what_is_asked_cannot_steer_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    step = PlanStep(step_id="\x1b[2J", description="\x9b2J\nSide effects: none")
    approve(ApprovalRequest(a_tool(), {"text": "\u202e\x9b2J", "more": "\x1b[2J"}, step))
    said = capsys.readouterr().err
    assert not [ch for ch in said if not ch.isprintable() and ch != "\n"]


@pytest.mark.parametrize(("stdin", "stderr", "there"), [(1, 1, True), (0, 1, False), (1, 0, False)])
def test_a_person_is_there_when_both_ends_are_a_terminal(
    monkeypatch: pytest.MonkeyPatch, stdin: int, stderr: int, there: bool
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal() if stdin else io.StringIO())
    monkeypatch.setattr(sys, "stderr", Terminal() if stderr else io.StringIO())
    assert ask.at_terminal() is there


@pytest.mark.usefixtures("plan_file")
@pytest.mark.parametrize(
    "pattern", ["tools.approval.ec*=never", "+tools.approval.*=never", "tools.approval.ec?o=never"]
)
def test_a_pattern_is_given_as_it_is_typed(aeon: RunAeon, pattern: str) -> None:
    ended = aeon("tools=builtin", "provider=simulated", "mode=core", "plan_file=plan.yaml", pattern)
    assert ended.status == 3
    assert "Tool 'echo': tools.approval refuses it" in ended.err


@pytest.mark.usefixtures("plan_file")
def test_of_several_patterns_the_first_given_decides(aeon: RunAeon) -> None:
    given = ("tools=builtin", "provider=simulated", "mode=core", "plan_file=plan.yaml")
    assert aeon(*given, "tools.approval.echo=always", "tools.approval.e*=never").status == 0
    assert aeon(*given, "tools.approval.e*=never", "tools.approval.echo=always").status == 3


@pytest.mark.slow
@pytest.mark.usefixtures("plan_file")
def test_policies_of_a_pattern_can_be_swept(aeon: RunAeon, tmp_path: Path) -> None:
    swept = "tools.approval.e*=always,never"
    ended = aeon(
        "tools=builtin",
        "provider=simulated",
        "mode=core",
        "plan_file=plan.yaml",
        swept,
        "--multirun",
    )
    assert ended.status == 3
    results = [json.loads(path.read_text()) for path in sorted(tmp_path.rglob("result.json"))]
    assert {result["termination_reason"] for result in results} == {"completed", "step_failed"}


def test_a_policy_that_there_is_not_is_named(aeon: RunAeon) -> None:
    ended = aeon("task=x", "provider=simulated", "tools.approval.shop.*=perhaps")
    assert ended.status == 2
    assert "tools.approval.shop.*=perhaps" in ended.err
