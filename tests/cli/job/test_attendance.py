"""The person at the terminal, the same for a run and for the making of a plan."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from aeon.app.attendance import Attendance
from aeon.cli.job import attendance as module
from aeon.cli.job.attendance import attend_run
from aeon.cli.progress.display import Display
from aeon.config.load import compose
from aeon.config.settings import Settings
from aeon.domain.events import Recorded, RunStarted
from aeon.domain.plan import FollowUpQuestion
from aeon.tools.registry import ApprovalRequest
from tests.tools.builders import a_tool

STARTED = Recorded(
    1,
    0,
    "2026-01-01T00:00:00+00:00",
    RunStarted(run_id="r", task="t", provider="p", synthetic=True),
)
ASKS: dict[str, Callable[[Attendance], Any]] = {
    "ask": lambda person: (
        person.ask and person.ask(FollowUpQuestion(question="Which?", assumption="Any."))
    ),
    "approve": lambda person: person.approve and person.approve(ApprovalRequest(a_tool(), {})),
}


@contextmanager
def attend_on(stream: io.StringIO, settings: Settings) -> Iterator[tuple[Attendance, Display]]:
    with contextlib.redirect_stderr(stream), attend_run(settings) as attended:
        yield attended


def composed(*overrides: str) -> Settings:
    return compose(["provider=simulated", *overrides])


@pytest.mark.parametrize("what", ASKS)
def test_progress_waits_while_the_person_is_asked(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, seen = io.StringIO(), list[str]()
    telling = threading.Thread(target=lambda: progress(STARTED))

    def asking(*_: object) -> None:
        telling.start()
        time.sleep(0.05)
        seen.append(stream.getvalue())

    monkeypatch.setattr(module, what, asking)
    with attend_on(stream, composed("interaction=ask", "progress=plain")) as (person, progress):
        ASKS[what](person)
        telling.join()
    assert seen == [""]
    assert "SIMULATED" in stream.getvalue()


@pytest.mark.parametrize(
    ("overrides", "terminal", "asks", "approves"),
    [((), False, False, False), ((), True, False, True), (("interaction=ask",), True, True, True)],
)
def test_the_person_is_asked_what_the_settings_say_and_only_when_there(
    overrides: tuple[str, ...],
    terminal: bool,
    asks: bool,
    approves: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "at_terminal", lambda: terminal)
    with attend_on(io.StringIO(), composed(*overrides)) as (person, _):
        assert (person.ask is not None, person.approve is not None) == (asks, approves)


class _Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("overrides", "live"),
    [
        (("progress=auto",), True),
        (("progress=auto", "interaction=ask"), True),
        (("progress=live", "tools.approval={echo: ask}"), True),
        (("progress=plain", "interaction=ask"), False),
        (("progress=none", "interaction=ask"), False),
    ],
)
def test_the_picture_is_kept_where_a_question_may_come(
    overrides: tuple[str, ...], live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with attend_on(_Terminal(), composed(*overrides)) as (_, progress):
        assert progress.live is live


@pytest.mark.slow
def test_two_questions_at_once_are_put_one_after_the_other_with_no_picture_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, inside, most = _Terminal(), [0], [0]

    def approving(*_: object) -> bool:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        before = stream.getvalue()
        time.sleep(0.3)
        assert stream.getvalue() == before
        inside[0] -= 1
        return True

    monkeypatch.setattr(module, "approve", approving)
    monkeypatch.setattr(module, "at_terminal", lambda: True)
    with attend_on(stream, composed("progress=live")) as (person, progress):
        progress(STARTED)
        with ThreadPoolExecutor(2) as threads:
            approve = person.approve
            assert approve is not None
            assert list(
                threads.map(lambda _: approve(ApprovalRequest(a_tool(), {})), range(2))
            ) == [True, True]
    assert most == [1]
