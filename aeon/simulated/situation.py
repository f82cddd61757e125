"""How a simulated run goes, by its seed, and where it stands, as one request says by its variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any, Literal

from aeon.domain.request import CallName, LLMRequest

MARK = "(simulated)"
Ending = Literal["converged", "ttl_expired", "stalled", "failed"]

# Which call fails for ever in a run of the character "failing", by the tens of the seed.
_FAILING: tuple[CallName, ...] = ("step", "convergence", "plan", "semantic_validation", "step")
# The variables that an answer may depend on. Texts that templates render, such as a step's incoming context, are none.
_FACTS = (
    "task",
    "plan",
    "parent",
    "changed",
    "criteria",
    "observed",
    "previous_output",
    "original",
    "attempt",
)


def excerpt(text: str, longest: int = 60) -> str:
    """The beginning of a text on one line, at most `longest` characters and an ellipsis, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"


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
_CAREFUL = (
    "The plan is refined before it runs; one step is BLOCKED, is clarified, and then goes through."
)
_SMOOTH = "Nothing is found and nothing is BLOCKED: one pass for each layer."
_DECOMPOSED = "A BLOCKED step is decomposed into a subplan."
_RESTLESS = (
    "The task is taken for a small one, every pass adds work, scores stay low: the TTL expires."
)
_STUCK = "A step is BLOCKED for ever and refinement offers nothing: the run stalls."
_STRICT = (
    "Validation finds a proposed addition CRITICAL, so that it is refused; a question is asked."
)
_REVISED = "An executed step is found wanting and replaced under a new id."
_FOR_EVER = 10**6
CHARACTERS = (
    Character("careful", "converged", _CAREFUL, blocked_times=1),
    Character("smooth", "converged", _SMOOTH, reviews=False),
    Character(
        "slow", "converged", "A step is BLOCKED twice before it goes through.", blocked_times=2
    ),
    Character(
        "decomposing", "converged", _DECOMPOSED, blocked_times=1, on_blocked="SUBPLAN_CREATE"
    ),
    Character("restless", "ttl_expired", _RESTLESS, never_enough=True),
    Character(
        "untidy",
        "converged",
        "Some answers are not of their schema and have to be repaired.",
        malformed=True,
    ),
    Character("stuck", "stalled", _STUCK, blocked_times=_FOR_EVER, on_blocked="nothing"),
    Character("strict", "converged", _STRICT, refuses=True),
    Character("failing", "failed", "One call fails for ever with status 500.", reviews=False),
    Character("revising", "converged", _REVISED, revises=True),
)


def character(seed: int) -> Character:
    """The character of a seed: by its last digit; for "failing" the other digits choose the call that fails."""
    chosen = CHARACTERS[seed % 10]
    return replace(chosen, fails=_FAILING[seed // 10 % 5]) if chosen.ending == "failed" else chosen


class ShownStep:
    """A step of the plan as a prompt shows it; `raw` is all that is shown. `is_live`: neither replaced nor invalid."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.step_id = str(raw["step_id"])
        self.description = str(raw.get("description") or "")
        self.dependencies = tuple(raw.get("dependencies") or ())
        self.status = str(raw.get("status") or "pending")  # or BLOCKED
        self.is_live = not raw.get("replaced_by") and self.status != "invalid"


class SimulatedCall:
    """A request, the character of the run, its seed, and what the request's variables say of the work. `live` are the
    steps that are still part of the work, `final` those of them that none depends on, `share` the part of them that is
    complete (1 without a plan). `issues`: the ids of the review's issues by the step they are about. `rng` is chance
    that depends on the seed, the call, its schema and the state of the work."""

    def __init__(self, request: LLMRequest, character: Character, seed: int) -> None:
        self.request, self.character, self.seed = request, character, seed
        self.variables = request.variables
        self.task = excerpt(str(self.variables.get("task") or ""))
        self.step: Mapping[str, Any] = self.variables.get("step") or {}
        self.steps = [ShownStep(raw) for raw in (self.variables.get("plan") or {}).get("steps", ())]
        self.live = [step for step in self.steps if step.is_live]
        needed = {dependency for step in self.live for dependency in step.dependencies}
        self.final = [step for step in self.live if step.step_id not in needed]
        self.is_started = any(step.status != "pending" for step in self.steps)
        self.share = len(self.select("complete")) / len(self.live) if self.live else 1.0
        self.issues: dict[str, list[str]] = {}
        for issue in self.variables.get("issues", ()):
            self.issues.setdefault(str((issue.get("location") or {}).get("step_id")), []).append(
                issue["issue_id"]
            )
        shown = [
            self.step.get(name) for name in ("step_id", "step_index", "total_steps", "description")
        ]
        self.rng = self.draw(
            request.call, request.schema, [self.variables.get(name) for name in _FACTS], shown
        )

    def draw(self, *parts: object) -> Random:
        """Chance that depends on the seed and `parts` alone, so that calls of one run can agree."""
        return Random(json.dumps([self.seed, *parts], default=str))

    def select(self, status: str) -> list[ShownStep]:
        """The live steps of this status."""
        return [step for step in self.live if step.status == status]

    def count_steps(self, prefix: str) -> int:
        """How many steps have an id that begins so."""
        return sum(step.step_id.startswith(prefix) for step in self.steps)
