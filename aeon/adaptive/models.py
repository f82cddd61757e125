"""What adaptive depth works with: the profile of a task, the table that turns it into a budget, and what was chosen."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

from pydantic import Field, model_validator

from aeon.llm.interface import ReasoningMode
from aeon.values import Value

ToolUsage = Literal["none", "minimal", "moderate", "extensive"]
Breadth = Literal["narrow", "moderate", "broad"]
Confidence = Literal["low", "medium", "high"]
Complexity = Literal["very_low", "low", "moderate", "high", "very_high"]


class TaskProfile(Value):
    """How demanding a task is, as the model judged it (FR-026, FR-NEW-004 to FR-NEW-006).

    `reasoning_depth` 1 (very shallow) to 5 (very deep); `information_sufficiency` and `ambiguity_level` in [0, 1];
    `dependency_complexity` how many steps depend on others; `expected_step_count` how many steps a plan will need, 0
    when unknown; `raw_inference` why, in words. `profile_version` starts at 1 and grows with each update (FR-
    NEW-001).
    """

    profile_version: int = Field(default=1, ge=1)
    reasoning_depth: int = Field(ge=1, le=5)
    information_sufficiency: float = Field(ge=0, le=1)
    expected_tool_usage: ToolUsage
    output_breadth: Breadth
    confidence_requirement: Confidence
    raw_inference: str = Field(min_length=1)
    ambiguity_level: float | None = Field(default=None, ge=0, le=1)
    dependency_complexity: int = Field(default=0, ge=0)
    expected_step_count: int = Field(default=0, ge=0)


DEFAULT_PROFILE = TaskProfile(
    reasoning_depth=3,
    information_sufficiency=0.5,
    expected_tool_usage="moderate",
    output_breadth="moderate",
    confidence_requirement="medium",
    raw_inference="The profile could not be inferred; this is the default profile (research decision 6).",
)


_DEPTH: dict[int, float] = {1: 1.8, 2: 2.4, 3: 3.2, 4: 4.4, 5: 5.8}
_TYPICAL_STEPS: dict[int, int] = {1: 2, 2: 4, 3: 8, 4: 12, 5: 18}
_BREADTH: dict[Breadth, float] = {"narrow": 0.0, "moderate": 0.2, "broad": 0.8}
_TOOLS: dict[ToolUsage, float] = {"none": 0.0, "minimal": 0.0, "moderate": 0.2, "extensive": 0.4}
_CONFIDENCE: dict[Confidence, float] = {"low": 0.0, "medium": 0.0, "high": 0.6}


class SufficiencyBands(Value):
    """What a task that lacks information adds to the multiplier: at least 0.7, from 0.4 to 0.7, below 0.4."""

    high: float = Field(default=0.0, ge=0)
    middle: float = Field(default=0.6, ge=0)
    low: float = Field(default=1.2, ge=0)


class TTLTable(Value):
    """The deterministic map from a profile to a TTL, in LLM cycles (FR-029, FR-077, research decision 2).

    `min(limit, round(base x m) + max(0, expected_step_count - typical_steps[depth]))`, where m is the sum of the
    entries that the profile selects. Refused when it would give less to a deeper or less sufficient task.
    """

    base: int = Field(default=10, ge=1)
    limit: int = Field(default=100, ge=1)
    depth: dict[int, float] = Field(default_factory=_DEPTH.copy)
    typical_steps: dict[int, int] = Field(default_factory=_TYPICAL_STEPS.copy)
    sufficiency: SufficiencyBands = Field(default_factory=SufficiencyBands)
    breadth: dict[Breadth, float] = Field(default_factory=_BREADTH.copy)
    tools: dict[ToolUsage, float] = Field(default_factory=_TOOLS.copy)
    confidence: dict[Confidence, float] = Field(default_factory=_CONFIDENCE.copy)

    @model_validator(mode="after")
    def _complete_and_monotone(self) -> TTLTable:
        for name, table, keys in (
            ("depth", self.depth, (1, 2, 3, 4, 5)),
            ("typical_steps", self.typical_steps, (1, 2, 3, 4, 5)),
            ("breadth", self.breadth, ("narrow", "moderate", "broad")),
            ("tools", self.tools, ("none", "minimal", "moderate", "extensive")),
            ("confidence", self.confidence, ("low", "medium", "high")),
        ):
            if set(table) != set(keys):
                raise ValueError(f"{name} needs exactly the keys {', '.join(map(str, keys))}")
        if any(deeper < shallower for shallower, deeper in pairwise(self.depth[tier] for tier in (1, 2, 3, 4, 5))):
            raise ValueError("depth must not fall from one tier to the next: deeper tasks get more TTL (FR-029)")
        if not self.sufficiency.high <= self.sufficiency.middle <= self.sufficiency.low:
            raise ValueError("sufficiency must not fall from high to low: less information gets more TTL (FR-029)")
        return self


class AdaptiveDepthConfiguration(Value):
    """How deep a pass reasons and what it may spend, and why (FR-078). `allocated_ttl` is in LLM cycles."""

    detected_complexity: Complexity
    ambiguity_score: float | None = Field(default=None, ge=0, le=1)
    uncertainty_score: float | None = Field(default=None, ge=0, le=1)
    allocated_ttl: int = Field(ge=0)
    reasoning_mode: ReasoningMode
    adjustment_reason: str = Field(min_length=1)
    heuristics_used: tuple[str, ...] = ()
