"""The state of a simulated run, derived from one request's variables."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property
from random import Random

from aeon.domain.request import LLMRequest
from aeon.domain.values import JsonMapping
from aeon.simulated.scenario import Behaviour

MARK = "(simulated)"

# The variables that an answer may depend on; rendered texts, such as a step's incoming context, are
# not among them.
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
_FACTS_OF_STEP = ("step_id", "step_index", "total_steps", "description")


def excerpt(text: str, longest: int = 60) -> str:
    """Return the beginning of a text on one line, at most `longest` characters and an ellipsis,
    without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= longest else line[:longest].rstrip() + "…"


class ShownStep:
    """A step of the plan as a prompt shows it; `raw` is everything shown. `is_live`: neither
    replaced nor skipped nor invalid."""

    def __init__(self, raw: JsonMapping) -> None:
        self.raw = raw
        self.step_id = str(raw["step_id"])
        self.description = str(raw.get("description") or "")
        self.dependencies = tuple(raw.get("dependencies") or ())
        self.status = str(raw.get("status") or "pending")  # or BLOCKED
        self.is_live = not raw.get("replaced_by") and self.status not in ("invalid", "skipped")


class SimulatedCall:
    """A request, the simulated model's behaviour, the seed, and the state of the work from the
    request's variables; `live` are the steps still in the plan."""

    def __init__(self, request: LLMRequest, behaviour: Behaviour, seed: int) -> None:
        self.request = request
        self.behaviour = behaviour
        self.seed = seed
        self.variables = request.variables
        self.task = excerpt(str(self.variables.get("task") or ""))
        self.step: JsonMapping = self.variables.get("step") or {}
        self.plan: JsonMapping = self.variables.get("plan") or {}
        self.steps = [ShownStep(raw) for raw in self.plan.get("steps", ())]
        self.live = [step for step in self.steps if step.is_live]
        self.is_started = any(step.status != "pending" for step in self.steps)

    @cached_property
    def final(self) -> list[ShownStep]:
        """The live steps that no other live step depends on."""
        needed = {dependency for step in self.live for dependency in step.dependencies}
        return [step for step in self.live if step.step_id not in needed]

    @property
    def share(self) -> float:
        """The share of complete steps among the live ones, in [0, 1]; 1 without a plan."""
        return len(self.select("complete")) / len(self.live) if self.live else 1.0

    @cached_property
    def issues(self) -> Mapping[str, list[str]]:
        """The ids of the review's issues, by step."""
        by_step: defaultdict[str, list[str]] = defaultdict(list)
        for issue in self.variables.get("issues", ()):
            location = issue.get("location") or {}
            by_step[str(location.get("step_id"))].append(issue["issue_id"])
        return dict(by_step)

    @cached_property
    def rng(self) -> Random:
        """A random generator that depends on the seed, the call, its schema and the state of the
        work."""
        facts = [self.variables.get(name) for name in _FACTS]
        shown = [self.step.get(name) for name in _FACTS_OF_STEP]
        return self.draw(self.request.call, self.request.schema, facts, shown)

    def draw(self, *parts: object) -> Random:
        """Return a random generator that depends only on the seed and `parts`, so that calls of one
        run can agree."""
        return Random(json.dumps([self.seed, *parts], default=str))

    def select(self, status: str) -> list[ShownStep]:
        """Return the live steps with this status."""
        return [step for step in self.live if step.status == status]

    def count_steps(self, prefix: str) -> int:
        """Count the steps whose id starts with `prefix`."""
        return sum(step.step_id.startswith(prefix) for step in self.steps)
