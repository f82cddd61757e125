import io
import sys

import pytest

from aeon.cli.ask import ask
from aeon.plan.models import FollowUpQuestion

QUESTION = FollowUpQuestion(question="Which currency?", assumption="Euro")


@pytest.mark.parametrize(
    ("typed", "answer"), [("Yen\n", "Yen"), ("\n", None), ("", None), (" two words\n", "two words")]
)
def test_a_question_is_put_with_its_assumption_which_an_empty_line_keeps(
    typed: str, answer: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    assert ask(QUESTION) == answer
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Which currency?" in captured.err
    assert "Euro" in captured.err
