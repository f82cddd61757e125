"""The threads that carry work out, and how they are waited for."""

from __future__ import annotations

import threading
import time

import pytest

from aeon.execution.threads import Workers, as_done
from tests.support.timing import SOON, wait_for


@pytest.fixture
def workers():
    """Makes pools that are closed when the test ends."""
    made: list[Workers] = []

    def make(size: int) -> Workers:
        made.append(Workers(size))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def never() -> bool:
    return False


def test_every_future_comes_back_with_its_value(workers):
    pool = workers(3)
    futures = [pool.submit(lambda n=n: n * n) for n in range(20)]
    assert sorted(future.result() for future in as_done(futures, never, 1)) == [
        n * n for n in range(20)
    ]


def test_a_future_comes_back_when_it_is_done_and_not_in_the_order_of_submission(workers):
    pool, gate = workers(2), threading.Event()
    slow, quick = pool.submit(lambda: gate.wait(90)), pool.submit(lambda: "quick")
    arriving = as_done([slow, quick], never, 1)
    assert next(arriving) is quick
    gate.set()
    assert next(arriving) is slow


def test_an_exception_of_the_work_is_the_futures(workers):
    (future,) = as_done([workers(1).submit(lambda: 1 / 0)], never, 1)
    with pytest.raises(ZeroDivisionError):
        future.result()


def test_one_worker_keeps_the_order_of_submission(workers):
    pool, seen = workers(1), []
    futures = [pool.submit(lambda n=n: seen.append(n)) for n in range(50)]
    list(as_done(futures, never, 1))
    assert seen == list(range(50))


def test_no_more_than_size_run_at_once(workers):
    pool, lock, running, most = workers(3), threading.Lock(), 0, 0
    together = threading.Barrier(3, timeout=SOON)

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        together.wait()
        with lock:
            running -= 1

    list(as_done([pool.submit(work) for _ in range(12)], never, 1))
    assert most == 3


def test_jobs_one_after_the_other_use_the_thread_that_is_idle(workers):
    pool, jobs = workers(30), 30
    for _ in range(jobs):
        pool.submit(lambda: None).result()
        wait_for(lambda: pool._idle._value)  # it is idle a moment after its result is there
    assert len(pool._threads) == 1


def test_what_has_not_started_is_cancelled_when_the_run_stops_and_what_runs_gets_its_grace(workers):
    pool, started, stopping, ran = workers(1), threading.Event(), threading.Event(), []

    def first() -> str:
        started.set()
        stopping.wait(90)
        time.sleep(0.02)
        return "finished in its grace"

    futures = [pool.submit(first), pool.submit(lambda: ran.append("second"))]
    started.wait(90)
    stopping.set()
    came = list(as_done(futures, stopping.is_set, 90, poll_seconds=0.001))
    assert [future.result() for future in came] == ["finished in its grace"]
    assert futures[1].cancelled()
    assert ran == []


def test_work_that_outlasts_its_grace_is_left_out(workers):
    gate = threading.Event()
    future = workers(1).submit(lambda: gate.wait(90))
    began = time.monotonic()
    assert list(as_done([future], lambda: True, 0.05, poll_seconds=0.01)) == []
    assert 0.05 <= time.monotonic() - began < SOON
    gate.set()


def test_no_grace_is_no_waiting(workers):
    gate = threading.Event()
    future = workers(1).submit(lambda: gate.wait(90))
    assert list(as_done([future], lambda: True, 0, poll_seconds=0.001)) == []
    gate.set()


def test_closed_workers_end_their_threads():
    pool = Workers(2)
    list(as_done([pool.submit(lambda: None) for _ in range(4)], never, 1))
    threads = list(pool._threads)
    pool.close()
    for thread in threads:
        thread.join(2)
    assert not any(thread.is_alive() for thread in threads)


def test_threads_do_not_keep_the_process_alive(workers):
    pool = workers(1)
    list(as_done([pool.submit(lambda: None)], never, 1))
    assert all(thread.daemon for thread in pool._threads)
