"""The person at the terminal, the same for a run and for the making of a plan."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import pytest

from aeon.cli import attended as module
from aeon.cli.attended import Attendance, attended
from aeon.config import Settings, compose
from aeon.events import Recorded, RunStarted
from aeon.plan.models import FollowUpQuestion
from aeon.tools.approval import ApprovalRequest
from tests.tools.builders import a_tool

STARTED = Recorded(1, 0, "2026-01-01T00:00:00+00:00", RunStarted(run_id="r", task="t", provider="p", synthetic=True))
ASKS: dict[str, Callable[[Attendance], Any]] = {
    "ask": lambda person: person.ask and person.ask(FollowUpQuestion(question="Which?", assumption="Any.")),
    "approve": lambda person: person.approve and person.approve(ApprovalRequest(a_tool(), {})),
}


def composed(*overrides: str) -> Settings:
    return compose(["provider=simulated", *overrides])


@pytest.mark.parametrize("what", ASKS)
def test_progress_waits_while_the_person_is_asked(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream, seen = io.StringIO(), list[str]()

    def asking(*_: object) -> None:
        person.progress(STARTED)
        time.sleep(0.05)
        seen.append(stream.getvalue())

    monkeypatch.setattr(module, what, asking)
    with attended(composed("interaction=ask", "progress=plain"), stream) as person:
        ASKS[what](person)
    assert seen == [""]
    assert "SIMULATED" in stream.getvalue()


@pytest.mark.parametrize(
    ("overrides", "terminal", "asks", "approves"),
    [((), False, False, False), ((), True, False, True), (("interaction=ask",), True, True, True)],
)
def test_the_person_is_asked_what_the_settings_say_and_only_when_there(
    overrides: tuple[str, ...], terminal: bool, asks: bool, approves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "at_terminal", lambda: terminal)
    with attended(composed(*overrides), io.StringIO()) as person:
        assert (person.ask is not None, person.approve is not None) == (asks, approves)


@pytest.mark.parametrize(
    ("overrides", "shown"),
    [
        (("progress=live",), "live"),
        (("progress=live", "interaction=ask"), "plain"),
        (("progress=live", "tools.approval={echo: ask}"), "plain"),
        (("progress=none", "interaction=ask"), "none"),
    ],
)
def test_no_live_picture_is_shown_where_a_question_may_come(overrides: tuple[str, ...], shown: str) -> None:
    with attended(composed(*overrides), io.StringIO()) as person:
        assert person.shown == shown
