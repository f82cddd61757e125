"""How many rounds a step that uses tools may have after its first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from aeon.domain.events import Event
from aeon.domain.plan import Plan
from aeon.domain.request import CallSite

EmitAt = Callable[[int, Event], None]
"""Emits an event at one of the reserved places, counted from 0."""


class RoundDispatcher(Protocol):
    """What a round needs from its run."""

    def announce(self, site: CallSite, call: str, *, plan: Plan | None = None) -> None:
        """Announce a cycle; `plan` is the plan at the start of its batch."""

    def check_end(self) -> None:
        """Raise the error that ends the run if nothing new may start."""

    def reserve_events(self, site: CallSite, count: int) -> EmitAt:
        """Reserve the places of the next `count` events of a dispatch."""


class RoundAllowance:
    """The cycles that one step may use for further rounds. They are set aside when the step is
    dispatched, so that each step's share depends only on the plan and the budget, not on which step
    is faster; those `taken` are charged when its batch ends."""

    def __init__(self, cycles: int, dispatcher: RoundDispatcher | None = None) -> None:
        self.left = cycles
        self.taken = 0
        self._dispatcher = dispatcher

    def begin_round(self, site: CallSite, plan: Plan) -> None:
        """Take a round's cycle and announce it. Raises the error that ends the run if nothing new
        may start."""
        self.check_end()
        self.left -= 1
        self.taken += 1
        if self._dispatcher is not None:
            self._dispatcher.announce(site, "step", plan=plan)

    def check_end(self) -> None:
        """Raise the error that ends the run if nothing new may start."""
        if self._dispatcher is not None:
            self._dispatcher.check_end()

    def reserve_events(self, site: CallSite, count: int) -> EmitAt:
        """Reserve the places of the next `count` events of a step whose work runs concurrently."""
        if self._dispatcher is None:
            return lambda _place, _event: None
        return self._dispatcher.reserve_events(site, count)


def share_rounds(wanted: Sequence[int], spare: int) -> list[int]:
    """Share the spare cycles of a budget among steps that want `wanted` each: evenly, with earlier
    steps first if they are too few."""
    shares = [0] * len(wanted)
    while spare > 0 and shares != list(wanted):
        for index, most in enumerate(wanted):
            if shares[index] < most and spare > 0:
                shares[index] += 1
                spare -= 1
    return shares
