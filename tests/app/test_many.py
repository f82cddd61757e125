"""Many runs at the same time, and runs that are awaited."""

import asyncio
import threading
import time
from collections.abc import Iterator

import pytest

from aeon import Aeon
from aeon.domain.errors import TaskTextError
from aeon.kernel.control import RunControl

SLOW = ["provider=simulated", "provider.latency_seconds=0.05"]


def runs_under_way() -> int:
    return sum(thread.name.startswith("aeon-run") for thread in threading.enumerate())


@pytest.mark.slow
def test_each_task_gives_one_result() -> None:
    tasks = [f"name {number} rivers" for number in range(10)]
    with Aeon.from_config(["provider=simulated"]) as aeon:
        results = list(
            aeon.run_many(
                [*tasks, {"task": "compare", "inputs": {"a": "A draft."}}], max_concurrency=4
            )
        )
    assert sorted(result.task for result in results) == sorted([*tasks, "compare"])
    assert len({result.run_id for result in results}) == 11


@pytest.mark.slow
def test_tasks_run_at_the_same_time_and_are_taken_when_there_is_room() -> None:
    taken: list[int] = []

    def tasks() -> Iterator[str]:
        for number in range(100):
            taken.append(number)
            yield f"name {number} rivers"

    with Aeon.from_config(SLOW) as aeon:
        results = aeon.run_many(tasks(), max_concurrency=3)
        assert not taken
        next(results)
        assert 3 <= len(taken) <= 3 + 3 + 1
        results.close()  # type: ignore[attr-defined]
        assert runs_under_way() == 0
        assert len(taken) < 20


def test_a_task_that_cannot_be_run_is_raised_and_ends_the_others() -> None:
    with Aeon.from_config(SLOW) as aeon, pytest.raises(TaskTextError):
        list(aeon.run_many(["name three rivers", " ", "name three lakes"], max_concurrency=2))
    assert runs_under_way() == 0


def test_a_single_task_is_no_list_of_letters() -> None:
    with (
        Aeon.from_config(["provider=simulated"]) as aeon,
        pytest.raises(TypeError, match="run_many takes several"),
    ):
        aeon.run_many("name three rivers")


def test_at_least_one_run_must_be_under_way() -> None:
    with (
        Aeon.from_config(["provider=simulated"]) as aeon,
        pytest.raises(ValueError, match="max_concurrency is 0"),
    ):
        next(aeon.run_many(["name three rivers"], max_concurrency=0))


@pytest.mark.slow
def test_runs_are_awaited_together_without_blocking_the_loop() -> None:
    async def ask(aeon: Aeon) -> tuple[list[str], int]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        results = await asyncio.gather(
            *(aeon.arun(f"name {number} rivers") for number in range(16))
        )
        ticking.cancel()
        return [result.task for result in results], ticks

    with Aeon.from_config(["provider=simulated", "provider.latency_seconds=0.01"]) as aeon:
        tasks, ticks = asyncio.run(ask(aeon))
    assert tasks == [f"name {number} rivers" for number in range(16)]
    assert ticks > 3


def test_a_cancelled_run_is_asked_to_stop() -> None:
    control = RunControl()

    async def cancel(aeon: Aeon) -> None:
        task = asyncio.create_task(aeon.arun("name three rivers", control=control))
        await asyncio.sleep(0.1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with Aeon.from_config(SLOW) as aeon:
        asyncio.run(cancel(aeon))
        assert control.stop_requested
        until = time.monotonic() + 60
        while runs_under_way() and time.monotonic() < until:
            time.sleep(0.05)
        assert runs_under_way() == 0


def test_what_a_run_raises_is_raised_where_it_is_awaited() -> None:
    with Aeon.from_config(["provider=simulated"]) as aeon, pytest.raises(TaskTextError):
        asyncio.run(aeon.arun(" "))
