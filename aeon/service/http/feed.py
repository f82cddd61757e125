"""The events of a job for one client of the server, passed from the threads of its run into the
event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from pydantic_core import from_json

from aeon.domain.events import (
    PassStarted,
    PhaseStarted,
    PlanMade,
    Recorded,
    RunStarted,
    StepStarted,
)
from aeon.domain.graph import final_steps
from aeon.domain.result import SIMULATED_LINE
from aeon.llm.watching import Piece, Waiting
from aeon.service.jobs import Follower

_MOST_LINES = 100
_FIELDS = {"direct": "answer", "step": "step_output"}
"""Where the text of the answer stands in what the model answers."""


class Feed:
    """Collects the events of a run for a client that reads at its own pace: the text of the answer,
    where the run cannot change it later (`is_final`), and the latest lines of progress."""

    def __init__(self, *, is_final: bool) -> None:
        self.has_ended = False
        self.lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._is_final = is_final
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._last_step: str | None = None
        self._mark: str | None = None
        # By step, since an event may arrive after the text that follows it.
        self._pieces: dict[str | None, list[str]] = {}

    def make_follower(self, *, with_text: bool = False) -> Follower:
        """Return the follower to pass to the job."""
        return Follower(self._see, self._watch if with_text else None, self._end)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for an event; False when none came within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return False
        self._changed.clear()
        return True

    async def wait_for_end(self) -> None:
        """Wait until the job has ended, or waits for a person."""
        while not self.has_ended:
            await self.wait()

    def read_text(self) -> str:
        """Return the text of the answer so far; empty where it may still change."""
        pieces = self._pieces.get(self._last_step)
        if not pieces or self._mark is None:
            return ""
        text = _read_partly("".join(tuple(pieces)))
        return f"{self._mark}{text}" if text else ""

    def _see(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, RunStarted):
            self._mark = f"{SIMULATED_LINE}\n" if event.synthetic else ""
        if isinstance(event, PlanMade):
            last = final_steps(event.plan)
            self._last_step = last[0].step_id if len(last) == 1 else None
        if line := _describe(event):
            self.lines.append(line)
            self._notify()

    def _watch(self, seen: Waiting | Piece) -> None:
        if not isinstance(seen, Piece) or not self._is_final:
            return
        if seen.call not in _FIELDS:
            return
        step = seen.site.step_id
        if seen.begins:
            self._pieces[step] = []
        self._pieces.setdefault(step, []).append(seen.text)
        self._notify()

    def _end(self) -> None:
        self.has_ended = True
        self._notify()

    def _notify(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._changed.set)
        except RuntimeError:  # the server has gone, and nobody waits
            return


def _read_partly(text: str) -> str:
    """Return the answer's text from incomplete JSON, up to a marker that stands for another step's
    output."""
    start = text.find("{")
    if start < 0:
        return ""
    try:
        values: Any = from_json(text[start:], allow_partial="trailing-strings")
    except ValueError:
        return ""
    found = next((values[name] for name in _FIELDS.values() if name in values), "")
    return found.partition("[[")[0] if isinstance(found, str) else ""


def _describe(event: object) -> str:
    match event:
        case PhaseStarted():
            return f"pass {event.pass_number}: {event.phase.lower()}"
        case PassStarted():
            return f"pass {event.pass_number} of steps {', '.join(event.ready)}"
        case StepStarted():
            return f"pass {event.pass_number}: step {event.step.step_id}"
    return ""
