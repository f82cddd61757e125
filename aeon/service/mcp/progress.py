"""How far a run is, brought from the threads of its job into the event loop of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from mcp.server import ServerRequestContext

from aeon.domain import events as e
from aeon.domain.events import Recorded
from aeon.report.words import count_noun, one_line
from aeon.service.jobs import Follower

_LONGEST = 120
_LONGEST_WAIT_SECONDS = 1.0


class RunProgress:
    """The news of one job. Of news that come faster than a client takes them, the latest counts;
    their number is the progress, since how much there is to do is not known before the end.
    `follower` is what follows the job."""

    def __init__(self) -> None:
        self.follower = Follower(see=self._see, end=lambda: self._call(self._news.set))
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._number = 0
        self._text = ""

    async def report(self, ctx: ServerRequestContext) -> None:
        """Wait for news, a while at most, and report them to the client."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_WAIT_SECONDS):
                await self._news.wait()
        self._news.clear()
        if self._text:
            await ctx.session.report_progress(self._number, None, self._text)
            self._text = ""

    def _see(self, recorded: Recorded) -> None:
        text = describe_event(recorded.event)
        if text:
            self._call(self._take, text)

    def _call(self, function: Callable[..., None], *given: object) -> None:
        """Call a function in the event loop; nothing where that is closed."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *given)

    def _take(self, text: str) -> None:
        self._number += 1
        self._text = text
        self._news.set()


def describe_event(event: e.Event) -> str:
    """A line on an event that a client wants to know; empty for another."""
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
