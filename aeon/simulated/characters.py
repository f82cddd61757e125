"""How a simulated run goes, by seed: its ups and downs, so that every way a run can end is seen without a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from aeon.domain.request import CallName

Ending = Literal["converged", "ttl_expired", "stalled", "failed"]

# Which call fails for ever in a run of the character "failing", by the tens of the seed.
_FAILING: tuple[CallName, ...] = ("step", "convergence", "plan", "semantic_validation", "step")


@dataclass(frozen=True, slots=True)
class Character:
    """What the simulated model does in the runs of a seed.

    `blocked_times` how often the step at position 2 (with 3 steps or more) comes back BLOCKED; `on_blocked` what
    refinement does about it; `reviews` whether validation finds something in a fresh plan and refinement acts on it;
    `malformed` whether some answers need a repair; `refuses` whether validation calls an addition CRITICAL; `revises`
    whether an executed step is replaced; `never_enough` whether scores stay low while the plan grows; `fails` the call
    that never succeeds.
    """

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


FOR_EVER = 10**6
CALM = Character("calm", "converged", "Nothing happens on the way.", reviews=False)
CHARACTERS: tuple[Character, ...] = (
    Character(
        "careful",
        "converged",
        "The plan is refined before it runs; one step is BLOCKED, is clarified, and then goes through.",
        blocked_times=1,
    ),
    Character(
        "smooth", "converged", "Nothing is found and nothing is BLOCKED: one pass for each layer.", reviews=False
    ),
    Character("slow", "converged", "A step is BLOCKED twice before it goes through.", blocked_times=2),
    Character(
        "decomposing",
        "converged",
        "A BLOCKED step is decomposed into a subplan.",
        blocked_times=1,
        on_blocked="SUBPLAN_CREATE",
    ),
    Character(
        "restless",
        "ttl_expired",
        "The task is taken for a small one, every pass adds work, scores stay low: the TTL expires.",
        never_enough=True,
    ),
    Character("untidy", "converged", "Some answers are not of their schema and have to be repaired.", malformed=True),
    Character(
        "stuck",
        "stalled",
        "A step is BLOCKED for ever and refinement offers nothing: the run stalls.",
        blocked_times=FOR_EVER,
        on_blocked="nothing",
    ),
    Character(
        "strict",
        "converged",
        "Validation finds a proposed addition CRITICAL, so that it is refused; a question is asked.",
        refuses=True,
    ),
    Character("failing", "failed", "One call fails for ever with status 500.", reviews=False),
    Character("revising", "converged", "An executed step is found wanting and replaced under a new id.", revises=True),
)


def character(seed: int) -> Character:
    """The character of a seed: by its last digit; for "failing" the other digits choose the call that fails."""
    chosen = CHARACTERS[seed % len(CHARACTERS)]
    if chosen.ending != "failed":
        return chosen
    fails = _FAILING[seed // len(CHARACTERS) % len(_FAILING)]
    return Character(chosen.name, chosen.ending, chosen.summary, chosen.reviews, fails=fails)


def seed_table() -> str:
    """The characters as a table in Markdown, for the documentation."""
    rows = [f"| {digit} | {c.name} | {c.ending} | {c.summary} |" for digit, c in enumerate(CHARACTERS)]
    return "\n".join(["| last digit | name | ends | what happens |", "|---|---|---|---|", *rows])
