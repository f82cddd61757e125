"""What adaptive depth works with: the profile of a task, the table that turns it into a budget, and what was chosen."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, get_args

from pydantic import Field, ValidationInfo, field_validator, model_validator

from aeon.domain.request import ReasoningMode
from aeon.domain.values import Value

ToolUsage = Literal["none", "minimal", "moderate", "extensive"]
Breadth = Literal["narrow", "moderate", "broad"]
Confidence = Literal["low", "medium", "high"]
Complexity = Literal["very_low", "low", "moderate", "high", "very_high"]

# The names of the levels that every TTL table and the packaged schema know, by field of the profile.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "expected_tool_usage": get_args(ToolUsage),
    "output_breadth": get_args(Breadth),
    "confidence_requirement": get_args(Confidence),
}
# The validation context of a profile that may have levels of a person's own, as its schema has checked already.
OWN_LEVELS = {"own_levels": True}


class TaskProfile(Value):
    """How demanding a task is, as the model judged it (FR-026, FR-NEW-004 to FR-NEW-006).

    `reasoning_depth` 1 (very shallow) to 5 (very deep); `information_sufficiency` and `ambiguity_level` in [0, 1];
    `dependency_complexity` how many steps depend on others; `expected_step_count` how many steps a plan will need, 0
    when unknown; `raw_inference` why, in words. `profile_version` starts at 1 and grows with each update (FR-
    NEW-001). The named levels are those of `LEVELS`; with the context `OWN_LEVELS`, those of a person's own schema too.
    """

    profile_version: int = Field(default=1, ge=1)
    reasoning_depth: int = Field(ge=1, le=5)
    information_sufficiency: float = Field(ge=0, le=1)
    expected_tool_usage: str = Field(min_length=1)
    output_breadth: str = Field(min_length=1)
    confidence_requirement: str = Field(min_length=1)
    raw_inference: str = Field(min_length=1)
    ambiguity_level: float | None = Field(default=None, ge=0, le=1)
    dependency_complexity: int = Field(default=0, ge=0)
    expected_step_count: int = Field(default=0, ge=0)

    @field_validator(*LEVELS)
    @classmethod
    def _is_a_level(cls, level: str, info: ValidationInfo) -> str:
        known = LEVELS[info.field_name or ""]
        if level not in known and info.context != OWN_LEVELS:
            raise ValueError(f"must be one of {', '.join(known)}")
        return level


DEFAULT_PROFILE = TaskProfile(
    reasoning_depth=3,
    information_sufficiency=0.5,
    expected_tool_usage="moderate",
    output_breadth="moderate",
    confidence_requirement="medium",
    raw_inference="The profile could not be inferred; this is the default profile (research decision 6).",
)


_DEPTHS = (1, 2, 3, 4, 5)


class Band(Value):
    """A range of a number: from `at_least` up to the next band, and the amount that it adds to the multiplier."""

    at_least: float = Field(ge=0)
    add: float = Field(ge=0)


_DEPTH = {1: 1.8, 2: 2.4, 3: 3.2, 4: 4.4, 5: 5.8}
_TYPICAL_STEPS = {1: 2, 2: 4, 3: 8, 4: 12, 5: 18}
_SUFFICIENCY = {
    "high": Band(at_least=0.7, add=0.0),
    "middle": Band(at_least=0.4, add=0.6),
    "low": Band(at_least=0.0, add=1.2),
}
_BREADTH = {"narrow": 0.0, "moderate": 0.2, "broad": 0.8}
_TOOLS = {"none": 0.0, "minimal": 0.0, "moderate": 0.2, "extensive": 0.4}
_CONFIDENCE = {"low": 0.0, "medium": 0.0, "high": 0.6}
_REASONING_MODE: dict[int, ReasoningMode] = {1: "shallow", 2: "shallow", 3: "balanced", 4: "deep", 5: "deep"}
_COMPLEXITY: dict[int, Complexity] = {1: "very_low", 2: "low", 3: "moderate", 4: "high", 5: "very_high"}


class TTLTable(Value):
    """The deterministic map from a profile to a TTL, in LLM cycles (FR-029, FR-077, research decision 2).

    The greatest, over the depths d from 1 to the profile's, of
    `round(base x m) + extra_step x max(0, expected_step_count - typical_steps[d])`, at most `limit`, where m is
    `depth[d]` and what every other dimension of the profile adds. Refused when it would give less to a deeper or less
    sufficient task. `reasoning_mode` and `complexity` are what a depth comes to beside the TTL.
    """

    base: int = Field(default=10, ge=1)
    limit: int = Field(default=100, ge=1)
    depth: dict[int, float] = Field(default_factory=_DEPTH.copy)
    typical_steps: dict[int, int] = Field(default_factory=_TYPICAL_STEPS.copy)
    extra_step: int = Field(default=1, ge=0)
    sufficiency: dict[str, Band] = Field(default_factory=_SUFFICIENCY.copy)
    ambiguity: dict[str, Band] = Field(default_factory=dict)
    dependencies: dict[str, Band] = Field(default_factory=dict)
    breadth: dict[str, float] = Field(default_factory=_BREADTH.copy)
    tools: dict[str, float] = Field(default_factory=_TOOLS.copy)
    confidence: dict[str, float] = Field(default_factory=_CONFIDENCE.copy)
    reasoning_mode: dict[int, ReasoningMode] = Field(default_factory=_REASONING_MODE.copy)
    complexity: dict[int, Complexity] = Field(default_factory=_COMPLEXITY.copy)

    @property
    def levels(self) -> dict[str, dict[str, float]]:
        """What each named level adds, by field of the profile."""
        return {
            "expected_tool_usage": self.tools,
            "output_breadth": self.breadth,
            "confidence_requirement": self.confidence,
        }

    @field_validator("depth", "typical_steps", "reasoning_mode", "complexity")
    @classmethod
    def _has_every_depth(cls, table: dict[int, object]) -> dict[int, object]:
        if set(table) != set(_DEPTHS):
            raise ValueError(f"needs exactly the keys {', '.join(map(str, _DEPTHS))}")
        return table

    @field_validator("sufficiency", "ambiguity", "dependencies")
    @classmethod
    def _bands_differ(cls, bands: dict[str, Band]) -> dict[str, Band]:
        if len({band.at_least for band in bands.values()}) < len(bands):
            raise ValueError("no two bands may begin at the same value")
        return bands

    @model_validator(mode="after")
    def _knows_every_level(self) -> TTLTable:
        names = {"expected_tool_usage": "tools", "output_breadth": "breadth", "confidence_requirement": "confidence"}
        for field, table in self.levels.items():
            if missing := [level for level in LEVELS[field] if level not in table]:
                raise ValueError(f"{names[field]} has no entry for {', '.join(missing)}")
        return self

    @model_validator(mode="after")
    def _is_monotone(self) -> TTLTable:
        if any(deeper < shallower for shallower, deeper in pairwise(self.depth[tier] for tier in _DEPTHS)):
            raise ValueError("depth must not fall from one tier to the next: deeper tasks get more TTL")
        bands = sorted(self.sufficiency.values(), key=lambda band: band.at_least)
        if not bands or bands[0].at_least != 0:
            raise ValueError("sufficiency needs a band from 0 on (at_least: 0)")
        if any(more.add > less.add for less, more in pairwise(bands)):
            raise ValueError("sufficiency must not add less to a lower band: less information gets more TTL")
        return self


class AdaptiveDepthConfiguration(Value):
    """How deep a pass reasons and what it may spend, and why (FR-078). `allocated_ttl` is in LLM cycles.

    `ambiguity_score` is the profile's ambiguity_level. `uncertainty_score` is None: the model judges uncertainty as a
    part of information_sufficiency (FR-028), and the program computes no score. `heuristics_used` is what the budget
    rests on: task_profile, default_profile where none could be inferred, or task_profile_update with its signals.
    """

    detected_complexity: Complexity
    ambiguity_score: float | None = Field(default=None, ge=0, le=1)
    uncertainty_score: float | None = Field(default=None, ge=0, le=1)
    allocated_ttl: int = Field(ge=0)
    reasoning_mode: ReasoningMode
    adjustment_reason: str = Field(min_length=1)
    heuristics_used: tuple[str, ...] = ()
