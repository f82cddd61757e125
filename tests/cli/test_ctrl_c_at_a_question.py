"""Ctrl-C while a person is asked something: the run ends with what it has, and does not wait for the answer."""

import codecs
import fcntl
import json
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aeon.cli.terminal import questions as asking
from aeon.domain.errors import StopRequested
from aeon.domain.plan import FollowUpQuestion
from aeon.tools.registry import ApprovalRequest
from tests.tools.builders import a_tool

QUESTION = FollowUpQuestion(question="Which currency?", assumption="Euro")
FLOW = """\
task: say it
goal: It is said
steps:
  - id: first
    description: Think about it
    agent: llm
  - id: say
    description: Say it
    tool: echo
    arguments: {text: hello}
    depends_on: [first]
"""
ASKED = ("provider=simulated", "provider.seed=7", "interaction=ask")
APPROVED = (
    "provider=simulated",
    "plan_file=flow.yaml",
    "tools=builtin",
    "tools.approval={echo: ask}",
)


class Terminal:
    """A program that sees a terminal on standard input and standard error, and the other end of that terminal."""

    def __init__(self, process: subprocess.Popen[bytes], end: int) -> None:
        self.process, self.shown = process, ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._end = end

    def wait_for(self, text: str, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while text not in self.shown:
            ready = select.select([self._end], [], [], max(0.0, until - time.monotonic()))[0]
            assert ready, f"{text} was never said, but {self.shown}"
            try:
                self.shown += self._decoder.decode(os.read(self._end, 4096))
            except OSError as error:  # how a terminal tells that its program is gone
                raise AssertionError(f"{text} was never said, but {self.shown}") from error

    @property
    def echoes(self) -> bool:
        """Whether the terminal shows what is typed."""
        return bool(termios.tcgetattr(self._end)[3] & termios.ECHO)

    def hang_up(self) -> None:
        """Close the terminal, as one closes its window."""
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(nowhere, self._end)
        os.close(nowhere)

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())


def _owning() -> None:
    """Make standard input the program's own terminal, so that Ctrl-C typed there reaches it."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def at_a_terminal(
    directory: Path, *arguments: str, shown: str | None = "none"
) -> Iterator[Terminal]:
    end, other = pty.openpty()
    kind = [f"progress={shown}"] if shown else []
    command = [sys.executable, "-m", "aeon", *kind, "hydra.run.dir=run", *arguments]
    environ = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "24"}
    with subprocess.Popen(
        command,
        cwd=directory,
        env=environ,
        stdin=other,
        stderr=other,
        stdout=subprocess.PIPE,
        preexec_fn=_owning,
    ) as process:
        os.close(other)
        try:
            yield Terminal(process, end)
        finally:
            process.kill()
            os.close(end)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "prompt"),
    [(("task=x", *ASKED), "Your answer"), (APPROVED, "May it be called?")],
    ids=("ask", "tool"),
)
def test_the_first_ctrl_c_ends_the_run_with_what_it_has(
    tmp_path: Path, arguments: tuple[str, ...], prompt: str
) -> None:
    (tmp_path / "flow.yaml").write_text(FLOW, encoding="utf-8")
    with at_a_terminal(tmp_path, *arguments) as terminal:
        terminal.wait_for(prompt)
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for("Artefacts:")
        assert terminal.process.wait(timeout=60) == 130
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["termination_reason"] == "interrupted"
    assert "Traceback" not in terminal.shown


@pytest.mark.slow
def test_what_is_typed_is_the_answer(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "task=x", *ASKED) as terminal:
        terminal.wait_for("Your answer")
        terminal.type("Yen\n")
        terminal.wait_for("Artefacts:")
        terminal.process.wait(timeout=60)
    result = json.loads((tmp_path / "run" / "result.json").read_text(encoding="utf-8"))
    assert result["follow_up_questions"][0]["answer"] == "Yen"


@pytest.fixture
def silent_input(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Standard input that stays open and says nothing."""
    reading, writing = os.pipe()
    with open(reading, encoding="utf-8") as stream:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdin", stream)
        yield
    os.close(writing)


@pytest.mark.usefixtures("silent_input")
def test_a_question_is_given_up_when_the_run_is_to_stop_and_keeps_its_assumption() -> None:
    looked = iter([False, False, True])
    assert asking.ask(QUESTION, lambda: next(looked)) is None


def test_once_the_run_is_to_stop_no_further_question_is_put(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert asking.ask(QUESTION, lambda: True) is None
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("silent_input")
def test_a_tool_is_neither_approved_nor_refused_when_the_run_is_to_stop() -> None:
    with pytest.raises(StopRequested):
        asking.approve(ApprovalRequest(a_tool(), {}), lambda: True)
