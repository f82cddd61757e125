"""The courses of runs under way as parts of their pages, rendered for all viewers together."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from markupsafe import Markup
from starlette.concurrency import run_in_threadpool

from aeon.domain.errors import ArtefactError
from aeon.report.page.course import draw_course

_SECONDS_BETWEEN = 2.0
_MOST_DRAWN = 32


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A rendered course: the size of the journal that it was made from, when its rendering began,
    and when there may be another."""

    part: Markup
    size: int
    began: float
    again_at: float

    def is_fresh(self, asked: float, size: int) -> bool:
        """Whether it shows everything that had happened by the time `asked`."""
        return self.began >= asked or self.size == size


class Courses:
    """Renders the courses of runs: one at a time, and each again only once its journal has grown
    and `seconds_between`, and as long as the rendering took, have passed."""

    def __init__(self, seconds_between: float = _SECONDS_BETWEEN) -> None:
        self._seconds = seconds_between
        self._drawn: OrderedDict[Path, _Drawn] = OrderedDict()
        self._drawing = asyncio.Lock()

    async def draw(self, run: Path, *, is_awaited: bool = True) -> Markup:
        """Return the course of a run; empty where there is none yet. If it may not be rendered
        again yet, wait until it may, or return the earlier one if it is not `is_awaited`."""
        asked = monotonic()
        while run in self._drawn:
            drawn = self._drawn[run]
            left = drawn.again_at - monotonic()
            if drawn.is_fresh(asked, _measure(run)) or (left > 0 and not is_awaited):
                return drawn.part
            if left <= 0:
                break
            await asyncio.sleep(left)
        async with self._drawing:
            latest = self._drawn.get(run)
            if latest is not None and latest.is_fresh(asked, _measure(run)):
                return latest.part
            return await self._render(run, latest)

    async def _render(self, run: Path, before: _Drawn | None) -> Markup:
        began = monotonic()
        size = _measure(run)
        try:
            part = await run_in_threadpool(draw_course, run)
        except ArtefactError:  # there is nothing yet that can be read
            part = before.part if before else Markup()
        ended = monotonic()
        pause = max(self._seconds, ended - began)
        self._drawn[run] = _Drawn(part, size, began, ended + pause)
        self._drawn.move_to_end(run)
        if len(self._drawn) > _MOST_DRAWN:
            self._drawn.popitem(last=False)
        return part


def _measure(run: Path) -> int:
    try:
        return (run / "events.jsonl").stat().st_size
    except OSError:
        return 0
