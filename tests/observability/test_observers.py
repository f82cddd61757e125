import threading
from contextlib import closing

import pytest

from aeon.domain import events as e
from aeon.observability.sinks import QueuedObserver
from tests.observability.support import realistic_run


def test_a_detached_observer_sees_everything_in_order() -> None:
    told = realistic_run()
    seen: list[e.Recorded] = []
    with closing(QueuedObserver(seen.append)) as observer:
        for recorded in told:
            observer(recorded)
    assert tuple(seen) == told
    assert (observer.dropped, observer.failed) == (0, 0)


@pytest.mark.parametrize("error", [RuntimeError("observer"), SystemExit(3)])
def test_a_failing_observer_is_counted_and_fails_nothing(error: BaseException) -> None:
    def fail(recorded: e.Recorded) -> None:
        raise error

    told = realistic_run()
    with closing(QueuedObserver(fail)) as observer:
        for recorded in told:
            observer(recorded)
    assert observer.failed == len(told)


def test_what_a_slow_observer_has_no_room_for_is_dropped_and_counted() -> None:
    started, go_on = threading.Event(), threading.Event()
    seen: list[e.Recorded] = []

    def slow(recorded: e.Recorded) -> None:
        seen.append(recorded)
        started.set()
        go_on.wait(90)

    told = realistic_run()
    observer = QueuedObserver(slow, maxsize=3)
    observer(told[0])
    assert started.wait(60)
    for recorded in told[1:]:
        observer(recorded)
    assert observer.dropped == len(told) - 4
    go_on.set()
    observer.close()
    assert tuple(seen) == told[:4]


def test_closing_waits_only_briefly_for_an_observer_that_hangs() -> None:
    started, go_on = threading.Event(), threading.Event()
    told = realistic_run()

    def hang(_: e.Recorded) -> None:
        started.set()
        go_on.wait(90)

    observer = QueuedObserver(hang)
    for recorded in told[:3]:
        observer(recorded)
    assert started.wait(60)
    observer.close(timeout=0.05)
    assert observer.dropped == 2
    go_on.set()
