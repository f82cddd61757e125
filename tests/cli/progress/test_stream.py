"""The text of steps while it is written: what is read of it, and where it stands in the picture."""

from datetime import timedelta
from pathlib import Path

import pytest

from aeon.cli.progress.view import RunView
from aeon.cli.progress.words import read_partly
from aeon.domain import events as e
from aeon.domain.request import CallSite
from aeon.llm.watching import Piece, Waiting
from tests.cli.progress.test_progress import THRESHOLDS, drawn, seen, until
from tests.observability.support import START, realistic_run

PAGE = Path(__file__).parents[3] / "docs" / "progress.md"
SITE = CallSite(pass_number=2, phase="RE_EXECUTE", sequence=900, step_id="auth")


def under_way(*texts: str, site: CallSite = SITE) -> RunView:
    """A run whose second pass carries out a step that has written some texts, each of another attempt."""
    view = seen(
        until(realistic_run(), e.StepStarted, 4),
        RunView(thresholds=THRESHOLDS, cost_at=lambda _: 0.0214),
    )
    view.in_flight.clear()
    for text in texts:
        view.watch(Piece(site, "step", "", begins=True), view.now or START)
        for place in range(0, len(text), 5):
            view.watch(Piece(site, "step", text[place : place + 5]), view.now or START)
    return view


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("", ""),
        ("{", ""),
        ('{"step_out', ""),
        ('{"step_output": "Pack \\"fra', 'Pack "fra'),
        ('{"step_output": "a\\nb\\', "a\nb"),
        ('{"step_output": "\\u00e9\\u4e', "\u00e9"),
        ('{"step_output": "all", "clarity_state": "CL', "all"),
        ('```json\n{"step_output": "fenced"}\n```', "fenced"),
        ('{"step_output": {"total": 3, "na', '{"total": 3}'),
        ("no JSON at all", "no JSON at all"),
        ("{ no JSON", ""),
        ("[1, 2]", "[1, 2]"),
    ],
)
def test_the_output_is_read_as_far_as_it_has_come(text: str, read: str) -> None:
    assert read_partly(text) == read


def test_the_ends_of_texts_stand_below_the_scores_until_their_call_ends() -> None:
    view = under_way('{"step_output": "Sign-up asks for an address.\\nSign-in \\u001b[31masks')
    lines = drawn(view, 80)
    assert lines[-3:] == ["auth", "│ Sign-up asks for an address.", "│ Sign-in [31masks"]
    view.in_flight.clear()
    assert "│ Sign-up asks for an address." not in drawn(view, 80)


def test_an_attempt_begins_its_text_anew() -> None:
    lines = drawn(under_way('{"step_output": "half of', '{"step_output": "The whole'), 80)
    assert "│ The whole" in lines
    assert not [line for line in lines if "half" in line]


def test_a_long_text_of_any_script_fits_the_terminal() -> None:
    for width, height in ((40, 30), (80, 24), (80, 14), (200, 60)):
        lines = drawn(under_way("word " * 900 + "中文" * 400), width, height)
        assert len(lines) < height
        assert all(len(line) <= width for line in lines)


def test_what_waits_for_its_turn_says_so_until_it_is_sent() -> None:
    view = under_way()
    for seconds, words in (
        (0.1, "waits for its turn"),
        (19.4, "waits 20 s: the rate limit"),
        (0.0, "Design sign-in"),
    ):
        view.watch(Waiting(SITE, "step", seconds), view.now or START)
        (row,) = [line for line in drawn(view, 80) if " auth " in line]
        assert words in row


def test_the_page_shows_what_is_drawn() -> None:
    shown = PAGE.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    text = "Sign-up asks for an e-mail address and a password, and sends a link that confirms the address.\\n\\n"
    view = under_way(f'{{"step_output": "{text}Sign-in compares the password with its has')
    view.now = START + timedelta(seconds=21.4)
    assert "".join(f"{line}\n" for line in drawn(view, 100, 40, after=1.9)) == shown


def test_a_step_is_queued_until_something_is_asked_for_it() -> None:
    told = until(realistic_run(), e.StepStarted)
    begun = told[-1].event.step  # type: ignore[attr-defined]
    site = CallSite(
        pass_number=1, phase="EXECUTE", sequence=told[-1].sequence, step_id=begun.step_id
    )
    other = CallSite(sequence=1)
    for early in (False, True):  # what is seen may come before the event
        view = RunView()
        view.watch(Waiting(other, "task_profile", 0.0), START)
        for recorded in told[:-1]:
            view(recorded)
        if early:
            view.watch(Waiting(site, "step", 0.0), START)
        view(told[-1])
        assert ("1 queued" in "\n".join(drawn(view, 80))) is not early
        view.watch(Waiting(site, "step", 0.0), (view.now or START) + timedelta(seconds=5))
        assert "4 steps: 1 running, 3 pending" in "\n".join(drawn(view, 80))
    assert "1 running" in "\n".join(drawn(seen(told), 80))
