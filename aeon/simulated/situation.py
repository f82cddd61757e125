"""Where a simulated run stands, as far as one request's prompts tell. No state is kept between requests."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any

from aeon.domain.request import LLMRequest
from aeon.simulated.characters import Character
from aeon.simulated.prompt_reading import Reading, excerpt

_CLOSED = re.compile(r"changes to them are not applied: ([^\n]*?)\.?\n")


@dataclass(frozen=True)
class SeenStep:
    """A step of the plan as a prompt shows it; `raw` is all that was shown."""

    step_id: str
    description: str
    status: str
    blocked: bool
    replaced: bool
    dependencies: tuple[str, ...]
    raw: Mapping[str, Any]

    @property
    def pending(self) -> bool:
        """Not executed yet."""
        return self.status == "pending"

    @property
    def live(self) -> bool:
        """Still part of the work: neither replaced nor an executed step that was declared invalid."""
        return not self.replaced and (self.status != "invalid" or self.blocked)


@dataclass(frozen=True)
class Situation:
    """A request, what was read in it, the seed, its character, and chance that depends on the seed and the request."""

    request: LLMRequest
    reading: Reading
    character: Character
    seed: int
    rng: Random

    @cached_property
    def task(self) -> str:
        """The beginning of the task, on one line."""
        text = self.reading.text("task")
        return excerpt(text if text is not None else self.request.messages[-1].content if self.request.messages else "")

    @cached_property
    def steps(self) -> tuple[SeenStep, ...]:
        """The plan's steps, empty when the prompts show no plan."""
        return tuple(_seen(raw) for raw in self._shown_steps() if isinstance(raw.get("step_id"), str))

    def _shown_steps(self) -> tuple[dict[str, Any], ...]:
        for plan in self.reading.objects("plan"):
            steps = plan.get("steps")
            if isinstance(steps, list):
                return tuple(step for step in steps if isinstance(step, dict))
        return tuple(step for step in self.reading.objects("plan", "steps") if "step_id" in step)

    @cached_property
    def live(self) -> tuple[SeenStep, ...]:
        """The steps that are still part of the work."""
        return tuple(step for step in self.steps if step.live)

    @cached_property
    def share(self) -> float:
        """The share of the live steps that are complete; 1 when the prompts show no plan."""
        done = sum(step.status == "complete" for step in self.live)
        return done / len(self.live) if self.live else 1.0

    @cached_property
    def started(self) -> bool:
        """Whether any step was executed."""
        return any(not step.pending for step in self.steps)

    @cached_property
    def final(self) -> tuple[SeenStep, ...]:
        """The live steps that no live step depends on."""
        needed = {dependency for step in self.live for dependency in step.dependencies}
        return tuple(step for step in self.live if step.step_id not in needed)

    @cached_property
    def closed(self) -> frozenset[str]:
        """The steps that the prompt says are left to a person."""
        match = _CLOSED.search(self.reading.bare + "\n")
        return frozenset(name.strip() for name in match[1].split(",")) if match else frozenset()

    @cached_property
    def issues(self) -> Mapping[str, tuple[str, ...]]:
        """The ids of the review's issues by the step they are about."""
        found: dict[str, tuple[str, ...]] = {}
        for issue in self.reading.objects("issues"):
            location = issue.get("location")
            step_id = location.get("step_id") if isinstance(location, dict) else None
            if isinstance(step_id, str) and isinstance(issue.get("issue_id"), str):
                found[step_id] = (*found.get(step_id, ()), issue["issue_id"])
        return found

    def draw(self, *parts: object) -> Random:
        """Chance that depends on the seed and `parts` alone, so that calls of one run can agree."""
        return Random(json.dumps([self.seed, *parts], default=str))


def _seen(raw: Mapping[str, Any]) -> SeenStep:
    status = raw.get("status") if isinstance(raw.get("status"), str) else "pending"
    dependencies = raw.get("dependencies")
    return SeenStep(
        step_id=str(raw["step_id"]),
        description=str(raw.get("description") or ""),
        status=str(status),
        blocked=status == "BLOCKED" or (status == "invalid" and raw.get("clarity_state") == "BLOCKED"),
        replaced=bool(raw.get("replaced_by")),
        dependencies=tuple(d for d in dependencies if isinstance(d, str)) if isinstance(dependencies, list) else (),
        raw=raw,
    )
