"""What may be used in a minute. The counting is pyrate-limiter's, imported with the first limit; the waiting is done by
whoever asks, since the library's own wait cannot be interrupted and is not fair.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyrate_limiter import RateItem

MINUTE_SECONDS = 60.0
MARGIN_SECONDS = 1.0
"""What a minute is longer here: requests that were sent on time may arrive late, and nearer to those that follow."""
GRAINS = 1000
"""A minute's tokens are counted in so many grains: the library keeps an entry for each."""


@dataclass(frozen=True, eq=False, slots=True)
class Taken:
    """Units that were counted at `at`; `item` is their entry in the library's log."""

    units: int
    at: float
    item: RateItem


class PerMinute:
    """At most `limit` units in any minute. Not thread-safe: the limiter's lock is held.

    `take` counts what a request is expected to use, `settle` what it used in truth: what it did not use is taken out of
    its own minute, and what it used beyond is counted with the requests that follow. More than the limit counts as the
    limit, and the rest is owed. `clock` gives seconds.
    """

    def __init__(self, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        from pyrate_limiter import InMemoryBucket, Rate, RateItem

        self._grain = max(1, limit // GRAINS)
        self._most = limit // self._grain
        self._seconds = MINUTE_SECONDS + MARGIN_SECONDS
        self._bucket = InMemoryBucket([Rate(self._most, int(self._seconds * 1000))])
        self._item = RateItem
        self._clock = clock
        self._owed = 0  # below 0, and above -grain: the rest of a grain that is counted and not used

    def wait(self, units: int) -> float:
        """The seconds until so many units may be possible, 0.0 for now; nothing is counted."""
        now = int(self._clock() * 1000)
        grains = self._grains(units + self._owed)
        self._bucket.leak(now)
        if self._bucket.count() + grains <= self._most:
            return 0.0
        item = self._item("", now, grains)
        self._bucket.put(item)  # refused, and so the bucket knows what it lacks
        return max(0.001, float(self._bucket.waiting(item)) / 1000)  # type: ignore[arg-type]

    def take(self, units: int) -> Taken:
        """Count so many units now, after a `wait` of 0.0."""
        now = self._clock()
        wanted = units + self._owed
        grains = self._grains(wanted)
        item = self._item("", int(now * 1000), grains)
        if grains:
            self._bucket.put(item)
        self._owed = wanted - grains * self._grain
        return Taken(units, now, item)

    def settle(self, taken: Taken, used: int) -> None:
        """What was taken has used so much."""
        if used >= taken.units:
            self._owed += used - taken.units
        elif self._clock() - taken.at < self._seconds:
            unused, rest = divmod(taken.units - used, self._grain)
            self._owed -= rest
            if self._owed <= -self._grain:
                unused, self._owed = unused + 1, self._owed + self._grain
            self._take_out(taken.item, unused)

    def _take_out(self, item: RateItem, grains: int) -> None:
        """So many of an item's entries, or all that there are."""
        if not grains:
            return
        own = [index for index, entry in enumerate(self._bucket.items) if entry is item]
        for index in reversed(own[-grains:]):
            del self._bucket.items[index]

    def _grains(self, units: int) -> int:
        return min(self._most, max(0, -(-units // self._grain)))
