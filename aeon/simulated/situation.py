"""Where a simulated run stands, as one request says by its variables. No state is kept between requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from aeon.domain.request import LLMRequest
from aeon.simulated.characters import Character

MARK = "(simulated)"
# The variables that an answer may depend on. Texts that templates render, such as a step's incoming context, are none.
_FACTS = ("task", "plan", "parent", "changed", "criteria", "observed", "previous_output", "original", "attempt")


def excerpt(text: str, longest: int = 60) -> str:
    """The beginning of a text on one line, at most `longest` characters and an ellipsis, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"


class ShownStep:
    """A step of the plan as a prompt shows it; `raw` is all that is shown. `is_live`: neither replaced nor invalid."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.step_id = str(raw["step_id"])
        self.description = str(raw.get("description") or "")
        self.dependencies = tuple(raw.get("dependencies") or ())
        self.status = str(raw.get("status") or "pending")  # or BLOCKED
        self.is_live = not raw.get("replaced_by") and self.status != "invalid"


class Situation:
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
            self.issues.setdefault(str((issue.get("location") or {}).get("step_id")), []).append(issue["issue_id"])
        shown = [self.step.get(name) for name in ("step_id", "step_index", "total_steps", "description")]
        self.rng = self.draw(request.call, request.schema, [self.variables.get(name) for name in _FACTS], shown)

    def draw(self, *parts: object) -> Random:
        """Chance that depends on the seed and `parts` alone, so that calls of one run can agree."""
        return Random(json.dumps([self.seed, *parts], default=str))

    def select(self, status: str) -> list[ShownStep]:
        """The live steps of this status."""
        return [step for step in self.live if step.status == status]

    def count_steps(self, prefix: str) -> int:
        """How many steps have an id that begins so."""
        return sum(step.step_id.startswith(prefix) for step in self.steps)
