"""What was typed before a question was shown does not answer it: nobody approves what they have not seen."""

import json
import os
import sys
import time
from pathlib import Path

import pytest

from aeon.cli.terminal import questions as asking
from aeon.domain.plan import FollowUpQuestion
from tests.cli.test_ctrl_c_at_a_question import at_a_terminal

FLOW = """\
goal: say it twice
steps:
  - {id: one, description: say it, tool: echo, arguments: {text: first}}
  - {id: two, description: say it, depends_on: [one], tool: echo, arguments: {text: second}}
"""
ASKS = (
    "provider=simulated",
    "mode=core",
    "plan_file=flow.yaml",
    "tools=builtin",
    "tools.approval={echo: ask}",
)


@pytest.mark.slow
def test_a_yes_typed_ahead_does_not_approve_the_next_tool(tmp_path: Path) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    with at_a_terminal(tmp_path, *ASKS) as terminal:
        terminal.wait_for("May it be called?")
        terminal.type("y\ny\n")
        terminal.wait_for('"second"')
        time.sleep(1)
        assert terminal.process.poll() is None
        terminal.type("n\n")
        terminal.wait_for("Artefacts:")
        assert terminal.process.wait(timeout=60) == 3
    result = json.loads((tmp_path / "run" / "history.json").read_text(encoding="utf-8"))
    assert "the person refused it" in json.dumps(result)


@pytest.mark.parametrize("eof", [False, True])
def test_what_is_piped_in_is_no_typing_ahead(monkeypatch: pytest.MonkeyPatch, eof: bool) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"" if eof else b"Yen\n")
    os.close(writing)
    with open(reading, encoding="utf-8") as stream:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdin", stream)
        assert asking.ask(FollowUpQuestion(question="q", assumption="a")) == (
            None if eof else "Yen"
        )
