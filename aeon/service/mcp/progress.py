"""The progress of a run, passed from the threads of its job into the event loop of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from time import monotonic

from mcp.server import ServerRequestContext

from aeon.domain import events as e
from aeon.domain.events import Recorded
from aeon.report.words import count_noun, one_line
from aeon.service.jobs import Follower

_LONGEST = 120
_LONGEST_WAIT_SECONDS = 1.0
SECONDS_OF_SILENCE = 15.0
"""After how long without news the latest are reported again."""


class RunProgress:
    """The news of one job. If news come faster than a client reads them, only the latest is sent;
    their number is the progress, since the amount of work is unknown before the end. Without news
    the last one is repeated from time to time, since many clients give up a silent call. `follower`
    is the job's follower."""

    def __init__(self) -> None:
        self.follower = Follower(see=self._see, end=lambda: self._call(self._news.set))
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._number = 0
        self._text = "not started yet"
        self._is_new = False
        self._reported_at = monotonic()

    async def report(self, ctx: ServerRequestContext) -> None:
        """Wait a limited time for news, and report them to the client."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS):
                await self._news.wait()
        self._news.clear()
        if not self._is_new and monotonic() < self._reported_at + SECONDS_OF_SILENCE:
            return
        self._number += not self._is_new
        self._is_new = False
        self._reported_at = monotonic()
        await ctx.session.report_progress(self._number, None, self._text)

    def _see(self, recorded: Recorded) -> None:
        text = describe_event(recorded.event)
        if text:
            self._call(self._take, text)

    def _call(self, function: Callable[..., None], *given: object) -> None:
        """Call a function in the event loop; do nothing where that is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *given)

    def _take(self, text: str) -> None:
        self._number += 1
        self._text = text
        self._is_new = True
        self._news.set()


def describe_event(event: e.Event) -> str:
    """Return a line on an event that a client needs; empty for another."""
    match event:
        case e.ProfileInferred():
            return "profiled"
        case e.PlanMade(plan=plan, expected_calls=calls):
            about = f"about {count_noun(calls, 'call')} expected"
            return f"planned {count_noun(len(plan.steps), 'step')}, {about}"
        case e.StepStarted(step=step):
            return one_line(f"step {step.step_id}: {step.description}", _LONGEST)
        case e.StepFinished(step=step):
            return f"step {step.step_id} {step.status}"
        case e.PhaseStarted(phase=phase, pass_number=number):
            return f"pass {number}: {phase.lower()}"
    return ""
