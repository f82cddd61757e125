"""Where a simulated run stands, as one request says by its variables. No state is kept between requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from aeon.domain.request import LLMRequest
from aeon.simulated.characters import Character

MARK = "(simulated)"
# The variables that an answer may depend on. Texts that templates render, such as a step's incoming context, are none.
_FACTS = ("task", "plan", "parent", "changed", "criteria", "observed", "previous_output", "original", "attempt")


def excerpt(text: str, longest: int = 60) -> str:
    """The beginning of a text on one line, at most `longest` characters and an ellipsis; what cannot be shown is left
    out."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"


@dataclass(frozen=True)
class ShownStep:
    """A step of the plan as a prompt shows it; `raw` is all that is shown. `status` may be BLOCKED. `is_live`: still
    part of the work, neither replaced nor declared invalid."""

    step_id: str
    description: str
    dependencies: tuple[str, ...]
    status: str
    is_live: bool
    raw: Mapping[str, Any]

    @classmethod
    def of(cls, raw: Mapping[str, Any]) -> ShownStep:
        """The step that `raw` shows."""
        status = str(raw.get("status") or "pending")
        is_live = not raw.get("replaced_by") and status != "invalid"
        description, dependencies = str(raw.get("description") or ""), tuple(raw.get("dependencies") or ())
        return cls(str(raw["step_id"]), description, dependencies, status, is_live, raw)


@dataclass(frozen=True)
class Situation:
    """A request, the character of the run, and its seed."""

    request: LLMRequest
    character: Character
    seed: int

    @property
    def variables(self) -> Mapping[str, Any]:
        """The values that the request's prompts were rendered from; empty for a request made without templates."""
        return self.request.variables

    @cached_property
    def rng(self) -> Random:
        """Chance that depends on the seed, the call, its schema and the state of the work."""
        step = {k: v for k, v in self.step.items() if k in ("step_id", "step_index", "total_steps", "description")}
        facts = {name: self.variables.get(name) for name in _FACTS}
        return self.draw(self.request.call, self.request.schema, facts, step)

    def draw(self, *parts: object) -> Random:
        """Chance that depends on the seed and `parts` alone, so that calls of one run can agree."""
        return Random(json.dumps([self.seed, *parts], default=str))

    @cached_property
    def task(self) -> str:
        """The beginning of the task, on one line."""
        return excerpt(str(self.variables.get("task") or ""))

    @cached_property
    def step(self) -> Mapping[str, Any]:
        """The step that is to be carried out; empty for other calls."""
        return self.variables.get("step") or {}

    @cached_property
    def steps(self) -> tuple[ShownStep, ...]:
        """The plan's steps, empty when the request has no plan."""
        return tuple(map(ShownStep.of, (self.variables.get("plan") or {}).get("steps", ())))

    @cached_property
    def live(self) -> tuple[ShownStep, ...]:
        """The steps that are still part of the work."""
        return tuple(step for step in self.steps if step.is_live)

    @property
    def share(self) -> float:
        """The share of the live steps that are complete; 1 when there is no plan."""
        return len(self.select("complete")) / len(self.live) if self.live else 1.0

    @property
    def is_started(self) -> bool:
        """Whether any step was executed."""
        return any(step.status != "pending" for step in self.steps)

    @property
    def final(self) -> tuple[ShownStep, ...]:
        """The live steps that no live step depends on."""
        needed = {dependency for step in self.live for dependency in step.dependencies}
        return tuple(step for step in self.live if step.step_id not in needed)

    @cached_property
    def issues(self) -> Mapping[str, list[str]]:
        """The ids of the review's issues by the step they are about."""
        found: dict[str, list[str]] = {}
        for issue in self.variables.get("issues", ()):
            found.setdefault(str((issue.get("location") or {}).get("step_id")), []).append(issue["issue_id"])
        return found

    def select(self, status: str) -> tuple[ShownStep, ...]:
        """The live steps of this status."""
        return tuple(step for step in self.live if step.status == status)

    def count_steps(self, prefix: str) -> int:
        """How many steps have an id that begins so."""
        return sum(step.step_id.startswith(prefix) for step in self.steps)
