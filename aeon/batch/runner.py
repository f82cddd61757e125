"""Rows run in parallel in this process, those of a dataset or the jobs of a sweep: how many at
once, their total caps, their wait for a provider that is down, and what stops them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from itertools import takewhile
from typing import TypeVar

from aeon.app.many import run_all
from aeon.batch.endpoints import CappedMeter, SharedEndpoints
from aeon.config.settings import GroupSettings, SweepSettings
from aeon.kernel.control import RunControl
from aeon.llm.stack.patience import Patience

R = TypeVar("R")
T = TypeVar("T")


class GroupControl(RunControl):
    """The switch of all rows. `reason` explains a stop that no person requested; `has_failed`: no
    other row would have succeeded. `on_stop` gets the reason once."""

    def __init__(self) -> None:
        self.has_failed = False
        self.on_stop: Callable[[str], None] = lambda _: None

    @property
    def is_interrupted(self) -> bool:
        """Whether a person stopped the rows."""
        return self.stop_requested and not self.reason

    def request_stop(self, reason: str = "") -> None:
        """Ask all rows to stop, and start no more."""
        is_first = not self.stop_requested
        super().request_stop(reason)
        if is_first and reason:
            self.on_stop(reason)

    def fail(self, reason: str) -> None:
        """Ask all rows to stop, since no other would succeed."""
        self.has_failed = self.has_failed or not self.stop_requested
        self.request_stop(reason)


def name_group(settings: GroupSettings) -> str:
    """Return the part of the configuration that holds these settings."""
    return "sweep" if isinstance(settings, SweepSettings) else "batch"


def patience_of(settings: GroupSettings, give_up: Callable[[str], None]) -> Patience:
    """Return how long rows wait for a provider that is down; then `give_up` is called with the
    reason."""
    key = f"{name_group(settings)}.patience_seconds"
    return Patience(settings.patience_seconds, key, for_unreached=True, give_up=give_up)


def group_endpoints(settings: GroupSettings, control: GroupControl) -> SharedEndpoints:
    """Return the endpoints that all rows of this process share. They stop `control` when a total
    cap is reached, and when they are down for longer than the patience."""
    meter = CappedMeter(settings.caps, control.request_stop, name_group(settings))
    return SharedEndpoints(meter, patience_of(settings, control.fail))


def run_rows(
    rows: Iterable[R],
    work: Callable[[R], T | None],
    *,
    endpoints: SharedEndpoints,
    control: RunControl,
    parallel: int,
) -> Generator[T, None, None]:
    """Run `work` on `parallel` rows at once, and yield each result as it is ready; a row is taken
    when there is room for it. No row begins while no endpoint can be called, nor after `control`
    was stopped: then it yields nothing. `control` is stopped when the caller stops iterating, and
    when a row raises."""

    def work_when_up(row: R) -> T | None:
        endpoints.wait_until_up(lambda: control.stop_requested)
        return None if control.stop_requested else work(row)

    taken = takewhile(lambda _: not control.stop_requested, rows)
    with closing(run_all(work_when_up, taken, parallel, control)) as running:
        yield from (ended for ended in running if ended is not None)
