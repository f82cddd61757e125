"""One connection to a server for many requests, and how long each of them takes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aeon.domain.errors import ConnectionFailed, ProviderError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

IDLE_SECONDS = 20.0
IDLE_STATUSES = (408, 502, 504, 522, 524)
"""What proxies answer when the server behind them takes too long."""


@dataclass(frozen=True, slots=True)
class Connection:
    """A client, the loop it lives on, a slot for each request that may be under way, and those that are."""

    client: AsyncOpenAI
    loop: asyncio.AbstractEventLoop
    slots: asyncio.Semaphore
    tasks: set[asyncio.Task[Any] | None] = field(default_factory=set)

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Counts the current task among those that closing cancels."""
        task = asyncio.current_task()
        self.tasks.add(task)
        try:
            yield
        finally:
            self.tasks.discard(task)

    async def close(self) -> None:
        """Cancel what is under way and close the client."""
        for task in filter(None, tuple(self.tasks)):
            task.cancel()
        await self.client.close()


@dataclass(slots=True)
class Timing:
    """How many seconds an attempt may take, and since when it is under way."""

    allowed: float
    began: float | None = None

    @property
    def seconds(self) -> float:
        """What it has taken."""
        return 0.0 if self.began is None else time.monotonic() - self.began


def is_cut_off(failure: ProviderError) -> bool:
    """Whether a request that was waited for was ended by somebody else, as proxies do with idle connections."""
    broke_off = isinstance(failure, ConnectionFailed) and failure.sent and not failure.timed_out
    return failure.seconds >= IDLE_SECONDS and (broke_off or failure.status in IDLE_STATUSES)
