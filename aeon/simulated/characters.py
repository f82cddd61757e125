"""How a simulated run goes, by seed: its ups and downs, so that every way a run can end is seen without a model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from aeon.domain.request import CallName

Ending = Literal["converged", "ttl_expired", "stalled", "failed"]

# Which call fails for ever in a run of the character "failing", by the tens of the seed.
_FAILING: tuple[CallName, ...] = ("step", "convergence", "plan", "semantic_validation", "step")


@dataclass(frozen=True, slots=True)
class Character:
    """What the simulated model does in the runs of a seed. `blocked_times`: how often the step at position 2 comes back
    BLOCKED. `reviews`: validation finds something in a fresh plan. `malformed`: some answers need a repair. `refuses`:
    validation calls an addition CRITICAL. `revises`: an executed step is replaced. `never_enough`: scores stay low
    while the plan grows. `fails`: the call that never succeeds."""

    name: str
    ending: Ending
    summary: str
    reviews: bool = True
    blocked_times: int = 0
    on_blocked: Literal["MODIFY", "SUBPLAN_CREATE", "nothing"] = "MODIFY"
    malformed: bool = False
    refuses: bool = False
    revises: bool = False
    never_enough: bool = False
    fails: CallName | None = None


CALM = Character("calm", "converged", "Nothing happens on the way.", reviews=False)
_CAREFUL = "The plan is refined before it runs; one step is BLOCKED, is clarified, and then goes through."
_SMOOTH = "Nothing is found and nothing is BLOCKED: one pass for each layer."
_DECOMPOSED = "A BLOCKED step is decomposed into a subplan."
_RESTLESS = "The task is taken for a small one, every pass adds work, scores stay low: the TTL expires."
_STUCK = "A step is BLOCKED for ever and refinement offers nothing: the run stalls."
_STRICT = "Validation finds a proposed addition CRITICAL, so that it is refused; a question is asked."
_REVISED = "An executed step is found wanting and replaced under a new id."
_FOR_EVER = 10**6
CHARACTERS = (
    Character("careful", "converged", _CAREFUL, blocked_times=1),
    Character("smooth", "converged", _SMOOTH, reviews=False),
    Character("slow", "converged", "A step is BLOCKED twice before it goes through.", blocked_times=2),
    Character("decomposing", "converged", _DECOMPOSED, blocked_times=1, on_blocked="SUBPLAN_CREATE"),
    Character("restless", "ttl_expired", _RESTLESS, never_enough=True),
    Character("untidy", "converged", "Some answers are not of their schema and have to be repaired.", malformed=True),
    Character("stuck", "stalled", _STUCK, blocked_times=_FOR_EVER, on_blocked="nothing"),
    Character("strict", "converged", _STRICT, refuses=True),
    Character("failing", "failed", "One call fails for ever with status 500.", reviews=False),
    Character("revising", "converged", _REVISED, revises=True),
)


def character(seed: int) -> Character:
    """The character of a seed: by its last digit; for "failing" the other digits choose the call that fails."""
    chosen = CHARACTERS[seed % 10]
    return replace(chosen, fails=_FAILING[seed // 10 % 5]) if chosen.ending == "failed" else chosen
