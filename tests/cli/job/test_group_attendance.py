"""The person beside the rows of a batch or the jobs of a sweep: what they are shown and asked, and how they stop all."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from aeon.app.attendance import Attendance
from aeon.batch.runner import GroupControl
from aeon.cli.job import group_attendance as module
from aeon.cli.job.group_attendance import GroupAttendance
from aeon.config.load import compose
from aeon.config.settings import Settings
from aeon.domain.plan import FollowUpQuestion

PLAIN = ["progress=plain", "provider=simulated"]


def settings_of(*overrides: str) -> Settings:
    return compose([*PLAIN, *overrides])


@contextmanager
def group_on(
    stream: io.StringIO, control: GroupControl, settings: Settings
) -> Iterator[GroupAttendance]:
    group = GroupAttendance("row", settings, control, lambda _: "")
    with contextlib.redirect_stderr(stream), group.attend(lambda: "ended at once"):
        yield group


def attend_row(settings: Settings, of_row: Settings) -> Attendance:
    with group_on(io.StringIO(), GroupControl(), settings) as group:
        return group.attend_row(0, of_row, None)


def test_one_switch_stops_all_rows() -> None:
    control, settings = GroupControl(), settings_of()
    with group_on(io.StringIO(), control, settings) as group:
        rows = [group.attend_row(number, settings, None) for number in range(2)]
    assert [row.control for row in rows] == [control, control]


def test_a_row_is_asked_at_a_terminal_if_its_own_settings_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asks, assumes = settings_of("interaction=ask"), settings_of("interaction=none")
    assert attend_row(asks, asks).ask is None
    monkeypatch.setattr(module, "at_terminal", lambda: True)
    assert attend_row(assumes, asks).ask is not None
    assert attend_row(asks, assumes).ask is None
    assert attend_row(assumes, assumes).approve is not None


def test_what_many_rows_warn_of_is_shown_once_with_the_first_of_them() -> None:
    stream, settings = io.StringIO(), settings_of()
    with group_on(stream, GroupControl(), settings) as group:
        for number in (3, 4):
            group.attend_row(number, settings, None).warn("no price")
        group.attend_row(4, settings, None).warn("no seed")
    assert stream.getvalue() == "row 3  Warning: no price\nrow 4  Warning: no seed\n"


def test_a_reason_that_stops_all_rows_is_shown_at_once() -> None:
    stream, control = io.StringIO(), GroupControl()
    with group_on(stream, control, settings_of()):
        for _ in range(2):
            control.request_stop("batch.max_cost=1 is reached")
        assert stream.getvalue() == (
            "Stopping: batch.max_cost=1 is reached. Nothing new is started.\n"
        )


def test_a_question_stands_below_the_number_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, settings = io.StringIO(), settings_of("interaction=ask")
    monkeypatch.setattr(module, "at_terminal", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO("the first\n"))
    with group_on(stream, GroupControl(), settings) as group:
        ask = group.attend_row(3, settings, None).ask
        assert ask is not None
        assert ask(FollowUpQuestion(question="Which?", assumption="Any.")) == "the first"
    assert stream.getvalue().startswith("row 3  asks:\n\nQuestion: Which?\n")
