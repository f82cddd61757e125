"""When the process of a command line looks for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from aeon.cli.job.garbage import put_off_collection, resume_at_first_answer
from aeon.domain.events import CallAnswered, RunStarted
from aeon.domain.request import CallSite, Usage
from aeon.execution.event_stream import EventStream
from tests.support.requests import request

STARTED = RunStarted(run_id="r", task="t", provider="p", synthetic=False)
ANSWERED = CallAnswered(
    site=CallSite(),
    call="plan",
    role="planner",
    request=request(),
    model="m",
    text="{}",
    usage=Usage(),
    seconds=0.1,
    synthetic=False,
)


@pytest.fixture(autouse=True)
def usual_collection() -> Iterator[None]:
    threshold = gc.get_threshold()
    # A run in this process, of another test, may have left its own.
    gc.unfreeze()
    yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_what_a_start_makes_is_left_alone_from_the_first_answer_on() -> None:
    stream = EventStream()
    put_off_collection()
    at_start = gc.get_threshold()[0]
    resume_at_first_answer(stream)
    stream.emit(STARTED)
    assert (gc.get_threshold()[0], gc.get_freeze_count()) == (at_start, 0)
    stream.emit(ANSWERED)
    assert gc.get_threshold()[0] < at_start
    assert gc.get_freeze_count() > 0
    assert stream.subscribers == []


def test_what_later_runs_of_a_process_leave_is_collected() -> None:
    first, second = EventStream(), EventStream()
    for stream in (first, second):
        resume_at_first_answer(stream)
    first.emit(ANSWERED)
    frozen = gc.get_freeze_count()
    more = [[number] for number in range(1_000)]
    second.emit(ANSWERED)
    assert gc.get_freeze_count() <= frozen
    assert len(more) == 1_000
