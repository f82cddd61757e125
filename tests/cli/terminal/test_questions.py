import io
import sys
import threading
import time

import pytest

from aeon.cli.progress.display import progress_for
from aeon.cli.terminal.questions import approve, ask
from aeon.domain.events import Recorded, RunStarted
from aeon.domain.plan import FollowUpQuestion, PlanStep
from aeon.tools.registry import ApprovalRequest
from tests.tools.builders import a_tool

QUESTION = FollowUpQuestion(question="Which currency?", assumption="Euro")


@pytest.mark.parametrize(
    ("typed", "answer"), [("Yen\n", "Yen"), ("\n", None), ("", None), (" two words\n", "two words")]
)
def test_a_question_is_put_with_its_assumption_which_an_empty_line_keeps(
    typed: str,
    answer: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert ask(QUESTION) == answer
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Which currency?" in captured.err
    assert "Euro" in captured.err


class Writes(io.StringIO):
    """A stream that remembers each write by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.each: list[str] = []

    def write(self, text: str) -> int:
        self.each.append(text)
        return len(text)


def test_a_prompt_is_one_write_that_names_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Writes()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    ask(QUESTION.model_copy(update={"step_id": "pay"}))
    assert len(stream.each) == 1
    assert "Question about step pay: Which currency?\n" in stream.each[0]
    assert stream.each[0].endswith("keeps the assumption):\n")


@pytest.mark.parametrize(
    ("changes", "said"),
    [(True, "Side effects: yes, a call changes"), (False, "Side effects: none declared")],
)
def test_an_approval_is_one_write_that_tells_of_side_effects(
    changes: bool, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Writes()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    approve(ApprovalRequest(a_tool(side_effects=changes), {"text": "x"}))
    assert len(stream.each) == 1
    assert said in stream.each[0]


@pytest.mark.parametrize(
    ("step_id", "parent", "named"),
    [
        ("pay", None, "For step pay: Settle the bill\n"),
        ("pay.send", "pay", "For substep pay.send of step pay: Settle"),
    ],
)
def test_an_approval_names_the_step_that_asks_and_says_what_it_does(
    step_id: str,
    parent: str | None,
    named: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    step = PlanStep(step_id=step_id, description="Settle the bill", parent_step_id=parent)
    approve(ApprovalRequest(a_tool(), {}, step))
    assert named in capsys.readouterr().err


def test_plain_progress_waits_while_a_person_is_asked() -> None:
    stream = io.StringIO()
    with progress_for("plain", stream, {}) as progress:
        with progress.pause():
            started = RunStarted(run_id="r", task="t", provider="p", synthetic=True)
            told = threading.Thread(
                target=progress, args=(Recorded(1, 0, "2026-01-01T00:00:00+00:00", started),)
            )
            told.start()
            time.sleep(0.05)
            before = stream.getvalue()
        told.join()
        assert before == ""
    assert stream.getvalue() != ""
